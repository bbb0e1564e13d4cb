import CFerryLinux
import FerryCore

/// What the engine asks and hears of the machine's network; injected, so that tests can say it.
public struct Machine: Sendable {
    /// Whether packets to a numeric address have a way out; nil if it cannot be told.
    public var hasRoute: @Sendable (String) -> Bool?
    /// Whether any interface but loopback is up and has an address.
    public var hasNetwork: @Sendable () -> Bool
    /// Whether a name server answers; may take some seconds.
    public var answersNames: @Sendable () -> Bool
    /// Tells when an interface, an address or a route has appeared, until nobody listens any more.
    public var networkChanges: @Sendable () -> AsyncStream<Void>

    /// Makes a machine; the defaults are one that is never without a network, and where nothing changes.
    public init(
        hasRoute: @escaping @Sendable (String) -> Bool? = { _ in true },
        hasNetwork: @escaping @Sendable () -> Bool = { true },
        answersNames: @escaping @Sendable () -> Bool = { true },
        networkChanges: @escaping @Sendable () -> AsyncStream<Void> = { AsyncStream { $0.finish() } }
    ) {
        self.hasRoute = hasRoute
        self.hasNetwork = hasNetwork
        self.answersNames = answersNames
        self.networkChanges = networkChanges
    }

    /// The one that this process runs on.
    public static let real = Machine(
        hasRoute: { address in
            let answer = ferry_has_route(address)
            return answer < 0 ? nil : answer == 1
        },
        hasNetwork: { ferry_has_network() == 1 },
        answersNames: { ferry_name_service_answers(3_000) != 0 },
        networkChanges: { NetworkWatch.changes() }
    )
}
