import FerryCore
import Testing

@Suite struct ResumePlanTests {
    /// 1,000 bytes with a strong tag.
    private static let stored = object("\"a\"", total: 1_000)

    private static func object(
        _ tag: String?,
        total: Int64?,
        type: String? = "application/zip",
        change: (inout RemoteObject) -> Void = { _ in }
    ) -> RemoteObject {
        var object = RemoteObject()
        object.entityTag = tag
        object.totalBytes = total
        object.contentType = type
        change(&object)
        return object
    }

    private func judge(_ head: ResponseHead, offset: Int64, stored: RemoteObject? = stored) -> AnswerVerdict {
        ResumePlan.judge(head, offset: offset, stored: stored, now: now)
    }

    // MARK: the request

    @Test func `bytes from an offset are asked for under a condition`() {
        #expect(
            ResumePlan.request(durable: 400, stored: Self.stored).fields == [
                ResponseHead.Field(name: "Range", value: "bytes=400-"),
                ResponseHead.Field(name: "If-Range", value: "\"a\""),
            ]
        )
        let all = ResumePlan.request(durable: 1_000, stored: Self.stored)
        #expect(all == ResumeRequest(offset: 1_000, overlap: 0, condition: "\"a\""))
        let endless = Self.object("\"a\"", total: nil)
        #expect(ResumePlan.request(durable: .max, stored: endless).fields.count == 2)
    }

    @Test(arguments: [0, -1, 1_001])
    func `what cannot be continued is asked for from 0`(durable: Int64) {
        let whole = ResumeRequest(offset: 0, overlap: 0, condition: nil)
        #expect(ResumePlan.request(durable: durable, stored: Self.stored) == whole)
        #expect(whole.fields.isEmpty)
        let coded = Self.object("\"a\"", total: 1_000) { $0.contentEncoding = "gzip" }
        let refused = Self.object("\"a\"", total: 1_000) { $0.acceptsRanges = false }
        for stored in [nil, coded, refused] {
            #expect(ResumePlan.request(durable: 400, stored: stored) == whole)
            #expect(ResumePlan.request(durable: 400, stored: stored, wantsOverlap: true) == whole)
        }
    }

    @Test(arguments: ["W/\"a\"", nil, "unquoted"])
    func `without a strong validator the last 64 KiB are compared`(tag: String?) {
        let stored = Self.object(tag, total: 1_000_000)
        #expect(
            ResumePlan.request(durable: 65_537, stored: stored)
                == ResumeRequest(offset: 1, overlap: 65_536, condition: nil)
        )
        // Comparing everything costs as much as fetching it anew.
        #expect(ResumePlan.request(durable: 65_536, stored: stored).offset == 0)
        #expect(ResumePlan.request(durable: 1_000_001, stored: stored).offset == 0)
    }

    @Test func `a server's word can be doubted, and its If-Range left out`() {
        let stored = Self.object("\"a\"", total: 1_000_000)
        #expect(
            ResumePlan.request(durable: 100_000, stored: stored, wantsOverlap: true)
                == ResumeRequest(offset: 34_464, overlap: 65_536, condition: "\"a\"")
        )
        #expect(
            ResumePlan.request(durable: 100_000, stored: stored, hasBrokenIfRange: true)
                == ResumeRequest(offset: 100_000, overlap: 0, condition: nil)
        )
    }

    // MARK: 206

    struct Part: Sendable, CustomStringConvertible {
        var what: String
        var fields: [(String, String)]
        var offset: Int64 = 400
        var expected: AnswerVerdict
        var description: String { self.what }
        var head: ResponseHead {
            ResponseHead(status: 206, fields: self.fields.map { ResponseHead.Field(name: $0.0, value: $0.1) })
        }
    }

    private static let kept = object("\"a\"", total: 1_000) { $0.acceptsRanges = true }

    private static func append(
        _ start: Int64,
        _ end: Int64,
        skip: Int64 = 0,
        proved: Bool = true
    ) -> AnswerVerdict {
        .append(kept, range: ByteRange(start: start, end: end), skip: skip, proved: proved)
    }

    private static let parts: [Part] = [
        Part(
            what: "the rest",
            fields: [("Content-Range", "bytes 400-999/1000"), ("ETag", "\"a\""), ("Content-Length", "600")],
            expected: append(400, 1_000)
        ),
        Part(
            what: "the rest, chunked",
            fields: [
                ("Content-Range", "bytes 400-999/1000"), ("ETag", "\"a\""), ("Transfer-Encoding", "chunked"),
            ],
            expected: append(400, 1_000)
        ),
        Part(
            what: "less than the rest",
            fields: [("Content-Range", "bytes 400-499/1000"), ("ETag", "\"a\"")],
            expected: append(400, 500)
        ),
        Part(
            what: "an early start",
            fields: [("Content-Range", "bytes 256-999/1000"), ("ETag", "\"a\""), ("Content-Length", "744")],
            expected: append(256, 1_000, skip: 144)
        ),
        Part(
            what: "a start at 0",
            fields: [("Content-Range", "bytes 0-999/1000"), ("ETag", "\"a\"")],
            expected: append(0, 1_000, skip: 400)
        ),
        Part(
            what: "an unknown total",
            fields: [("Content-Range", "bytes 400-999/*"), ("ETag", "\"a\"")],
            expected: append(400, 1_000)
        ),
        Part(
            what: "no validator",
            fields: [("Content-Range", "bytes 400-999/1000")],
            expected: append(400, 1_000, proved: false)
        ),
        Part(
            what: "neither validator nor total",
            fields: [("Content-Range", "bytes 400-999/*")],
            expected: append(400, 1_000, proved: false)
        ),
        Part(
            what: "the last byte",
            fields: [("Content-Range", "bytes 999-999/1000"), ("ETag", "\"a\"")],
            offset: 999,
            expected: append(999, 1_000)
        ),
        Part(
            what: "a late start",
            fields: [("Content-Range", "bytes 401-999/1000"), ("ETag", "\"a\"")],
            expected: .askAgain(.unusableRange)
        ),
        Part(
            what: "an end before the offset",
            fields: [("Content-Range", "bytes 0-399/1000"), ("ETag", "\"a\"")],
            expected: .askAgain(.tooShort)
        ),
        Part(
            what: "another tag",
            fields: [("Content-Range", "bytes 400-999/1000"), ("ETag", "\"b\"")],
            expected: .askAgain(.changed)
        ),
        Part(
            what: "a weakened tag",
            fields: [("Content-Range", "bytes 400-999/1000"), ("ETag", "W/\"a\"")],
            expected: .askAgain(.changed)
        ),
        Part(
            what: "a larger total",
            fields: [("Content-Range", "bytes 400-999/1001"), ("ETag", "\"a\"")],
            expected: .askAgain(.changed)
        ),
        Part(
            what: "a smaller total",
            fields: [("Content-Range", "bytes 200-299/300"), ("ETag", "\"a\"")],
            expected: .askAgain(.changed)
        ),
        Part(
            what: "a total as large as the offset",
            fields: [("Content-Range", "bytes 0-399/400")],
            expected: .askAgain(.changed)
        ),
        Part(
            what: "bytes beyond the stored total",
            fields: [("Content-Range", "bytes 400-1000/*"), ("ETag", "\"a\"")],
            expected: .askAgain(.changed)
        ),
        Part(what: "no range", fields: [("ETag", "\"a\"")], expected: .askAgain(.unusableRange)),
        Part(
            what: "another unit",
            fields: [("Content-Range", "lines 400-999/1000"), ("ETag", "\"a\"")],
            expected: .askAgain(.unusableRange)
        ),
        Part(
            what: "an invalid range",
            fields: [("Content-Range", "bytes 400-1000/1000"), ("ETag", "\"a\"")],
            expected: .askAgain(.unusableRange)
        ),
        Part(
            what: "the form of a 416",
            fields: [("Content-Range", "bytes */1000"), ("ETag", "\"a\"")],
            expected: .askAgain(.unusableRange)
        ),
        Part(
            what: "two ranges",
            fields: [("Content-Range", "bytes 400-999/1000"), ("Content-Range", "bytes 0-99/1000")],
            expected: .askAgain(.unusableRange)
        ),
        Part(
            what: "many parts",
            fields: [("Content-Type", "multipart/byteranges; boundary=x"), ("Content-Length", "700")],
            expected: .askAgain(.unusableRange)
        ),
        Part(
            what: "many parts with a range",
            fields: [("Content-Type", "Multipart/ByteRanges"), ("Content-Range", "bytes 400-999/1000")],
            expected: .askAgain(.unusableRange)
        ),
        Part(
            what: "a coding",
            fields: [
                ("Content-Range", "bytes 400-999/1000"), ("ETag", "\"a\""), ("Content-Encoding", "gzip"),
            ],
            expected: .askAgain(.encoded)
        ),
        Part(
            what: "an unproved page",
            fields: [("Content-Range", "bytes 400-999/1000"), ("Content-Type", "text/html")],
            expected: .askAgain(.changed)
        ),
        Part(
            what: "a length that is not the range's",
            fields: [("Content-Range", "bytes 400-999/1000"), ("ETag", "\"a\""), ("Content-Length", "1000")],
            expected: .askAgain(.unusableRange)
        ),
        Part(
            what: "a length below the range's",
            fields: [("Content-Range", "bytes 400-999/1000"), ("ETag", "\"a\""), ("Content-Length", "599")],
            expected: .askAgain(.unusableRange)
        ),
        Part(
            what: "two lengths",
            fields: [
                ("Content-Range", "bytes 400-999/1000"), ("ETag", "\"a\""), ("Content-Length", "600, 601"),
            ],
            expected: .bad("the server sent two different lengths, 600 and 601")
        ),
        Part(
            what: "a part unasked",
            fields: [("Content-Range", "bytes 0-999/1000"), ("ETag", "\"a\"")],
            offset: 0,
            expected: .bad("the server sent a part of the file without being asked for one")
        ),
    ]

    @Test(arguments: parts)
    func `a 206 is used only if it fits`(part: Part) {
        #expect(self.judge(part.head, offset: part.offset) == part.expected)
    }

    @Test func `a 206 without anything stored is of no use`() {
        let answer = head(206, ["Content-Range": "bytes 400-999/1000", "ETag": "\"a\""])
        #expect(self.judge(answer, offset: 400, stored: nil) == .askAgain(.unusableRange))
    }

    @Test func `a 206 of an object stored in a coding is of no use`() {
        let coded = Self.object("\"a\"", total: nil) { $0.contentEncoding = "gzip" }
        let answer = head(
            206,
            ["Content-Range": "bytes 400-999/1000", "ETag": "\"a\"", "Content-Encoding": "gzip"]
        )
        #expect(self.judge(answer, offset: 400, stored: coded) == .askAgain(.encoded))
    }

    @Test func `another date restarts, an equal strong one proves`() {
        let dated = Self.object(nil, total: 1_000) {
            $0.lastModified = "Mon, 30 Nov 2026 11:00:00 GMT"
            $0.lastModifiedIsStrong = true
        }
        let range = "bytes 400-999/1000"
        let equal = head(206, ["Content-Range": range, "Last-Modified": "Mon, 30 Nov 2026 11:00:00 GMT"])
        let other = head(206, ["Content-Range": range, "Last-Modified": "Mon, 30 Nov 2026 11:00:01 GMT"])
        guard case .append(_, _, _, proved: true) = self.judge(equal, offset: 400, stored: dated) else {
            Issue.record("not appended")
            return
        }
        #expect(self.judge(other, offset: 400, stored: dated) == .askAgain(.changed))
    }

    @Test func `a 206 adds the total, and validators only with proof`() {
        let tagged = Self.object("\"a\"", total: nil)
        let proof = head(
            206,
            ["Content-Range": "bytes 400-999/1000", "ETag": "\"a\"", "Last-Modified": "x"]
        )
        let unproved = head(206, ["Content-Range": "bytes 400-999/1000", "Last-Modified": "x"])
        guard case .append(let known, _, _, proved: true) = self.judge(proof, offset: 400, stored: tagged),
            case .append(let guessed, _, _, proved: false) = self.judge(unproved, offset: 400, stored: tagged)
        else {
            Issue.record("not appended")
            return
        }
        #expect(known.totalBytes == 1_000)
        #expect(known.lastModified == "x")
        #expect(guessed.totalBytes == 1_000)
        #expect(guessed.lastModified == nil)
    }

    @Test func `offsets near the end of 64 bits do not overflow`() {
        let huge = Self.object("\"a\"", total: nil)
        let answer = head(
            206,
            ["Content-Range": "bytes 0-999999999999999998/999999999999999999", "ETag": "\"a\""]
        )
        #expect(self.judge(answer, offset: .max, stored: huge) == .askAgain(.changed))
        #expect(self.judge(head(416, ["Content-Range": "bytes */1"]), offset: .max) == .askAgain(.changed))
        #expect(
            self.judge(head(200), offset: .min, stored: nil)
                == .whole(RemoteObject(), length: nil, restart: nil)
        )
    }

    // MARK: 200

    @Test func `a first answer is taken whole`() {
        let answer = head(
            200,
            ["Content-Length": "1000", "ETag": "\"a\"", "Content-Type": "application/zip"]
        )
        #expect(
            self.judge(answer, offset: 0, stored: nil) == .whole(Self.stored, length: 1_000, restart: nil)
        )
        #expect(self.judge(answer, offset: 0) == .whole(Self.stored, length: 1_000, restart: nil))
        let chunked = head(200, ["Transfer-Encoding": "chunked", "Content-Length": "7"])
        #expect(
            self.judge(chunked, offset: 0, stored: nil) == .whole(RemoteObject(), length: nil, restart: nil)
        )
    }

    @Test(arguments: [1, 400, 999, 1_000, 1_001] as [Int64])
    func `a 200 to a range request starts anew, also if its length equals the offset`(offset: Int64) {
        let type = "application/zip"
        let same = head(200, ["Content-Length": "1000", "ETag": "\"a\"", "Content-Type": type])
        #expect(
            self.judge(same, offset: offset) == .whole(Self.stored, length: 1_000, restart: .rangesIgnored)
        )
        let other = head(200, ["Content-Length": "\(offset)", "ETag": "\"b\"", "Content-Type": type])
        #expect(
            self.judge(other, offset: offset)
                == .whole(Self.object("\"b\"", total: offset), length: offset, restart: .changed)
        )
        let unknown = head(200, ["Content-Length": "1000", "Content-Type": type])
        #expect(
            self.judge(unknown, offset: offset)
                == .whole(Self.object(nil, total: 1_000), length: 1_000, restart: .changed)
        )
    }

    @Test func `a coded 200 is taken whole, its length not being the object's`() {
        let answer = head(
            200,
            [
                "Content-Length": "300", "Content-Encoding": "GZIP", "ETag": "\"a\"",
                "Content-Type": "application/zip",
            ]
        )
        let coded = Self.object("\"a\"", total: nil) { $0.contentEncoding = "gzip" }
        #expect(self.judge(answer, offset: 0, stored: nil) == .whole(coded, length: 300, restart: nil))
        #expect(self.judge(answer, offset: 400) == .whole(coded, length: 300, restart: .encoded))
    }

    @Test(arguments: ["5, 6", "+5", "5abc", ""])
    func `a 200 whose length contradicts itself is bad`(length: String) {
        guard case .bad = self.judge(head(200, ["Content-Length": length]), offset: 0, stored: nil) else {
            Issue.record("taken")
            return
        }
    }

    @Test func `a 200 that names a part is no whole file`() {
        let part = head(200, ["Content-Range": "bytes 400-999/1000", "ETag": "\"a\""])
        #expect(self.judge(part, offset: 400) == .askAgain(.unusableRange))
        #expect(
            self.judge(part, offset: 0, stored: nil)
                == .bad("the server sent a part of the file as the whole")
        )
        let short = head(200, ["Content-Range": "bytes 0-499/1000"])
        #expect(
            self.judge(short, offset: 0, stored: nil)
                == .bad("the server sent a part of the file as the whole")
        )
        let whole = head(200, ["Content-Range": "bytes 0-999/1000", "Content-Length": "1000"])
        guard case .whole(_, length: 1_000, restart: nil) = self.judge(whole, offset: 0, stored: nil) else {
            Issue.record("refused")
            return
        }
    }

    @Test(
        arguments: ["text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml"],
        [0, 400] as [Int64]
    )
    func `a web page does not replace a file without proof`(type: String, offset: Int64) {
        let page = head(200, ["Content-Type": type, "Content-Length": "5120"])
        let bad = AnswerVerdict.bad("the server sent a web page instead of the file")
        #expect(self.judge(page, offset: offset) == bad)
        let tagged = head(200, ["Content-Type": type, "ETag": "\"b\""])
        #expect(self.judge(tagged, offset: offset) == bad)
        #expect(self.judge(page, offset: offset, stored: Self.object("\"a\"", total: nil, type: nil)) == bad)
        let proved = head(200, ["Content-Type": type, "ETag": "\"a\""])
        #expect(self.judge(proved, offset: offset) != bad)
        #expect(
            self.judge(page, offset: offset, stored: Self.object("\"a\"", total: 9, type: "text/html")) != bad
        )
        #expect(self.judge(page, offset: offset, stored: RemoteObject()) != bad)
        #expect(self.judge(page, offset: offset, stored: nil) != bad)
    }

    // MARK: 416 and the others

    @Test(
        arguments: [
            (["Content-Range": "bytes */1000"], 1_000, .complete),
            (["Content-Range": "bytes */1000", "ETag": "\"a\""], 1_000, .complete),
            (["Content-Range": "bytes */1000", "ETag": "\"b\""], 1_000, .askAgain(.changed)),
            (["Content-Range": "bytes */1000", "ETag": "\"a\""], 400, .askAgain(.unusableRange)),
            (["Content-Range": "bytes */300"], 400, .askAgain(.changed)),
            (["Content-Range": "bytes */400"], 400, .askAgain(.changed)),
            (["Content-Range": "bytes */2000"], 1_000, .askAgain(.changed)),
            (["Content-Range": "bytes 0-999/1000"], 1_000, .askAgain(.unusableRange)),
            (["Content-Range": "rubbish"], 1_000, .askAgain(.unusableRange)),
            ([:], 1_000, .askAgain(.unusableRange)),
        ] as [([String: String], Int64, AnswerVerdict)]
    )
    func `a 416 is the end only if nothing speaks against it`(
        fields: [String: String],
        offset: Int64,
        expected: AnswerVerdict
    ) {
        let fields = fields.map { ResponseHead.Field(name: $0.key, value: $0.value) }
        #expect(self.judge(ResponseHead(status: 416, fields: fields), offset: offset) == expected)
    }

    @Test func `a 416 tells the size of an object whose size was unknown`() {
        let unknown = Self.object("\"a\"", total: nil)
        let answer = head(416, ["Content-Range": "bytes */400"])
        #expect(self.judge(answer, offset: 400, stored: unknown) == .complete)
        #expect(self.judge(answer, offset: 300, stored: unknown) == .askAgain(.unusableRange))
        #expect(self.judge(answer, offset: 400, stored: nil) == .askAgain(.unusableRange))
    }

    @Test(
        arguments: [
            ("bytes */100", .askAgain(.changed)),
            ("bytes */300", .askAgain(.changed)),
            ("bytes */399", .askAgain(.changed)),
            ("bytes */400", .askAgain(.unusableRange)),
            ("bytes */401", .askAgain(.unusableRange)),
        ] as [(String, AnswerVerdict)]
    )
    func `a 416 to an overlap never completes what is longer`(range: String, expected: AnswerVerdict) {
        let answer = head(416, ["Content-Range": range])
        let stored = RemoteObject()
        let verdict = ResumePlan.judge(answer, offset: 300, overlap: 100, stored: stored, now: now)
        #expect(verdict == expected)
    }

    @Test func `every status has its verdict`() {
        for offset in [0, 400] as [Int64] {
            for status in -1...1_000 {
                let verdict = self.judge(head(status), offset: offset)
                switch status {
                case 200, 203:
                    guard case .whole = verdict else {
                        Issue.record("\(status): \(verdict)")
                        continue
                    }
                case 301, 302, 303, 307, 308:
                    #expect(verdict == .redirect)
                case 206 where offset > 0, 416 where offset > 0:
                    #expect(verdict == .askAgain(.unusableRange))
                case 412 where offset > 0:
                    #expect(verdict == .askAgain(.changed))
                case ..<300, 304, 600...:
                    guard case .bad = verdict else {
                        Issue.record("\(status): \(verdict)")
                        continue
                    }
                default:
                    #expect(verdict == .refused)
                }
            }
        }
    }
}

@Suite struct WebPagePlanTests {
    @Test(
        arguments: [
            ("/a/file.zip", nil, "text/html", [302], true),
            ("/a/file.zip", nil, "Text/HTML; charset=x", [303], true),
            ("/a/file.zip", nil, "application/xhtml+xml", [307], true),
            ("/a/file.zip", nil, "text/html", [301, 302], true), ("/a/file.zip", nil, "text/html", [], false),
            ("/a/file.zip", nil, "text/html", [301, 308], false),
            ("/a/file.zip", nil, "application/zip", [302], false), ("/a/file.zip", nil, nil, [302], false),
            ("/a/page.html", nil, "text/html", [302], false), ("/a/page.PHP", nil, "text/html", [302], false),
            ("/a/page", nil, "text/html", [302], false), ("/a.b/", nil, "text/html", [302], false),
            ("/a/file%2Ezip", nil, "text/html", [302], true), ("/.zip", nil, "text/html", [302], false),
            ("/a/file.", nil, "text/html", [302], false), ("/get?f=a.zip", nil, "text/html", [302], false),
            ("/get", "data.tar.gz", "text/html", [302], true),
            ("/a/file.zip", "page.html", "text/html", [302], false),
            ("/a/file.zip", "/home/x/page.htm", "text/html", [302], false),
            ("", nil, "text/html", [302], false),
            ("/%zz.zip", nil, "text/html", [302], true), ("/a/file.zip", "file", "text/html", [302], true),
            ("/a/page.html", "/home/x.d/page", "text/html", [302], false),
            ("/a/page", "page", "text/html", [302], false),
        ] as [(String, String?, String?, [Int], Bool)]
    )
    func `a page for a file after a temporary redirect is suspicious`(
        path: String,
        output: String?,
        type: String?,
        statuses: [Int],
        expected: Bool
    ) {
        #expect(
            WebPagePlan.isSuspicious(
                requestedURLPath: path,
                outputName: output,
                contentType: type,
                redirectStatuses: statuses
            ) == expected
        )
    }
}
