/// How much the kernel may hold of a limited download that was not read yet.
///
/// The other side sends until this is full, however slowly we read, so it decides how much comes at once when a
/// transfer begins, and in what lumps the window opens again. It follows the share of the transfer.
struct ReceiveBuffer {
    /// Bytes, as SO_RCVBUF tells them: about half of it is the window that the other side sees (tcp(7),
    /// *tcp_adv_win_scale*), all of it where segments are large; nil is up to the kernel.
    private(set) var size: Int?
    private var lookedAt = Duration.zero
    /// What the kernel held at the last look.
    private var queued = 0

    /// A window of at least one segment of an Ethernet.
    static let smallest = 4_096
    /// More is of no use: a kernel allows a few MiB (tcp(7), *tcp_rmem*).
    static let largest = 64 << 20
    /// How long a size stays.
    static let interval = Duration.milliseconds(50)

    /// The size for a share: an eighth of a second's bytes, and on long ways four times what is under way.
    ///
    /// The window opens in halves of itself, which is half of this in turn.
    static func size(at share: Int64, roundTrip: Duration) -> Int {
        let (seconds, attoseconds) = roundTrip.components
        let trip = min(1, max(0, Double(seconds) + Double(attoseconds) / 1e18))
        return Self.limited(Double(share) * max(0.125, 4 * trip))
    }

    /// The size that a transfer begins with: little, for the first of many has the share of all until they come.
    ///
    /// Where the share allows it the ten segments fit that a server sends at first (RFC 6928 §2), so that small files
    /// come as fast as ever.
    static func firstSize(at share: Int64) -> Int {
        Self.limited(max(Double(share) / 64, min(20_480, Double(share) / 16)))
    }

    private static func limited(_ size: Double) -> Int {
        Int(min(Double(Self.largest), max(Double(Self.smallest), size)))
    }

    /// Begins with a share.
    mutating func begin(at share: Int64, now: Duration) {
        self.size = Self.firstSize(at: share)
        self.lookedAt = now
    }

    /// Whether it is time to ask ``follow(_:roundTrip:now:)``.
    func isDue(now: Duration) -> Bool { self.size == nil || now - self.lookedAt >= Self.interval }

    /// Follows a share that others change by coming and going: up to the double of it at a time.
    ///
    /// - Returns: The size that is wanted now; nil if it stays.
    mutating func follow(_ share: Int64, roundTrip: Duration, now: Duration) -> Int? {
        self.lookedAt = now
        let wanted = Self.size(at: share, roundTrip: roundTrip)
        // Small changes are not worth a system call.
        if let size, wanted >= size - size / 8, wanted <= size + size / 8 { return nil }
        self.size = min(wanted, 2 * (self.size ?? wanted))
        return self.size
    }

    /// Takes the size for a share at once, for a limit was changed; without one the kernel decides again.
    mutating func change(to share: Int64?, roundTrip: Duration, now: Duration) {
        self.lookedAt = now
        self.size = share.map { Self.size(at: $0, roundTrip: roundTrip) }
        self.queued = 0
    }

    /// How small a buffer may be made on the way to a smaller one.
    ///
    /// What was promised to the other side still comes, and a kernel drops what has no room, which its peer takes for
    /// a loss: it would wait ever longer before it sends again. So the buffer stays while it fills, and then shrinks
    /// as it is read, with no room for more. ``size`` is then what it really is, so that it is looked at again.
    ///
    /// - Parameters:
    ///   - wanted: The size that suits the share.
    ///   - current: The size that the kernel tells.
    ///   - queued: What the kernel holds, by its own account.
    /// - Returns: The size to set.
    mutating func shrink(to wanted: Int, current: Int, queued: Int) -> Int {
        defer { self.queued = queued }
        // A little more than there is, which opens no window: kernels open one from a 16th of the size on.
        let next = queued > self.queued ? current : max(wanted, min(current, queued + queued / 32 + 1_024))
        self.size = next
        return next
    }
}
