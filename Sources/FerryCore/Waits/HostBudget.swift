/// How many jobs may go to one host and port, and when: one budget for all of them.
///
/// Events in, and out comes whether a job may start now. A pause that the host asked for, and one that follows from
/// several failures in a row, holds for everyone; when it is over one job goes first, and only when that is answered
/// do the others follow, a few at a time. The number of jobs at once is halved by each refusal and grows by one with
/// each answer, as TCP does with its window (RFC 5681 §3.1), and with time, for bytes that flow are no refusal either.
/// It holds no clock.
public struct HostBudget: Hashable, Sendable {
    /// Why a host is left alone.
    public enum Trouble: String, Hashable, Sendable, Codable {
        /// It asked for it.
        case asked
        /// It has answered that it cannot, several times in a row.
        case overloaded
        /// It has not answered, several times in a row.
        case unreachable
    }

    /// Whether a job may start.
    public enum Leave: Hashable, Sendable {
        /// Now.
        case now
        /// Not before then.
        case at(Timestamp)
        /// Not before a job that runs has told something or ended.
        case later
    }

    /// Failures in a row, without an answer between them, from which on it counts as out of order.
    public static let patience = 3
    /// The time between two starts after trouble; it halves with each answer.
    public static let spacing = Duration.milliseconds(500)
    /// How long it takes to allow one more job at once where nothing is answered, for what runs is long.
    public static let growth = Duration.seconds(10)
    /// Below this the time between starts is none.
    private static let leastSpacing = Duration.milliseconds(50)

    private struct Run: Hashable {
        let number: UInt64
        var hasAnswered = false
    }

    /// No request goes there before; nil if it is not left alone.
    public private(set) var pausedUntil: Timestamp?
    /// Why it is left alone, or was until one job has proved that it need not be.
    public private(set) var trouble: Trouble?
    /// How many pauses there were in a row, without an answer between them.
    public private(set) var level = 0
    /// Jobs at once, where that is fewer than the configuration allows.
    public private(set) var window: Int?
    private var failures = 0
    /// How often jobs have given their place up for lack of a connection, without an answer since.
    public private(set) var silences = 0
    private var runs: [JobID: Run] = [:]
    private var starts: UInt64 = 0
    /// Starts up to here have had their effect: of many that failed together one counts.
    private var judged: UInt64 = 0
    /// The same for silence.
    private var silentUpTo: UInt64 = 0
    private var probe: JobID?
    private var gap = Duration.zero
    private var nextStart: Timestamp?
    /// When ``window`` began to grow with time.
    private var grownFrom: Timestamp?

    /// A host of which nothing is known.
    public init() {}

    /// A host as it was left, with what was stored of it.
    public init(pausedUntil: Timestamp?, level: Int, trouble: Trouble?) {
        guard pausedUntil != nil || level > 0 else { return }
        self.pausedUntil = pausedUntil
        self.level = level
        self.trouble = trouble ?? .asked
        self.failures = self.trouble == .asked ? 0 : Self.patience
        self.window = 1
        self.gap = Self.spacing
    }

    /// Jobs that run.
    public var running: Int { self.runs.count }
    /// Whether it has failed since it last answered.
    public var isSuspect: Bool { self.doubt > 0 || self.trouble == .unreachable }
    /// How much there is against it: it grows with each failure, pause and silence, and ends with an answer.
    public var doubt: Int { self.failures + self.silences + (self.trouble == .asked ? 0 : self.level) }
    /// Jobs that run without an answer; what others have got says nothing about them.
    public var unanswered: Int { self.runs.values.count { !$0.hasAnswered } }
    /// Whether one job is out to see whether others may follow.
    public var isProbed: Bool { self.probe != nil }
    /// Whether there is nothing to remember.
    public var isPlain: Bool {
        self.runs.isEmpty && self.trouble == nil && self.window == nil && self.doubt == 0
            && self.gap == .zero
    }

    /// No job starts before, as far as it is known; nil if one may now.
    public var opensAt: Timestamp? {
        guard let pausedUntil, let nextStart else { return self.pausedUntil ?? self.nextStart }
        return max(pausedUntil, nextStart)
    }

    /// Whether that job runs.
    public func runs(_ id: JobID) -> Bool { self.runs[id] != nil }

    /// Whether a job may start.
    ///
    /// - Parameters:
    ///   - now: The time by the clock that the other events bring.
    ///   - limit: The jobs at once that the configuration allows.
    /// - Returns: Now, or from when on it is worth asking again.
    public func leave(at now: Timestamp, limit: Int) -> Leave {
        if let pausedUntil, pausedUntil > now { return .at(pausedUntil) }
        if self.trouble != nil { return self.probe == nil ? .now : .later }
        if self.silences > 0, self.unanswered > 0 { return .later }
        let limit = max(1, limit)
        let (window, grows) = self.window(at: now, limit: limit)
        guard self.running < window else { return grows.map { .at($0) } ?? .later }
        if let nextStart, nextStart > now { return .at(nextStart) }
        return .now
    }

    /// Jobs at once, and when there will be one more; nil if only an answer or an end brings that.
    private func window(at now: Timestamp, limit: Int) -> (jobs: Int, grows: Timestamp?) {
        guard let window = self.window else { return (limit, nil) }
        guard let grownFrom else { return (min(window, limit), nil) }
        let steps = max(0, Int((now - grownFrom) / Self.growth))
        guard window + steps < limit else { return (limit, nil) }
        return (window + steps, grownFrom + Self.growth * (steps + 1))
    }

    /// A job starts.
    ///
    /// - Parameters:
    ///   - id: The job.
    ///   - now: The time.
    ///   - random: A number in 0..<1, which varies the time to the next start.
    public mutating func began(_ id: JobID, at now: Timestamp, random: Double) {
        self.starts += 1
        self.runs[id] = Run(number: self.starts)
        if self.trouble != nil, self.probe == nil { self.probe = id }
        if self.window != nil, self.grownFrom == nil { self.grownFrom = now }
        self.nextStart = self.gap > .zero ? now + self.gap * (0.5 + random) : nil
    }

    /// A running job's host has answered; it counts once a job.
    ///
    /// - Returns: Whether anything about pause or trouble has changed.
    public mutating func answered(_ id: JobID, limit: Int) -> Bool {
        guard let run = self.runs[id], !run.hasAnswered else { return false }
        self.runs[id]?.hasAnswered = true
        // Who asked before the trouble began proves nothing about its end.
        guard self.trouble == nil || run.number > self.judged else { return false }
        let hadTrouble = self.trouble != nil || self.level > 0
        self.failures = 0
        self.silences = 0
        self.trouble = nil
        self.pausedUntil = nil
        self.level = 0
        self.probe = nil
        if let window = self.window { self.window = window + 1 >= limit ? nil : window + 1 }
        if self.window == nil { self.grownFrom = nil }
        self.gap = hadTrouble ? self.gap : self.gap / 2
        if self.gap < Self.leastSpacing { self.gap = .zero }
        return hadTrouble
    }

    /// A job has ended.
    ///
    /// - Parameters:
    ///   - id: The job.
    ///   - sign: What it told.
    ///   - now: The time.
    ///   - limit: The jobs at once that the configuration allows.
    ///   - backOff: The pause that follows from that many failures in a row, from 0.
    /// - Returns: Whether pause or trouble has changed.
    public mutating func ended(
        _ id: JobID,
        _ sign: HostSign,
        at now: Timestamp,
        limit: Int,
        backOff: (Int) -> Duration
    ) -> Bool {
        guard let run = self.runs.removeValue(forKey: id) else { return false }
        let wasProbe = self.probe == id
        if wasProbe { self.probe = nil }
        let isFirst = run.number > self.judged
        switch sign {
        case .answered, .nothing:
            return false
        case .silent:
            // Of many that were under way together one counts.
            guard run.number > self.silentUpTo else { return false }
            self.silentUpTo = self.starts
            self.silences += 1
            return false
        case .pause(let pause):
            let until = max(self.pausedUntil ?? now, now + max(pause, backOff(self.level)))
            let isNew = self.trouble != .asked || until != self.pausedUntil
            if isFirst {
                self.shrink(limit, at: now)
                self.level += 1
            }
            self.stop(.asked, until: until)
            return isNew
        case .overloaded, .unreachable:
            self.failures += 1
            guard wasProbe || self.trouble == nil else { return false }
            if isFirst { self.shrink(limit, at: now) }
            if sign == .overloaded { self.gap = Self.spacing }
            guard wasProbe || self.failures >= Self.patience else { return false }
            let delay = backOff(self.level)
            self.level += 1
            self.stop(sign == .overloaded ? .overloaded : .unreachable, until: now + delay)
            return true
        }
    }

    /// Halves the number of jobs at once.
    private mutating func shrink(_ limit: Int, at now: Timestamp) {
        // This one has left already; it was one of those that were too many.
        let current = min(self.window(at: now, limit: limit).jobs, limit, self.running + 1)
        self.window = max(1, current / 2)
        self.grownFrom = now
        self.judged = self.starts
    }

    private mutating func stop(_ trouble: Trouble, until: Timestamp) {
        self.trouble = trouble
        self.pausedUntil = until
        self.judged = self.starts
        self.gap = Self.spacing
        self.nextStart = nil
    }

    /// A person wants a job of it tried now: one goes, as at the end of the pause.
    public mutating func hurry() { self.pausedUntil = nil }

    /// The clock was set, and shows that much more.
    public mutating func shift(by jump: Duration) {
        self.pausedUntil = self.pausedUntil.map { $0 + jump }
        self.nextStart = self.nextStart.map { $0 + jump }
        self.grownFrom = self.grownFrom.map { $0 + jump }
    }

    /// Brings a pause that is further away than any can be to that.
    public mutating func cap(_ longest: Duration, at now: Timestamp) {
        if let pausedUntil, pausedUntil > now + longest { self.pausedUntil = now + longest }
    }
}
