import FerryCore
import Testing

@Suite struct TimeTextTests {
    /// An hour ahead of UTC, from 2026-11-30T13:30 UTC on two.
    private static func offset(_ time: Timestamp) -> Int {
        time < Timestamp(year: 2026, month: 11, day: 30, hour: 13, minute: 30) ? 3_600 : 7_200
    }

    private static func utc(_ day: Int, _ hour: Int, _ minute: Int = 0) -> Timestamp {
        Timestamp(year: 2026, month: 11, day: day, hour: hour, minute: minute)
    }

    /// The present is noon UTC, so the clock shows 13:00.
    private static let good: [(String, Timestamp)] = [
        ("2026-11-30T20:00:00Z", utc(30, 20)),
        ("2026-11-30T20:00:00+02:00", utc(30, 18)),
        ("2026-11-30", utc(29, 23)),
        ("2026-12-01", Timestamp(year: 2026, month: 11, day: 30, hour: 22)),
        ("13:01", utc(30, 12, 1)),
        ("13:00", Timestamp(year: 2026, month: 12, day: 1, hour: 11)),
        ("9:00", Timestamp(year: 2026, month: 12, day: 1, hour: 7)),
        ("23:59", utc(30, 21, 59)),
        ("+90s", now + .seconds(90)),
        ("+1h30m", now + .seconds(5_400)),
        ("+0s", now),
        ("+1", now + .seconds(1)),
        ("1999-12-31", Timestamp(year: 1999, month: 12, day: 30, hour: 23)),
    ]

    @Test(arguments: good)
    func `a time`(text: String, expected: Timestamp) {
        #expect(TimeText.parse(text, now: now, offset: Self.offset) == expected)
    }

    @Test(
        arguments: [
            "24:00", "12:60", "1:2", "12:", ":30", "12:00:00", "2026-02-30", "2026-13-01", "26-11-30", "+",
            "+1x",
            "-1h", "tomorrow", "2026-11-30T20:00", "2026-11-30 20:00",
        ] + nastyTexts.filter { $0 != "+1" }
    )
    func `no time`(text: String) {
        #expect(TimeText.parse(text, now: now, offset: Self.offset) == nil)
    }
}

@Suite struct NameTests {
    @Test(
        arguments: [
            ("nightly", nil), ("a/b:c@d.e_f-1", nil), ("фото", nil), (String(repeating: "x", count: 64), nil),
            ("", "is empty"), (String(repeating: "x", count: 65), "is longer than 64 bytes"),
            ("-x", "begins with a dash"),
            ("a b", "holds a blank, a comma, a quote or a control character"),
            ("a,b", "holds a blank, a comma, a quote or a control character"),
            ("a\u{202E}b", "holds a blank, a comma, a quote or a control character"),
            ("a\nb", "holds a blank, a comma, a quote or a control character"),
        ] as [(String, String?)]
    )
    func `a group's name`(name: String, problem: String?) {
        #expect(GroupName.problem(name) == problem)
    }

    @Test(
        arguments: [
            ("Example.ORG", "example.org"), ("example.org:8443", "example.org:8443"), ("::1", "[::1]"),
            ("[::1]", "[::1]"), ("[::1]:80", "[::1]:80"), ("10.0.0.1", "10.0.0.1"), ("", nil), (":80", nil),
            ("a:", nil), ("a:0", nil), ("a:65536", nil), ("a:x", nil), ("a/b", nil), ("u@a", nil),
            ("a b", nil),
            ("[]", nil), ("[::1]80", nil), ("https://a", nil),
        ] as [(String, String?)]
    )
    func `a host`(text: String, expected: String?) {
        #expect(HostPattern(text)?.description == expected)
    }

    @Test(arguments: [
        ("a", "a:443", true), ("a", "a", true), ("a:443", "a:443", true), ("a:443", "a:80", false),
        ("a", "aa:443", false), ("::1", "[::1]:80", true), ("[::1]:81", "[::1]:80", false),
    ])
    func `two hosts overlap`(left: String, right: String, expected: Bool) throws {
        let (left, right) = (try #require(HostPattern(left)), try #require(HostPattern(right)))
        #expect(left.overlaps(right) == expected && right.overlaps(left) == expected)
    }
}

@Suite struct JobChangesTests {
    private static let old = JobRequest(
        url: "https://a/f",
        directory: "/d",
        headers: [RequestHeader(name: "A", value: "1"), RequestHeader(name: "B", value: "2")],
        attempts: 3,
        group: "g",
        priority: 1,
        notBefore: now
    )

    @Test func `nothing changes nothing`() {
        #expect(JobChanges().isEmpty)
        #expect(JobChanges().applied(to: Self.old) == Self.old)
        #expect(JobChanges.differences(Self.old, Self.old).isEmpty)
    }

    @Test func `a field replaces those of its name, and one without a value takes them away`() {
        let changes = JobChanges(headers: [
            RequestHeader(name: "a", value: "9"), RequestHeader(name: "C", value: "3"),
            RequestHeader(name: "b", value: ""),
        ])
        #expect(
            changes.applied(to: Self.old).headers == [
                RequestHeader(name: "a", value: "9"), RequestHeader(name: "C", value: "3"),
            ]
        )
    }

    @Test func `all of it at once`() {
        let changes = JobChanges(
            priority: -3,
            group: "h",
            url: "https://b/f",
            headers: [RequestHeader(name: "A", value: "2")],
            allowHTTP: true,
            notBefore: now + .seconds(1),
            output: "/e/x",
            attempts: 0
        )
        let new = changes.applied(to: Self.old)
        #expect(new.priority == -3 && new.group == "h" && new.url == "https://b/f" && new.allowHTTP)
        #expect(new.directory == "/e" && new.output == "/e/x" && new.attempts == 0)
        #expect(
            JobChanges.differences(Self.old, new) == [
                "URL", "header fields", "file", "time", "priority", "group", "attempts",
                "leave for plain http",
            ]
        )
        #expect(JobChanges(output: "/x").applied(to: Self.old).directory == "/")
    }
}
