import Testing

@testable import FerryCore

/// Limits by day and time, and rates as texts.
@Suite struct RateCalendarTests {
    private static let weekdays = RateCalendar.Entry(
        days: [0, 1, 2, 3, 4],
        from: 480,
        to: 1_080,
        down: .limited(1_000),
        up: .limited(10)
    )
    private static let nights = RateCalendar.Entry(days: [4, 6], from: 1_320, to: 360, down: .unlimited)
    private static let always = RateCalendar.Entry(down: .limited(5_000))

    @Test(arguments: [
        (0, 479, RateChoice.limited(5_000), RateChoice.unsaid),
        (0, 480, .limited(1_000), .limited(10)),
        (4, 1_079, .limited(1_000), .limited(10)),
        (4, 1_080, .limited(5_000), .unsaid),
        (5, 600, .limited(5_000), .unsaid),
        (4, 1_319, .limited(5_000), .unsaid),
        (4, 1_320, .unlimited, .unsaid),  // Friday evening
        (5, 359, .unlimited, .unsaid),  // and the night to Saturday
        (5, 360, .limited(5_000), .unsaid),
        (5, 1_400, .limited(5_000), .unsaid),
        (6, 1_439, .unlimited, .unsaid),  // over the end of the week
        (0, 0, .unlimited, .unsaid),
        (0, 360, .limited(5_000), .unsaid),
    ])
    func `the first entry that holds decides`(_ day: Int, _ minute: Int, _ down: RateChoice, _ up: RateChoice)
    {
        let calendar = RateCalendar([Self.weekdays, Self.nights, Self.always])
        let time = LocalMinute(day: day, minute: minute)
        #expect(calendar.down(at: time) == down)
        #expect(calendar.up(at: time) == up)
        #expect(RateCalendar().down(at: time) == .unsaid)
    }

    @Test func `a time that ends when it begins is a whole day`() {
        let entry = RateCalendar.Entry(days: [2], from: 600, to: 600, up: .unlimited)
        let times = [(2, 599), (2, 600), (3, 0), (3, 599), (3, 600)]
        #expect(
            times.map { entry.holds(at: LocalMinute(day: $0.0, minute: $0.1)) } == [
                false, true, true, true, false,
            ]
        )
    }

    @Test(arguments: [
        ("2026-11-30T00:00:00Z", 0, 0, 0),
        ("2026-11-30T18:25:59Z", 0, 0, 1_105),
        ("2026-11-30T23:30:00Z", 3_600, 1, 30),
        ("2026-11-30T00:30:00Z", -3_600, 6, 1_410),
        ("2026-11-30T00:00:00Z", 20_700, 0, 345),  // Nepal
        ("1970-01-01T00:00:00Z", 0, 3, 0),
        ("1969-12-31T23:59:59Z", 0, 2, 1_439),
        // Berlin: from 02:00 to 03:00 on March 29, back from 03:00 to 02:00 on October 25.
        ("2026-03-29T00:59:00Z", 3_600, 6, 119),
        ("2026-03-29T01:00:00Z", 7_200, 6, 180),
        ("2026-10-25T00:30:00Z", 7_200, 6, 150),
        ("2026-10-25T01:30:00Z", 3_600, 6, 150),
    ])
    func `a moment is a minute of the week`(_ text: String, _ offset: Int, _ day: Int, _ minute: Int) throws {
        let time = try #require(Timestamp(rfc3339: text))
        #expect(LocalMinute(at: time, offset: offset) == LocalMinute(day: day, minute: minute))
    }

    // MARK: Texts

    @Test(
        arguments: [
            ("mon", [0], "mon"), ("mon-fri", [0, 1, 2, 3, 4], "mon-fri"), ("sat,sun", [5, 6], "sat-sun"),
            ("Fri-Mon", [0, 4, 5, 6], "mon,fri-sun"), ("mon, wed-thu", [0, 2, 3], "mon,wed-thu"),
            ("sun-sat", [0, 1, 2, 3, 4, 5, 6], "mon-sun"), ("tue-tue", [1], "tue"),
        ] as [(String, Set<Int>, String)]
    )
    func `days are read and written`(_ text: String, _ days: Set<Int>, _ written: String) {
        #expect(CalendarText.days(text) == days)
        #expect(CalendarText.text(of: days) == written)
    }

    @Test(arguments: ["", ",", "mon,", "monday", "mon-", "-fri", "mon-tue-wed", "1-5", "mo"])
    func `what are no days`(text: String) {
        #expect(CalendarText.days(text) == nil)
    }

    @Test(
        arguments: [
            ("00:00", 0), ("8:05", 485), ("23:59", 1_439), ("24:00", 1_440), ("24:01", nil), ("25:00", nil),
            ("12:60", nil), ("12", nil), ("12:5", nil), ("12:005", nil), ("-1:00", nil), ("", nil),
            (":30", nil),
            ("12:30:00", nil),
        ] as [(String, Int?)]
    )
    func `times are read`(_ text: String, _ minute: Int?) {
        #expect(CalendarText.minute(text) == minute)
        if let minute, text.utf8.count == 5 { #expect(CalendarText.text(ofMinute: minute) == text) }
    }

    @Test(
        arguments: [
            ("10M", .limited(10 << 20)), ("500K", .limited(512_000)), ("1.5MB", .limited(1_500_000)),
            ("4096", .limited(4_096)), ("0", .unlimited), ("0K", .unlimited), ("none", .unlimited),
            ("None", .unlimited), ("", nil), ("fast", nil), ("-5", nil), ("10Mbit", nil), ("10M/s", nil),
            ("1.5", nil), ("default", nil),
        ] as [(String, RateChoice?)]
    )
    func `rates are read`(_ text: String, _ choice: RateChoice?) {
        #expect(RateText.parse(text) == choice)
    }

    @Test(
        arguments: [
            (1, "1"), (1_000, "1000"), (1_024, "1K"), (10 << 20, "10M"), (3 << 30, "3G"), (1 << 40, "1T"),
            (1_536, "1536"), (1_500_000, "1500000"),
        ] as [(Int64, String)]
    )
    func `rates are written so that they read back`(_ bytes: Int64, _ text: String) {
        #expect(RateText.exact(bytes) == text)
        #expect(RateText.parse(text) == .limited(bytes))
    }

    @Test(arguments: [
        (RateChoice.unsaid, RateChoice.limited(5), RateChoice.limited(5)),
        (.unlimited, .limited(5), .unlimited), (.limited(1), .unlimited, .limited(1)),
        (.unsaid, .unsaid, .unsaid),
    ])
    func `what is said wins over what is weaker`(
        _ own: RateChoice,
        _ weaker: RateChoice,
        _ result: RateChoice
    ) {
        #expect(own.over(weaker) == result)
    }
}
