import FerryCore
import Testing

@Suite struct HTTPDateTests {
    private static let example = Timestamp(year: 1994, month: 11, day: 6, hour: 8, minute: 49, second: 37)

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun Nov 06 08:49:37 1994", "Mon, 06 Nov 1994 08:49:37 GMT", "sun, 06 nov 1994 08:49:37 gmt",
        "Sun, 06-Nov-1994 08:49:37 GMT", "Sun,  6 Nov 1994 08:49:37 UTC", " Sun, 06 Nov 1994 08:49:37 GMT ",
    ])
    func `all forms of one moment are read alike`(text: String) {
        #expect(HTTPDate.parse(text, now: now) == Self.example)
    }

    @Test(arguments: [
        ("Tuesday, 01-Dec-76 12:00:00 GMT", 1976), ("Monday, 30-Nov-76 12:00:00 GMT", 2076),
        ("Monday, 30-Nov-76 12:00:01 GMT", 1976), ("Friday, 01-Jan-77 00:00:00 GMT", 1977),
        ("Friday, 31-Dec-99 23:59:59 GMT", 1999), ("Saturday, 01-Jan-00 00:00:00 GMT", 2000),
        ("Friday, 01-Jan-27 00:00:00 GMT", 2027),
    ])
    func `a year of two digits is not more than 50 years ahead`(text: String, year: Int) {
        #expect(HTTPDate.parse(text, now: now)?.civil.date.year == year)
    }

    @Test func `near the end of a century the next one is meant`() {
        let later = Timestamp(year: 2099, month: 6, day: 1)
        #expect(HTTPDate.parse("Saturday, 01-Jan-01 00:00:00 GMT", now: later)?.civil.date.year == 2101)
    }

    @Test func `second 60 is the next minute`() {
        #expect(
            HTTPDate.parse("Sat, 31 Dec 2016 23:59:60 GMT", now: now)
                == Timestamp(year: 2017, month: 1, day: 1)
        )
    }

    @Test(
        arguments: [
            "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 +0000",
            "06 Nov 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT", "Wed, 29 Feb 2023 00:00:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov 19940 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT GMT", "Sun, -6 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z",
            "Sun, 06--Nov-94 08:49:37 GMT", "0", "-1", "Fri, 31 Dec 9999 23:59:60 GMT",
        ] + nastyTexts
    )
    func `anything else is no date`(text: String) {
        #expect(HTTPDate.parse(text, now: now) == nil)
    }

    @Test(arguments: [
        (Timestamp(milliseconds: 0), "Thu, 01 Jan 1970 00:00:00 GMT"),
        (example, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (Timestamp(milliseconds: -1_000), "Wed, 31 Dec 1969 23:59:59 GMT"),
        (
            Timestamp(year: 2024, month: 2, day: 29, hour: 23, minute: 59, second: 59),
            "Thu, 29 Feb 2024 23:59:59 GMT"
        ),
        (Timestamp(milliseconds: now.milliseconds + 999), "Mon, 30 Nov 2026 12:00:00 GMT"),
    ])
    func `dates are written as IMF-fixdate`(time: Timestamp, text: String) {
        #expect(HTTPDate.format(time) == text)
    }

    @Test func `what is written is read back`() {
        for day in stride(from: -40_000 as Int64, through: 80_000, by: 37) {
            let time = Timestamp(milliseconds: day * 86_400_000 + (day & 0xFFFF) * 1_000)
            #expect(HTTPDate.parse(HTTPDate.format(time), now: now) == time)
        }
    }
}

@Suite struct RetryAfterTests {
    private static let year = Duration.seconds(365 * 86_400)

    @Test(
        arguments: [
            ("0", .zero), ("1", .seconds(1)), (" 120\t", .seconds(120)), ("007", .seconds(7)), ("000", .zero),
            ("-5", .zero), ("-99999999999999999999999", .zero), ("31535999", .seconds(31_535_999)),
            ("31536000", year), ("99999999999999999999999999999", year), ("9223372036854775807", year),
            ("00000000000000000000000000005", .seconds(5)),
            ("Mon, 30 Nov 2026 12:01:30 GMT", .seconds(90)), ("Monday, 30-Nov-26 12:01:30 GMT", .seconds(90)),
            ("Mon Nov 30 12:01:30 2026", .seconds(90)), ("Mon, 30 Nov 2026 11:59:59 GMT", .zero),
            ("Sun, 06 Nov 1994 08:49:37 GMT", .zero), ("Fri, 31 Dec 9999 23:59:59 GMT", year),
            ("", nil), ("soon", nil), ("1.5", nil), ("+5", nil), ("5s", nil), ("-", nil), ("1 2", nil),
            ("- 5", nil),
            ("0x10", nil), ("٣", nil),
        ] as [(String, Duration?)]
    )
    func `seconds and dates are read`(text: String, expected: Duration?) {
        #expect(RetryAfter.parse(text, responseDate: nil, now: now) == expected)
    }

    @Test func `a date is measured by the server's clock`() {
        let skewed = now + .seconds(3_600)
        let pause = RetryAfter.parse("Mon, 30 Nov 2026 13:00:20 GMT", responseDate: skewed, now: now)
        #expect(pause == .seconds(20))
        #expect(RetryAfter.parse("20", responseDate: skewed, now: now) == .seconds(20))
    }

    @Test(arguments: nastyTexts)
    func `no text is too strange`(text: String) {
        let pause = RetryAfter.parse(text, responseDate: now, now: now)
        #expect(pause.map { $0 >= .zero && $0 <= Self.year } ?? true)
    }
}
