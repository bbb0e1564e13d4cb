/// A clock on a wall somewhere: by how much it is ahead of UTC, and when that changes.
///
/// The rules are those of the place where a command was given, read off there once and kept with the job; the
/// service's own time zone plays no part.
public struct LocalClock: Hashable, Sendable {
    /// The clock is put forward or back.
    public struct Change: Hashable, Sendable {
        /// When.
        public let time: Timestamp
        /// Seconds ahead of UTC from then on.
        public let offset: Int

        /// Makes a change.
        public init(time: Timestamp, offset: Int) {
            self.time = time
            self.offset = offset
        }
    }

    /// Seconds ahead of UTC before the first change.
    public let offset: Int
    /// The changes in order of time; the last one holds for ever.
    public let changes: [Change]

    /// Makes a clock.
    public init(offset: Int, changes: [Change] = []) {
        self.offset = offset
        self.changes = changes
    }

    /// How long ahead the rules of a place are read off.
    public static let horizon = Duration.seconds(10 * 366 * 86_400)
    /// Between two changes lies more than this: the shortest are those round Ramadan, a month apart.
    private static let stride = Duration.seconds(7 * 86_400)

    /// Reads a clock off a function that gives seconds ahead of UTC at a moment (localtime(3)).
    ///
    /// - Parameters:
    ///   - now: The rules are wanted from a few days before this on, for ``horizon``.
    ///   - offset: The function.
    public init(now: Timestamp, offset: (Timestamp) -> Int) {
        var time = now + (.zero - Self.stride)
        let end = now + Self.horizon
        let first = offset(time)
        var current = first
        var changes: [Change] = []
        while time < end {
            let next = time + Self.stride
            let then = offset(next)
            if then != current {
                var (before, after) = (time.milliseconds / 1_000, next.milliseconds / 1_000)
                while after - before > 1 {
                    let middle = (before + after) / 2
                    let isAfter = offset(Timestamp(milliseconds: middle * 1_000)) != current
                    (before, after) = isAfter ? (before, middle) : (middle, after)
                }
                changes.append(Change(time: Timestamp(milliseconds: after * 1_000), offset: then))
                current = then
            }
            time = next
        }
        self.init(offset: first, changes: changes)
    }

    /// Seconds ahead of UTC at a moment.
    public func offset(at time: Timestamp) -> Int {
        self.changes.last { $0.time <= time }?.offset ?? self.offset
    }

    /// Milliseconds since the epoch as the clock shows them, as if they were UTC.
    func shown(at time: Timestamp) -> Int64 {
        time.milliseconds + Int64(self.offset(at: time)) * 1_000
    }

    /// The moments at which the clock shows a local time: none where it skips it, two where it goes back over it.
    func moments(shown: Int64) -> [Timestamp] {
        Set([self.offset] + self.changes.map(\.offset)).map { offset in
            Timestamp(milliseconds: shown - Int64(offset) * 1_000)
        }.filter { self.shown(at: $0) == shown }
    }
}

extension LocalClock {
    /// `3600` or `3600 1774746000:7200 …`: seconds ahead, then each change in seconds since the epoch.
    var text: String {
        ([String(self.offset)] + self.changes.map { "\($0.time.milliseconds / 1_000):\($0.offset)" })
            .joined(separator: " ")
    }

    /// Reads ``text``.
    init?(text: some StringProtocol) {
        let words = text.split(separator: " ")
        guard let first = words.first.flatMap({ Int($0) }) else { return nil }
        var changes: [Change] = []
        for word in words.dropFirst() {
            let parts = word.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, let time = Int64(parts[0]), let offset = Int(parts[1]) else { return nil }
            changes.append(Change(time: Timestamp(milliseconds: time * 1_000), offset: offset))
        }
        self.init(offset: first, changes: changes)
    }
}
