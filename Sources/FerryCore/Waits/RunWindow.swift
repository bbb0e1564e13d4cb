/// The hours at which a job may run (`--window 22:00-06:00`), by the clock of whoever asked for it.
///
/// The window is open whenever that clock shows a time from its beginning, which belongs to it, to its end,
/// which does not. A window whose beginning comes after its end goes over midnight. On a day on which the clock
/// is put forward over the whole window it does not open; one that the clock goes back over opens again.
public struct RunWindow: Hashable, Sendable {
    /// The minute of the day, from 0, at which it opens.
    public let opens: Int
    /// The minute of the day, from 0, at which it closes; another one.
    public let closes: Int
    /// The clock that it goes by.
    public let clock: LocalClock

    private static let day: Int64 = 86_400_000
    private static let minute: Int64 = 60_000

    /// Reads `HH:MM-HH:MM`, where the end may be `24:00`; nil if it is none, or if both ends are the same.
    public init?(_ text: some StringProtocol, clock: LocalClock) {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let opens = Self.minutes(ends[0]), let closes = Self.minutes(ends[1]),
            opens < 1_440, opens != closes % 1_440
        else { return nil }
        self.opens = opens
        self.closes = closes % 1_440
        self.clock = clock
    }

    private static func minutes(_ text: some StringProtocol) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
            parts.allSatisfy({ $0.utf8.allSatisfy { (48...57).contains($0) } }),
            let hour = Int(parts[0]), let minute = Int(parts[1]), minute < 60,
            hour < 24 || (hour == 24 && minute == 0)
        else { return nil }
        return hour * 60 + minute
    }

    /// `22:00-06:00`.
    public var hours: String {
        func clock(_ minutes: Int) -> String { "\(pad(minutes / 60, 2)):\(pad(minutes % 60, 2))" }
        return "\(clock(self.opens))-\(clock(self.closes))"
    }

    /// Whether a job may run at a moment.
    public func isOpen(at time: Timestamp) -> Bool {
        let shown = self.clock.shown(at: time) % Self.day
        let minute = Int((shown < 0 ? shown + Self.day : shown) / Self.minute)
        return self.opens < self.closes
            ? self.opens <= minute && minute < self.closes : self.opens <= minute || minute < self.closes
    }

    /// The next moment after `time` at which it opens.
    public func opening(after time: Timestamp) -> Timestamp { self.next(isOpen: true, after: time) }

    /// The next moment after `time` at which it closes.
    public func closing(after time: Timestamp) -> Timestamp { self.next(isOpen: false, after: time) }

    /// The next moment at which it changes to open or closed.
    ///
    /// It changes only where the clock shows one of its ends, and where the clock is put forward or back.
    private func next(isOpen: Bool, after time: Timestamp) -> Timestamp {
        let shown = self.clock.shown(at: time)
        let midnight = shown - (shown % Self.day + Self.day) % Self.day
        // A clock may skip one day as a whole, and the window on the next: more than four are never needed.
        let last = time + .milliseconds(5 * Self.day)
        var moments = self.clock.changes.map(\.time).filter { $0 <= last }
        for day in -1...Int64(4) {
            for end in [self.opens, self.closes] {
                moments += self.clock.moments(shown: midnight + day * Self.day + Int64(end) * Self.minute)
            }
        }
        let change = moments.filter { $0 > time }.sorted().first {
            self.isOpen(at: $0) == isOpen && self.isOpen(at: $0 + .milliseconds(-1)) != isOpen
        }
        return change ?? last
    }
}

extension RunWindow: Codable, CustomStringConvertible {
    /// Hours and clock as one text, from which ``init(stored:)`` makes the window again.
    public var description: String { "\(self.hours) \(self.clock.text)" }

    /// Reads ``description``; nil if it is none.
    public init?(stored text: String) {
        guard let space = text.firstIndex(of: " "),
            let clock = LocalClock(text: text[text.index(after: space)...])
        else { return nil }
        self.init(text[..<space], clock: clock)
    }

    /// Decodes ``description``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let window = RunWindow(stored: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no window")
        }
        self = window
    }

    /// Encodes ``description``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.description)
    }
}
