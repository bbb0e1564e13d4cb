/// A minute of the week in local time.
public struct LocalMinute: Hashable, Sendable {
    /// From 0, Monday, to 6.
    public let day: Int
    /// Minutes since midnight by the clock on the wall, from 0.
    public let minute: Int

    /// Makes a minute.
    public init(day: Int, minute: Int) {
        self.day = day
        self.minute = minute
    }

    /// The minute of a moment where local time is so many seconds ahead of UTC.
    public init(at time: Timestamp, offset: Int) {
        let seconds = Int((Double(time.milliseconds) / 1_000).rounded(.down)) + offset
        let day = Int((Double(seconds) / 86_400).rounded(.down))
        // The first day of 1970 was a Thursday.
        self.init(day: ((day + 3) % 7 + 7) % 7, minute: (seconds - day * 86_400) / 60)
    }
}

/// Limits on bytes a second by day of the week and time of day (`limits.calendar`).
///
/// It is asked what the clock on the wall shows and knows no dates: when clocks are put forward, the hour that is left
/// out counts for nothing, and when they are put back, the one that comes twice counts twice.
public struct RateCalendar: Hashable, Sendable {
    /// One line of the calendar.
    public struct Entry: Hashable, Sendable {
        /// The days on which it begins, from 0, Monday.
        public var days: Set<Int>
        /// The first minute of the day.
        public var from: Int
        /// The minute that is no longer in it, up to 1440; one that is not after ``from`` is of the next day.
        public var to: Int
        /// The limit of what comes.
        public var down: RateChoice
        /// The limit of what goes.
        public var up: RateChoice

        /// Makes an entry for the whole week that says nothing.
        public init(
            days: Set<Int> = Set(0...6),
            from: Int = 0,
            to: Int = 1_440,
            down: RateChoice = .unsaid,
            up: RateChoice = .unsaid
        ) {
            self.days = days
            self.from = from
            self.to = to
            self.down = down
            self.up = up
        }

        /// Whether it holds at that time.
        public func holds(at time: LocalMinute) -> Bool {
            if self.from < self.to {
                return self.days.contains(time.day) && time.minute >= self.from && time.minute < self.to
            }
            return self.days.contains(time.day) && time.minute >= self.from
                || self.days.contains((time.day + 6) % 7) && time.minute < self.to
        }
    }

    /// The entries; the first one that holds and says something of a direction decides about it.
    public var entries: [Entry]

    /// Makes a calendar; the default says nothing.
    public init(_ entries: [Entry] = []) {
        self.entries = entries
    }

    /// What holds for what comes at that time.
    public func down(at time: LocalMinute) -> RateChoice { self.choice(at: time, \.down) }

    /// What holds for what goes at that time.
    public func up(at time: LocalMinute) -> RateChoice { self.choice(at: time, \.up) }

    private func choice(at time: LocalMinute, _ direction: KeyPath<Entry, RateChoice>) -> RateChoice {
        for entry in self.entries where entry.holds(at: time) && entry[keyPath: direction] != .unsaid {
            return entry[keyPath: direction]
        }
        return .unsaid
    }
}

/// Reads and writes the days and times of a calendar.
public enum CalendarText {
    /// Days as they are written, Monday first.
    static let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

    /// Reads days: `mon-fri`, `sat,sun`, `fri-mon`; nil if it is none.
    public static func days(_ text: String) -> Set<Int>? {
        var days: Set<Int> = []
        for part in ASCII.lowercased(text).split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false).map { end in
                self.names.firstIndex(of: String(end.drop { $0 == " " }))
            }
            guard let first = ends.first ?? nil, let last = ends.last ?? nil, ends.count <= 2 else {
                return nil
            }
            for step in 0...(last + 7 - first) % 7 { days.insert((first + step) % 7) }
        }
        return days
    }

    /// Days as they could be written.
    public static func text(of days: Set<Int>) -> String {
        var parts: [String] = []
        var day = 0
        while day < 7 {
            guard days.contains(day) else {
                day += 1
                continue
            }
            var last = day
            while last < 6, days.contains(last + 1) { last += 1 }
            parts.append(last == day ? self.names[day] : "\(self.names[day])-\(self.names[last])")
            day = last + 1
        }
        return parts.joined(separator: ",")
    }

    /// Reads `HH:MM`, up to `24:00`, as minutes since midnight; nil if it is none.
    public static func minute(_ text: String) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].count), parts[1].count == 2,
            let hour = ASCII.number(Array(parts[0].utf8)[...]),
            let minute = ASCII.number(Array(parts[1].utf8)[...]), minute < 60
        else { return nil }
        let total = Int(hour * 60 + minute)
        return total <= 1_440 ? total : nil
    }

    /// Minutes since midnight as `HH:MM`.
    public static func text(ofMinute minute: Int) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(two(minute / 60)):\(two(minute % 60))"
    }
}
