/// How long a connection may take to be made before its job gives its place to one that waits.
///
/// From the times that connections have taken it follows how long the next one should take at most, as TCP estimates
/// when a segment is lost (RFC 6298 §2), within the bounds that RFC 8305 §8 sets for the time after which another
/// address is tried. Those that were too slow get a longer time at their second try, and all of it at the third.
public struct ConnectPatience: Hashable, Sendable {
    /// The time while no connection was made yet (RFC 6298 §2.1).
    public static let initial = Duration.seconds(1)
    /// The shortest time (RFC 8305 §8, "Minimum Connection Attempt Delay").
    public static let least = Duration.milliseconds(100)
    /// The longest time (RFC 8305 §8, "Maximum Connection Attempt Delay").
    public static let most = Duration.seconds(2)

    private var mean: Duration?
    private var deviation = Duration.zero

    /// Begins without any knowledge.
    public init() {}

    /// Takes up how long a new connection took, from the look-up of the name to the request.
    public mutating func took(_ time: Duration) {
        guard let mean = self.mean else {
            self.mean = time
            self.deviation = time / 2
            return
        }
        let error = time < mean ? mean - time : time - mean
        self.deviation = (self.deviation * 3 + error) / 4
        self.mean = (mean * 7 + time) / 8
    }

    /// The time for a host that has not failed to answer.
    public var first: Duration {
        guard let mean = self.mean else { return Self.initial }
        return min(max(mean + self.deviation * 4, Self.least), Self.most)
    }

    /// The time for a host that was silent once: enough for a first packet that was lost (RFC 6298 §2.1).
    public var second: Duration { max(Self.most, self.first * 2) }
}
