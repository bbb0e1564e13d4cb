/// Lets so many bytes a second pass: tokens flow in at the rate and are kept up to a small burst.
///
/// Whoever finds a token may take more than there are. The bucket then owes, and stays closed until that has flowed
/// in, so no byte is lost or given away however large the pieces are. All arithmetic is exact, and time comes in as
/// nanoseconds of a clock that does not go back.
public struct TokenBucket: Sendable {
    /// The highest rate, 1 TiB a second; more is no limit.
    public static let rateLimit: Int64 = 1 << 40

    /// Bytes a second, from 1.
    public private(set) var rate: Int64
    /// Bytes times a billion.
    private var level: Int128
    /// The same, of what somebody waited for and was too late to take.
    private var saved: Int128 = 0
    private var refilledAt: Int64

    private static let second: Int128 = 1_000_000_000

    /// Makes a full bucket.
    public init(rate: Int64, at now: Int64) {
        self.rate = min(max(1, rate), Self.rateLimit)
        self.refilledAt = now
        self.level = 0
        self.level = self.capacity
    }

    /// What is kept at most: a twentieth of a second, and so much that a small file passes at once.
    public var burst: Int64 { max(16 * 1_024, self.rate / 20) }

    private var capacity: Int128 { Int128(self.burst) * Self.second }

    /// Lets flow in what is due.
    ///
    /// What is more than the burst is lost, but where somebody has waited for it: then the machine was too busy to
    /// wake him in time, and up to a second's bytes are saved and come back a little at a time, a sixteenth of the
    /// rate. So a busy machine changes the rate neither in the long run nor in any second by much.
    public mutating func refill(at now: Int64, isAwaited: Bool = false) {
        guard now > self.refilledAt else { return }
        let due = Int128(now - self.refilledAt) * Int128(self.rate)
        let back = min(self.saved, due / 16)
        self.refilledAt = now
        self.level += due + back
        self.saved -= back
        let excess = self.level - self.capacity
        guard excess > 0 else { return }
        self.level = self.capacity
        if isAwaited { self.saved = min(self.saved + excess, Int128(self.rate) * Self.second) }
    }

    /// Changes the rate from now on; what is owed is forgotten but for a quarter of a second.
    ///
    /// Else a transfer that took its last piece at a high rate would stand still for long at a low one.
    public mutating func setRate(_ rate: Int64, at now: Int64) {
        self.refill(at: now)
        self.rate = min(max(1, rate), Self.rateLimit)
        self.level = min(max(self.level, -Int128(self.rate) * Self.second / 4), self.capacity)
        self.saved = 0
    }

    /// Whether bytes may pass.
    public var isOpen: Bool { self.level > 0 }

    /// Whether it is worth waking somebody: four milliseconds of the rate are there.
    public var isReady: Bool { self.level > 0 && self.level >= self.readyLevel }

    /// When it will be ready if nobody takes anything; the last refill's time if it is.
    public var readyAt: Int64 {
        let lack = max(1, self.readyLevel) - self.level
        guard lack > 0 else { return self.refilledAt }
        let wait = (lack + Int128(self.rate) - 1) / Int128(self.rate)
        return self.refilledAt + Int64(clamping: wait)
    }

    private var readyLevel: Int128 { Int128(self.rate) * Self.second / 250 }

    /// Takes tokens, even more than there are; a negative number gives some back.
    public mutating func take(_ bytes: Int) {
        self.level = min(self.level - Int128(bytes) * Self.second, self.capacity)
    }
}
