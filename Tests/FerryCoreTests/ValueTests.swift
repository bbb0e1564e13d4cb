import FerryCore
import Testing

@Suite struct TimestampTests {
    @Test(
        arguments: [
            ("2026-11-30T12:00:00Z", 0), ("2026-11-30t12:00:00z", 0), ("2026-11-30 12:00:00Z", 0),
            ("2026-11-30T13:00:00+01:00", 0), ("2026-11-30T06:30:00-05:30", 0),
            ("2026-11-30T12:00:00.5Z", 500),
            ("2026-11-30T12:00:00.123456789Z", 123), ("2026-11-30T11:59:60Z", 0),
            ("2026-12-01T11:59:59+24:00", nil),
            ("2026-11-30T12:00:00", nil), ("2026-11-30", nil), ("2026-11-30T12:00:00.Z", nil),
            ("2026-11-31T12:00:00Z", nil), ("2026-02-30T12:00:00Z", nil), ("2023-02-29T00:00:00Z", nil),
            ("2026-13-01T12:00:00Z", nil), ("2026-00-01T12:00:00Z", nil), ("2026-11-30T24:00:00Z", nil),
            ("2026-11-30T12:60:00Z", nil), ("2026-11-30T12:00:61Z", nil), ("2026-11-30T12:00:00+0100", nil),
            ("2026-11-30T12:00:00ZZ", nil), ("+026-11-30T12:00:00Z", nil),
            ("9999-12-31T23:59:59-00:01", nil), ("9999-12-31T23:59:60Z", nil),
            ("0000-01-01T00:00:00+00:01", nil),
        ] as [(String, Int64?)]
    )
    func `RFC 3339 times are read`(text: String, milliseconds: Int64?) {
        let time = Timestamp(rfc3339: text)
        #expect(time?.milliseconds == milliseconds.map { now.milliseconds + $0 })
    }

    @Test(arguments: nastyTexts)
    func `no text is too strange`(text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
        #expect(JobID(text).map { $0.rawValue > 0 } ?? true)
    }

    @Test func `what is written is read back`() {
        for step in Int64(-500)...500 {
            let time = Timestamp(milliseconds: step * 49_999_999_937)
            #expect(Timestamp(rfc3339: time.description) == time)
        }
        #expect(Timestamp(milliseconds: -1).description == "1969-12-31T23:59:59.999Z")
    }

    @Test func `a leap second at the end of a month is the next minute`() {
        #expect(Timestamp(rfc3339: "2016-12-31T23:59:60Z") == Timestamp(year: 2017, month: 1, day: 1))
    }

    @Test func `times and durations add up`() {
        #expect(now + .milliseconds(1_500) - now == .milliseconds(1_500))
        #expect(now + .milliseconds(-1) < now)
    }
}

@Suite struct JobIDTests {
    @Test(
        arguments: [
            ("1", 1), ("0012", 12), ("9223372036854775807", .max), ("0", nil), ("-1", nil), ("+1", nil),
            ("", nil),
            ("1 ", nil), ("9223372036854775808", nil), ("١", nil), ("1.0", nil),
        ] as [(String, Int64?)]
    )
    func `numbers are read as typed`(text: String, value: Int64?) {
        #expect(JobID(text)?.rawValue == value)
    }
}

@Suite struct VocabularyTests {
    @Test func `fields are found without case, in order`() {
        let answer = head(200, ["ETag": "a", "X": "b", "etag": "c"])
        #expect(answer.values("eTaG") == ["a", "c"])
        #expect(answer.first("ETAG") == "a")
        #expect(answer.first("y") == nil)
    }

    @Test func `a byte range is half open`() {
        let range = ByteRange(start: 2, end: 5)
        #expect(range.count == 3)
        #expect(!range.isEmpty)
        #expect(ByteRange(start: 2, end: 2).isEmpty)
        #expect(range.description == "2..<5")
    }

    @Test func `the words of states and reasons are the manual's`() {
        #expect(
            JobState.allCases.map(\.rawValue)
                == ["queued", "running", "waiting", "paused", "failed", "completed", "cancelled"]
        )
        #expect(
            FailureReason.allCases.map(\.rawValue) == [
                "not-found", "forbidden", "unauthorized", "link-expired", "changed", "source-changed",
                "checksum",
                "too-large", "policy", "tls", "bad-response", "local-io", "exists", "unsupported",
                "dependency",
                "gave-up", "server",
            ]
        )
        #expect(
            WaitReason.allCases.map(\.rawValue) == ["retry", "host", "network", "schedule", "disk", "auth"]
        )
        #expect(JobState.allCases.filter(\.isEnded) == [.failed, .completed, .cancelled])
        #expect(JobState.allCases.filter(\.isFinal) == [.completed, .cancelled])
    }
}
