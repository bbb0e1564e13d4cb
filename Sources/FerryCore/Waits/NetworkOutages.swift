/// Which hosts cannot be reached for lack of a network, since when, and when it is worth a look.
///
/// A look is a transfer's own try. Of the jobs that wait for one host only one looks at a time; the others look when
/// it has been answered. The longer it lasts, the rarer the looks: a route or an address that appears starts the
/// count anew (see ``changed()``), so nothing is lost by patience.
public struct NetworkOutages: Sendable {
    /// The shortest time between two looks at a host.
    public static let shortest = Duration.seconds(30)
    /// The longest.
    public static let longest = Duration.seconds(300)

    private struct Outage {
        var since: Duration
        var lookedAt: Duration
    }

    private var outages: [String: Outage] = [:]

    /// Begins without any.
    public init() {}

    /// Whether every host can be reached, as far as is known.
    public var isEmpty: Bool { self.outages.isEmpty }

    /// The time between two looks in an outage that has lasted so long: as long again, so that it doubles.
    public static func interval(after lasted: Duration) -> Duration {
        min(max(lasted, self.shortest), self.longest)
    }

    /// Takes a failure to reach a host and port, and tells how long to wait for the next look.
    public mutating func failed(_ host: String, at now: Duration) -> Duration {
        let since = self.outages[host]?.since ?? now
        self.outages[host] = Outage(since: since, lookedAt: now)
        return Self.interval(after: now - since)
    }

    /// Whether a job whose time has come may look at its host; if so, that counts as a look.
    ///
    /// - Returns: How long it has to wait, because another one has looked; nil if it may.
    public mutating func look(at host: String, _ now: Duration) -> Duration? {
        let outage = self.outages[host] ?? Outage(since: now, lookedAt: now - Self.longest)
        let interval = Self.interval(after: now - outage.since)
        let passed = now - outage.lookedAt
        guard passed >= interval / 2 else { return interval - passed }
        self.outages[host] = Outage(since: outage.since, lookedAt: now)
        return nil
    }

    /// Takes an answer of a host; true if it was not reached before.
    public mutating func answered(_ host: String) -> Bool {
        self.outages.removeValue(forKey: host) != nil
    }

    /// Says that the machine's network is another one now: outages begin anew, and a look at each host is due.
    public mutating func changed() {
        self.outages.removeAll()
    }
}
