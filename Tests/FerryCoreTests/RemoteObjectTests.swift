import FerryCore
import Testing

@Suite struct EntityTagTests {
    @Test(arguments: [
        ("\"a\"", false, true), ("\"\"", false, true), ("W/\"a\"", true, true), ("\"a-gzip\"", false, true),
        ("\"!#~\"", false, true), ("w/\"a\"", false, false), ("a", false, false), ("W/a", true, false),
        ("\"", false, false), ("\"a", false, false), ("a\"", false, false), ("\"a\"b\"", false, false),
        ("\"a b\"", false, false), ("\"a\", \"b\"", false, false), ("", false, false), ("W/", true, false),
        ("\"é\"", false, false), ("\"a\u{7F}\"", false, false), ("'a'", false, false), ("W/\"\"", true, true),
    ])
    func `tags are sorted by strength and form`(raw: String, isWeak: Bool, isWellFormed: Bool) {
        let tag = EntityTag(raw)
        #expect(tag.raw == raw)
        #expect(tag.isWeak == isWeak)
        #expect(tag.isWellFormed == isWellFormed)
        #expect(tag.isStrong == (isWellFormed && !isWeak))
    }
}

@Suite struct RemoteObjectTests {
    private static let date = "Mon, 30 Nov 2026 11:00:00 GMT"

    @Test func `the head tells what the object is`() {
        let object = RemoteObject(
            head: head(
                200,
                [
                    "ETag": "\"a\"", "last-modified": Self.date, "Date": "Mon, 30 Nov 2026 12:00:00 GMT",
                    "Content-Type": "Application/ZIP; charset=x", "Accept-Ranges": "Bytes",
                    "Content-Encoding": "identity",
                ]
            ),
            totalBytes: 5,
            now: now
        )
        var expected = RemoteObject()
        expected.totalBytes = 5
        expected.entityTag = "\"a\""
        expected.lastModified = Self.date
        expected.lastModifiedIsStrong = true
        expected.contentType = "application/zip"
        expected.acceptsRanges = true
        #expect(object == expected)
        #expect(object.isResumable)
    }

    @Test func `an empty head tells nothing`() {
        let object = RemoteObject(
            head: head(200, ["ETag": "", "Content-Type": ";x"]),
            totalBytes: nil,
            now: now
        )
        #expect(object == RemoteObject())
        #expect(object.validator == nil)
        #expect(object.ifRange == nil)
        #expect(!object.isResumable)
    }

    @Test(
        arguments: [
            ("Mon, 30 Nov 2026 10:59:59 GMT", false), ("Mon, 30 Nov 2026 11:00:00 GMT", false),
            ("Mon, 30 Nov 2026 11:00:01 GMT", true), ("Mon, 30 Nov 2026 11:01:00 GMT", true),
            ("Monday, 30-Nov-26 11:00:01 GMT", true), ("rubbish", false), (nil, false),
        ] as [(String?, Bool)]
    )
    func `a date is strong if the answer is a second younger`(made: String?, isStrong: Bool) {
        var answer = head(200, ["Last-Modified": Self.date])
        if let made { answer.fields.append(ResponseHead.Field(name: "Date", value: made)) }
        let object = RemoteObject(head: answer, totalBytes: 1, now: now)
        #expect(object.lastModifiedIsStrong == isStrong)
        #expect(object.ifRange == (isStrong ? Self.date : nil))
        #expect(object.validator == Validator(kind: .lastModified, value: Self.date, isStrong: isStrong))
    }

    @Test(
        arguments: [
            ("\"a\"", true, "\"a\""), ("W/\"a\"", true, nil), ("a", true, nil), (nil, true, date),
            (nil, false, nil),
            ("\"\"", false, "\"\""), ("\"é\"", true, nil),
        ] as [(String?, Bool, String?)]
    )
    func `If-Range is a strong tag, or a strong date without any tag`(
        tag: String?,
        strong: Bool,
        ifRange: String?
    ) {
        var object = RemoteObject()
        object.entityTag = tag
        object.lastModified = Self.date
        object.lastModifiedIsStrong = strong
        #expect(object.ifRange == ifRange)
        #expect(object.isResumable == (ifRange != nil))
        object.acceptsRanges = true
        #expect(object.isResumable == (ifRange != nil))
        object.acceptsRanges = false
        #expect(!object.isResumable)
        object.acceptsRanges = nil
        object.contentEncoding = "gzip"
        #expect(!object.isResumable)
    }

    @Test(
        arguments: [
            (["gzip"], "gzip"), (["GZIP, br"], "gzip, br"), (["identity"], nil), (["identity", "x"], "x"),
            ([""], nil),
        ] as [([String], String?)]
    )
    func `content codings are gathered`(values: [String], expected: String?) {
        let fields = values.map { ResponseHead.Field(name: "Content-Encoding", value: $0) }
        let object = RemoteObject(head: ResponseHead(status: 200, fields: fields), totalBytes: nil, now: now)
        #expect(object.contentEncoding == expected)
    }

    @Test func `two tags in one head prove nothing and still show a change`() {
        let object = RemoteObject(
            head: head(200, ["ETag": "\"a\"", "ETag": "\"b\""]),
            totalBytes: 1,
            now: now
        )
        let one = RemoteObject(head: head(200, ["ETag": "\"a\"", "ETag": "\"a\""]), totalBytes: 1, now: now)
        #expect(object.ifRange == nil)
        #expect(one.ifRange == "\"a\"")
        #expect(one.compare(object) == .different)
        #expect(object.compare(object) == .unproved)
    }

    struct Sight: Sendable {
        var tag: String?
        var date: String?
        var strong = false
        var total: Int64?

        var object: RemoteObject {
            var object = RemoteObject()
            object.entityTag = self.tag
            object.lastModified = self.date
            object.lastModifiedIsStrong = self.strong
            object.totalBytes = self.total
            return object
        }
    }

    @Test(
        arguments: [
            (Sight(tag: "\"a\"", total: 5), Sight(tag: "\"a\"", total: 5), .same),
            (Sight(tag: "\"a\"", total: 5), Sight(tag: "\"a\""), .same),
            (Sight(tag: "\"a\""), Sight(tag: "\"a\"", total: 5), .same),
            (Sight(tag: "\"a\"", total: 5), Sight(tag: "\"a\"", total: 6), .different),
            (Sight(tag: "\"a\"", date: "d"), Sight(tag: "\"a\"", date: "e"), .different),
            (Sight(tag: "\"a\"", total: 5), Sight(tag: "\"b\"", total: 5), .different),
            (Sight(tag: "\"a\""), Sight(tag: "W/\"a\""), .different),
            (Sight(tag: "W/\"a\""), Sight(tag: "W/\"b\""), .different),
            (Sight(tag: "W/\"a\"", total: 5), Sight(tag: "W/\"a\"", total: 5), .unproved),
            (Sight(tag: "W/\"a\"", date: "d", strong: true), Sight(tag: "W/\"a\"", date: "d"), .same),
            (Sight(tag: "a"), Sight(tag: "a"), .unproved), (Sight(tag: "a"), Sight(tag: "b"), .different),
            (Sight(tag: "\"a\"", total: 5), Sight(total: 5), .unproved),
            (Sight(total: 5), Sight(tag: "\"a\"", total: 5), .unproved),
            (Sight(date: "d", strong: true), Sight(date: "d"), .same),
            (Sight(date: "d"), Sight(date: "d", strong: true), .unproved),
            (Sight(date: "d", strong: true), Sight(date: "e", strong: true), .different),
            (Sight(date: "d", strong: true), Sight(), .unproved),
            (Sight(total: 5), Sight(total: 5), .unproved),
            (Sight(strong: true), Sight(strong: true), .unproved), (Sight(), Sight(), .unproved),
            (Sight(total: 5), Sight(total: 4), .different),
        ] as [(Sight, Sight, RemoteObject.Comparison)]
    )
    func `sameness needs a strong validator, a difference only one sign`(
        stored: Sight,
        answer: Sight,
        expected: RemoteObject.Comparison
    ) {
        #expect(stored.object.compare(answer.object) == expected)
    }
}
