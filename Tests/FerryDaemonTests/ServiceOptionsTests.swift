import FerryCore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryDaemon

@Suite struct ServiceOptionsTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let arguments: [String]
        let expected: ServiceOptions
        var testDescription: String { self.arguments.joined(separator: " ") }

        init(_ arguments: [String], _ change: (inout ServiceOptions) -> Void) {
            var options = ServiceOptions()
            change(&options)
            self.arguments = arguments
            self.expected = options
        }
    }

    @Test(arguments: [
        Case([]) { _ in },
        Case(["--on-demand"]) { $0.onDemand = true },
        Case(["--version"]) { $0.wantsVersion = true },
        Case(["--help"]) { $0.wantsHelp = true },
        Case(["-h"]) { $0.wantsHelp = true },
        Case(["--state-dir", "/s"]) { $0.stateDirectory = "/s" },
        Case(["--state-dir=/s=t"]) { $0.stateDirectory = "/s=t" },
        Case(["--state-dir", "--on-demand"]) { $0.stateDirectory = "--on-demand" },
        Case(["--state-dir", "/s", "--state-dir", "/t"]) { $0.stateDirectory = "/t" },
        Case(["--print-config", "--json"]) {
            $0.printsConfiguration = true
            $0.json = true
        },
        Case(["--system", "--allow-dir", "/a", "--allow-dir=/b"]) {
            $0.system = true
            $0.allowedFolders = ["/a", "/b"]
        },
        Case(["--man"]) { $0.wantsManual = true },
        Case(["--socket", "/p"]) { $0.socketPath = "/p" },
        Case(["--check", "--json"]) {
            $0.wantsCheck = true
            $0.json = true
        },
        Case(["--repair", "--start-over"]) {
            $0.wantsRepair = true
            $0.startsOver = true
        },
        Case(["--digest", "SHA256", "/f"]) {
            $0.digest = ServiceOptions.Digest(algorithm: .sha256, path: "/f")
        },
        Case(["--status-fd", "3"]) { $0.statusDescriptor = 3 },
        Case(["--status-fd=17", "--on-demand", "--socket=/p", "--state-dir", "/s"]) {
            $0.statusDescriptor = 17
            $0.onDemand = true
            $0.socketPath = "/p"
            $0.stateDirectory = "/s"
        },
    ])
    func `arguments are read`(_ item: Case) throws {
        #expect(try ServiceOptions.parse(item.arguments) == item.expected)
    }

    @Test(arguments: [
        (["--state-dir"], "--state-dir needs a value"),
        (["--state-dir="], "--state-dir needs a value"),
        (["--state-dir", ""], "--state-dir needs a value"),
        (["--status-fd", "2"], "--status-fd needs a descriptor above 2, not \"2\""),
        (["--status-fd", "three"], "--status-fd needs a descriptor above 2, not \"three\""),
        (["--status-fd", "99999999999"], "--status-fd needs a descriptor above 2, not \"99999999999\""),
        (["--allow-dir", "a"], "--allow-dir needs an absolute path, not \"a\""),
        (["--system=yes"], "--system takes no value"),
        (["--on-demand=yes"], "--on-demand takes no value"),
        (["--on-demand="], "--on-demand takes no value"),
        (["--start-over"], "--start-over needs --repair"),
        (["--digest", "sha256"], "--digest needs an algorithm such as sha256, and a file"),
        (["--digest", "crc", "/f"], "--digest needs an algorithm such as sha256, and a file"),
        (["--json"], "--json goes with --print-config, --check and --repair"),
        (["--frob"], "ferryd does not know \"--frob\"; see ferryd --help"),
        (["--frob=1"], "ferryd does not know \"--frob=1\"; see ferryd --help"),
        (["run"], "ferryd does not know \"run\"; see ferryd --help"),
        ([""], "ferryd does not know \"\"; see ferryd --help"),
    ])
    func `what is wrong is told`(_ arguments: [String], _ message: String) {
        #expect(throws: FerryError.usage(message)) { try ServiceOptions.parse(arguments) }
    }

    @Test(arguments: ServiceOptions.table.map(\.name))
    func `help and manual name each option, and it is known`(_ name: String) throws {
        #expect(ServiceOptions.help.contains("\n  \(name) "))
        #expect(ServiceManual.text.contains("\n.It Fl \(name.dropFirst())"))
        let values = ["--status-fd": "3", "--allow-dir": "/a", "--state-dir": "/s", "--socket": "/p"]
        let context = ["--json": ["--print-config"], "--start-over": ["--repair"]]
        let operands = name == "--digest" ? ["sha256", "/f"] : values[name].map { [$0] } ?? []
        _ = try ServiceOptions.parse((context[name] ?? []) + [name] + operands)
    }

    @Test func `the help fits 80 columns`() {
        for line in ServiceOptions.help.split(separator: "\n") { #expect(line.count < 80, "\(line)") }
    }

    /// `ferryd --man > man/ferryd.8` after a change.
    @Test func `the manual page is current`() throws {
        let page = try readPage(Fixtures.projectFolder + "/man/ferryd.8")
        #expect(page == ServiceManual.text, "run: ferryd --man > man/ferryd.8")
    }

    @Test func `the machine's queue may write nowhere unless it is told, a user's everywhere`() {
        var options = ServiceOptions()
        #expect(options.limits == nil)
        options.system = true
        #expect(options.limits == [])
        options.allowedFolders = ["/a"]
        #expect(options.limits == ["/a"])
    }
}

private func readPage(_ path: String) throws -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    try #require(descriptor >= 0, "\(path)")
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    return String(decoding: buffer[..<max(0, read(descriptor, &buffer, buffer.count))], as: UTF8.self)
}
