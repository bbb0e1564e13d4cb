import FerryControl
import FerryCore
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

    @Test func `the manual lists every field of the JSON documents, and none besides`() throws {
        var job = sampleJob(1, .queued)
        job.segments = []
        job.answer = AnswerDocument(status: 200, headers: [], body: "", isCut: false)
        job.deadlineAt = job.createdAt
        job.limitRateBytesPerS = 1
        job.renew = "/p"
        let ofAnswer = ["body", "headers", "is_cut", "status"]
        #expect(
            try Self.names(of: job).filter { !ofAnswer.contains($0) } == JSONFields.job.map(\.name).sorted()
        )
        let event = EventDocument(
            seq: 1,
            time: noon,
            job: nil,
            kind: "added",
            state: nil,
            reason: nil,
            message: nil
        )
        #expect(try Self.names(of: event) == JSONFields.event.map(\.name).sorted())
        let progress = ProgressDocument(
            id: JobID(rawValue: 1),
            phase: .connecting,
            bytesDone: 0,
            bytesDurable: 0,
            bytesTotal: nil,
            rateBytesPerS: nil,
            etaS: nil
        )
        #expect(try Self.names(of: progress) == JSONFields.progress.map(\.name).sorted())
        let attempt = AttemptDocument(attempt: 1, beganAt: noon, offsetBytes: 0, receivedBytes: 0)
        #expect(try Self.names(of: attempt) == JSONFields.attempt.map(\.name).sorted())
        let finding = Finding("disk", .ok, "enough")
        #expect(try Self.names(of: finding) == JSONFields.finding.map(\.name).sorted())
    }

    /// The names of a flat document's fields, sorted.
    private static func names(of document: some Encodable) throws -> [String] {
        let text = String(decoding: try ControlJSON.encode(document), as: UTF8.self)
        return text.dropFirst().split(separator: ",").compactMap { field in
            field.split(separator: ":").first.map { String($0.filter { $0 != "\"" }) }
        }
    }

    @Test(.enabled(if: access("/usr/bin/mandoc", X_OK) == 0))
    func `mandoc finds nothing to complain of`() throws {
        let pipe = try #require(popen("/usr/bin/mandoc -T lint -W warning '\(Self.manualPath)' 2>&1", "r"))
        defer { pclose(pipe) }
        var text = ""
        var buffer = [CChar](repeating: 0, count: 4_096)
        while fgets(&buffer, Int32(buffer.count), pipe) != nil {
            text += String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
        #expect(text.isEmpty)
    }

    private static let manualPath = Fixtures.projectFolder + "/man/ferry.1"

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
