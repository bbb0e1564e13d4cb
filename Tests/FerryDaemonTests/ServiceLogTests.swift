import FerryTestSupport
import Testing

@testable import FerryDaemon

@Suite struct ServiceLogTests {
    @Test(arguments: [
        ("plain", "plain"),
        ("", "\"\""),
        ("two words", "\"two words\""),
        ("a=b", "\"a=b\""),
        ("say \"hi\"", "\"say \\\"hi\\\"\""),
        ("back\\slash", "\"back\\\\slash\""),
        ("a\nlevel=error", "\"a\\\\u{A}level=error\""),
        ("\u{1b}[31m", "\"\\\\u{1B}[31m\""),
        ("größe", "größe"),
    ])
    func `a value never breaks its line`(_ value: String, _ quoted: String) {
        #expect(ServiceLog.quote(value) == quoted)
    }

    @Test func `a line has time, level and the fields that are known`() throws {
        try withTemporaryFolder { folder in
            let log = ServiceLog(file: folder.file("log"))
            log.write(.info, ["event": "started", "job": "12", "path": nil])
            log.write(.error, ["message": "no space\nleft"])
            let lines = try folder.text("log").split(separator: "\n").map { line in
                line.split(separator: " ", maxSplits: 1)
            }
            #expect(lines.count == 2)
            #expect(lines.allSatisfy { $0[0].hasPrefix("time=20") && $0[0].hasSuffix("Z") })
            #expect(
                lines.map { String($0[1]) } == [
                    "level=info event=started job=12", "level=error message=\"no space\\\\u{A}left\"",
                ]
            )
        }
    }

    @Test func `a log that has grown large is put aside`() throws {
        try withTemporaryFolder { folder in
            try folder.write("log", String(repeating: "x", count: ServiceLog.limit + 1))
            ServiceLog(file: folder.file("log")).write(.warning, ["event": "new"])
            #expect(try folder.text("log").hasSuffix("level=warning event=new\n"))
            #expect(try folder.read("log.1").count == ServiceLog.limit + 1)
            #expect(try folder.read("log").count < 100)
        }
    }
}
