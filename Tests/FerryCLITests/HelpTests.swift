import FerryTestSupport
import Glibc
import Testing

@testable import FerryCLI

@Suite struct HelpTests {
    @Test func `the overview names every command`() {
        for command in CommandName.allCases {
            #expect(HelpText.overview.contains("\n  \(command.rawValue)"))
        }
    }

    @Test(arguments: CommandName.allCases)
    func `a command's help names each of its options and fits 80 columns`(command: CommandName) {
        let text = HelpText.text(for: command)
        for option in OptionTable.visible(for: command) { #expect(text.contains("--\(option.long)")) }
        for line in text.split(separator: "\n") { #expect(line.count < 80, "\(line)") }
        #expect(!text.contains("--man"))
    }

    /// `ferry help --man` prints the page: `ferry help --man > man/ferry.1` after a change of the tables.
    @Test func `the manual page is current`() throws {
        let page = try read(Self.manualPath)
        #expect(page == ManualPage.text, "run: ferry help --man > man/ferry.1")
    }

    @Test func `the manual page names every command and option`() {
        for option in OptionTable.all where !option.hidden {
            #expect(ManualPage.text.contains("Fl -\(option.long)"))
        }
        for command in CommandName.allCases {
            #expect(ManualPage.text.contains(".It Cm \(command.rawValue)"))
        }
    }

    @Test(.enabled(if: access("/usr/bin/mandoc", X_OK) == 0))
    func `mandoc finds nothing to complain of`() throws {
        let pipe = try #require(popen("/usr/bin/mandoc -T lint '\(Self.manualPath)' 2>&1", "r"))
        defer { pclose(pipe) }
        var text = ""
        var buffer = [CChar](repeating: 0, count: 4_096)
        while fgets(&buffer, Int32(buffer.count), pipe) != nil {
            text += String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
        #expect(text.isEmpty)
    }

    private static let manualPath =
        #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }
        + "/man/ferry.1"

    private func read(_ path: String) throws -> String {
        let descriptor = open(path, O_RDONLY)
        try #require(descriptor >= 0, "\(path)")
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
