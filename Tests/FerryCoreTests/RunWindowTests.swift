import FerryCore
import Testing

/// Berlin in 2026: an hour forward on 29 March at 01:00 UTC, and back on 25 October at 01:00 UTC.
private let berlin = LocalClock(
    offset: 3_600,
    changes: [
        LocalClock.Change(time: at("2026-03-29T01:00:00Z"), offset: 7_200),
        LocalClock.Change(time: at("2026-10-25T01:00:00Z"), offset: 3_600),
    ]
)

/// A clock that once put a whole day forward, as Samoa's did at the end of 29 December 2011.
private let apia = LocalClock(
    offset: -36_000,
    changes: [LocalClock.Change(time: at("2011-12-30T10:00:00Z"), offset: 50_400)]
)

private func at(_ text: String) -> Timestamp {
    guard let time = Timestamp(rfc3339: text) else { preconditionFailure("\(text) is no time") }
    return time
}

@Suite struct RunWindowTests {
    struct Row: Sendable, CustomStringConvertible {
        var hours: String
        var clock: LocalClock
        var now: String
        var isOpen: Bool
        var opening: String
        var closing: String
        var description: String { "\(self.hours) at \(self.now)" }

        init(
            _ hours: String,
            _ clock: LocalClock = berlin,
            at now: String,
            _ isOpen: Bool,
            _ ends: (String, String)
        ) {
            self.hours = hours
            self.clock = clock
            self.now = now
            self.isOpen = isOpen
            (self.opening, self.closing) = ends
        }
    }

    private static let utc = LocalClock(offset: 0)

    private static let table: [Row] = [
        // A day like any other, and each of its ends.
        Row(
            "09:00-17:00",
            utc,
            at: "2026-01-10T08:59:59.999Z",
            false,
            ("2026-01-10T09:00:00Z", "2026-01-10T17:00:00Z")
        ),
        Row(
            "09:00-17:00",
            utc,
            at: "2026-01-10T09:00:00Z",
            true,
            ("2026-01-11T09:00:00Z", "2026-01-10T17:00:00Z")
        ),
        Row(
            "09:00-17:00",
            utc,
            at: "2026-01-10T16:59:59.999Z",
            true,
            ("2026-01-11T09:00:00Z", "2026-01-10T17:00:00Z")
        ),
        Row(
            "09:00-17:00",
            utc,
            at: "2026-01-10T17:00:00Z",
            false,
            ("2026-01-11T09:00:00Z", "2026-01-11T17:00:00Z")
        ),
        // Over midnight, over the end of a year, and up to midnight.
        Row(
            "22:00-06:00",
            utc,
            at: "2026-12-31T21:59:00Z",
            false,
            ("2026-12-31T22:00:00Z", "2027-01-01T06:00:00Z")
        ),
        Row(
            "22:00-06:00",
            utc,
            at: "2026-12-31T23:59:00Z",
            true,
            ("2027-01-01T22:00:00Z", "2027-01-01T06:00:00Z")
        ),
        Row(
            "22:00-06:00",
            utc,
            at: "2027-01-01T00:00:00Z",
            true,
            ("2027-01-01T22:00:00Z", "2027-01-01T06:00:00Z")
        ),
        Row(
            "22:00-06:00",
            utc,
            at: "2027-01-01T06:00:00Z",
            false,
            ("2027-01-01T22:00:00Z", "2027-01-02T06:00:00Z")
        ),
        Row(
            "18:00-24:00",
            utc,
            at: "2026-05-05T23:00:00Z",
            true,
            ("2026-05-06T18:00:00Z", "2026-05-06T00:00:00Z")
        ),
        Row(
            "00:00-23:59",
            utc,
            at: "2026-05-05T23:59:30Z",
            false,
            ("2026-05-06T00:00:00Z", "2026-05-06T23:59:00Z")
        ),
        // The clock of the place counts, in winter and in summer.
        Row(
            "22:00-06:00",
            at: "2026-01-10T12:00:00Z",
            false,
            ("2026-01-10T21:00:00Z", "2026-01-11T05:00:00Z")
        ),
        Row(
            "22:00-06:00",
            at: "2026-07-10T12:00:00Z",
            false,
            ("2026-07-10T20:00:00Z", "2026-07-11T04:00:00Z")
        ),
        Row(
            "22:00-06:00",
            LocalClock(offset: -34_200),
            at: "2026-01-10T07:00:00Z",
            false,
            ("2026-01-10T07:30:00Z", "2026-01-10T15:30:00Z")
        ),
        // The night on which the clock is put forward is an hour shorter; 02:00 to 03:00 are not shown.
        Row(
            "22:00-06:00",
            at: "2026-03-28T22:00:00Z",
            true,
            ("2026-03-29T20:00:00Z", "2026-03-29T04:00:00Z")
        ),
        Row(
            "02:30-05:00",
            at: "2026-03-29T00:30:00Z",
            false,
            ("2026-03-29T01:00:00Z", "2026-03-29T03:00:00Z")
        ),
        Row(
            "01:00-02:30",
            at: "2026-03-29T00:30:00Z",
            true,
            ("2026-03-29T23:00:00Z", "2026-03-29T01:00:00Z")
        ),
        Row(
            "02:10-02:50",
            at: "2026-03-29T00:30:00Z",
            false,
            ("2026-03-30T00:10:00Z", "2026-03-30T00:50:00Z")
        ),
        // The night on which it is put back is an hour longer; 02:00 to 03:00 are shown twice.
        Row(
            "22:00-06:00",
            at: "2026-10-24T22:00:00Z",
            true,
            ("2026-10-25T21:00:00Z", "2026-10-25T05:00:00Z")
        ),
        Row(
            "02:30-02:40",
            at: "2026-10-25T00:00:00Z",
            false,
            ("2026-10-25T00:30:00Z", "2026-10-25T00:40:00Z")
        ),
        Row(
            "02:30-02:40",
            at: "2026-10-25T00:40:00Z",
            false,
            ("2026-10-25T01:30:00Z", "2026-10-25T01:40:00Z")
        ),
        Row(
            "02:30-02:40",
            at: "2026-10-25T01:40:00Z",
            false,
            ("2026-10-26T01:30:00Z", "2026-10-26T01:40:00Z")
        ),
        Row(
            "01:30-02:30",
            at: "2026-10-25T00:00:00Z",
            true,
            ("2026-10-25T01:00:00Z", "2026-10-25T00:30:00Z")
        ),
        // A day that never was, and one before the epoch.
        Row(
            "12:00-13:00",
            apia,
            at: "2011-12-30T00:00:00Z",
            false,
            ("2011-12-30T22:00:00Z", "2011-12-30T23:00:00Z")
        ),
        Row(
            "09:00-17:00",
            utc,
            at: "1969-12-31T18:00:00Z",
            false,
            ("1970-01-01T09:00:00Z", "1970-01-01T17:00:00Z")
        ),
    ]

    @Test(arguments: table)
    func `a window opens and closes by the clock of its place`(row: Row) throws {
        let window = try #require(RunWindow(row.hours, clock: row.clock))
        let now = at(row.now)
        #expect(window.isOpen(at: now) == row.isOpen)
        #expect(window.opening(after: now) == at(row.opening))
        #expect(window.closing(after: now) == at(row.closing))
    }

    @Test(arguments: [
        "", "22:00", "22:00-", "-06:00", "22:00-22:00", "00:00-24:00", "24:00-06:00", "22:60-06:00",
        "25:00-06:00",
        "22:00-06:00-07:00", "22-06", "22:0-06:00", "022:00-06:00", "22:00 - 06:00", "+2:00-06:00", "none",
        "a:bc-d:ef",
    ])
    func `what is no window`(text: String) {
        #expect(RunWindow(text, clock: Self.utc) == nil)
    }

    @Test(arguments: [
        ("22:00-06:00", "22:00-06:00"), ("9:05-17:00", "09:05-17:00"), ("18:00-24:00", "18:00-00:00"),
    ])
    func `hours are shown with two digits`(text: String, hours: String) {
        #expect(RunWindow(text, clock: Self.utc)?.hours == hours)
    }

    @Test(arguments: [utc, berlin, apia])
    func `a window is stored as one text with its clock`(clock: LocalClock) throws {
        let window = try #require(RunWindow("22:00-06:00", clock: clock))
        #expect(RunWindow(stored: window.description) == window)
    }

    @Test(arguments: ["", "22:00-06:00", "22:00-06:00 ", "22:00-06:00 x", "22:00-06:00 1 2", "22:00-22:00 0"])
    func `a stored text that is none`(text: String) {
        #expect(RunWindow(stored: text) == nil)
    }

    /// Each opening leads to a closing and back, without an end.
    @Test(arguments: ["22:00-06:00", "02:30-02:31", "00:00-23:59"])
    func `a year of openings and closings`(hours: String) throws {
        let window = try #require(RunWindow(hours, clock: berlin))
        var time = at("2026-01-01T12:00:00Z")
        for _ in 1...366 {
            let opening = window.opening(after: time)
            let closing = window.closing(after: opening)
            #expect(opening > time && closing > opening)
            #expect(window.isOpen(at: opening) && !window.isOpen(at: closing))
            #expect(opening - time <= .seconds(49 * 3_600))
            time = closing
        }
    }

    @Test func `a clock is read off to the second`() {
        let read = LocalClock(now: at("2026-01-15T10:11:12.345Z")) { berlin.offset(at: $0) }
        #expect(read == berlin)
        let steady = LocalClock(now: at("2026-01-15T00:00:00Z")) { _ in 20_700 }
        #expect(steady == LocalClock(offset: 20_700))
    }
}
