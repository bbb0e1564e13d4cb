/// What a request is doing, from the look-up of the name to the end of the answer.
public enum ExchangePhase: String, Hashable, Sendable, CaseIterable {
    /// A name is looked up.
    case resolving
    /// A connection is made.
    case connecting
    /// TLS is negotiated.
    case securing
    /// The request's body leaves.
    case sending
    /// All was sent, and the head of the answer has not come.
    case answer
    /// The answer's body comes.
    case body

    /// The phase as a sentence ends with it: "no byte for 60s while …".
    public var text: String {
        switch self {
        case .resolving: "the name was looked up"
        case .connecting: "the connection was made"
        case .securing: "TLS was negotiated"
        case .sending: "the body was sent"
        case .answer: "the answer was waited for"
        case .body: "the body was received"
        }
    }
}

/// Watches one exchange for silence, and for a trickle that is as good as silence.
///
/// Any byte in either direction is life, and so is the next phase. What we ourselves hold up counts for nothing:
/// see ``hold(at:)``.
public struct StallWatch: Hashable, Sendable {
    /// The lowest rate, in bytes a second, over ``windows`` times the limit.
    public static let lowestRate: Int64 = 10
    /// How many limits the rate is taken over.
    public static let windows = 5
    /// How many limits an answer to a body that has left may take: servers work on what they were given.
    public static let answerWindows = 5
    /// The limit for what ran while the machine slept, until a byte comes.
    public static let limitAfterSleep = Duration.seconds(10)

    /// Why an exchange counts as stalled.
    public enum Stall: Hashable, Sendable {
        /// Not one byte.
        case silence(Duration)
        /// Less than ``lowestRate``.
        case trickle(Duration)

        /// `no byte for 60s` or `less than 10 bytes a second for 5m 00s`.
        public var text: String {
            switch self {
            case .silence(let time): "no byte for \(DurationText.format(time))"
            case .trickle(let time):
                "less than \(StallWatch.lowestRate) bytes a second for \(DurationText.format(time))"
            }
        }
    }

    /// What was seen of an exchange.
    public struct Sight: Hashable, Sendable {
        /// What it does.
        public var phase: ExchangePhase
        /// Bytes that have come, heads included, and bytes that the peer has taken.
        public var bytes: Int64
        /// Whether the request has a body, whose answer may take longer.
        public var hasBody: Bool

        /// Makes a sight.
        public init(phase: ExchangePhase, bytes: Int64, hasBody: Bool = false) {
            self.phase = phase
            self.bytes = bytes
            self.hasBody = hasBody
        }
    }

    private struct Sample: Hashable {
        let time: Duration
        let bytes: Int64
    }

    private let limit: Duration
    private var last: Sight?
    private var aliveAt: Duration
    private var samples: [Sample] = []
    private var sleptSince = false

    /// Begins a watch.
    ///
    /// - Parameters:
    ///   - limit: How long silence may last; zero is for ever.
    ///   - now: A clock that only goes forward.
    public init(limit: Duration, now: Duration) {
        self.limit = limit
        self.aliveAt = now
    }

    /// Whether it ran while the machine slept, and has given no sign of life since.
    public var isDoubtfulSinceSleep: Bool { self.sleptSince }

    /// How often ``look(_:at:)`` should be called.
    public var interval: Duration {
        guard self.limit > .zero else { return .seconds(1) }
        return min(.seconds(1), max(.milliseconds(20), self.limit / 8))
    }

    /// Judges what is seen now.
    public mutating func look(_ sight: Sight, at now: Duration) -> Stall? {
        guard let last = self.last else {
            self.last = sight
            self.samples = [Sample(time: now, bytes: sight.bytes)]
            return nil
        }
        let isOther = sight.phase != last.phase
        if isOther || sight.bytes > last.bytes {
            self.aliveAt = now
            self.sleptSince = false
            self.last = sight
        }
        let silence = now - self.aliveAt
        if self.sleptSince, silence >= Self.limitAfterSleep { return .silence(silence) }
        guard self.limit > .zero else { return nil }
        let isAnswering = sight.phase == .answer && sight.hasBody
        if silence >= (isAnswering ? self.limit * Self.answerWindows : self.limit) {
            return .silence(silence)
        }
        // The other phases have no bytes of their own.
        guard sight.phase == .body || sight.phase == .sending, !isOther else {
            self.samples = [Sample(time: now, bytes: sight.bytes)]
            return nil
        }
        return self.rate(sight.bytes, at: now)
    }

    /// Says that we ourselves let nothing flow: no memory is free, a checkpoint is awaited, or a limit is used up.
    public mutating func hold(at now: Duration) {
        self.aliveAt = now
        self.samples = []
        self.last = nil
    }

    /// Says that the machine has slept: a connection that is dead shows that soon.
    public mutating func slept(at now: Duration) {
        self.aliveAt = now
        self.samples = []
        self.sleptSince = true
    }

    private mutating func rate(_ bytes: Int64, at now: Duration) -> Stall? {
        guard let newest = self.samples.last, let oldest = self.samples.first else {
            self.samples = [Sample(time: now, bytes: bytes)]
            return nil
        }
        let (span, window) = (now - oldest.time, self.limit * Self.windows)
        let seconds = Double(window.components.seconds) + Double(window.components.attoseconds) / 1e18
        if span >= window, Double(bytes - oldest.bytes) < Double(Self.lowestRate) * seconds {
            return .trickle(span)
        }
        if now - newest.time >= self.limit { self.samples.append(Sample(time: now, bytes: bytes)) }
        // The window slides by one limit at a time.
        while self.samples.count > 1, now - self.samples[1].time >= window {
            self.samples.removeFirst()
        }
        return nil
    }
}
