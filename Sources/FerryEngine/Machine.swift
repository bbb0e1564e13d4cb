import CFerryLinux
import FerryCore

/// What the engine asks and hears of the machine: its network and its sleep; injected, so that tests can say it.
public struct Machine: Sendable {
    /// Something that may end a wait.
    public enum Event: Sendable {
        /// An interface, an address or a route has appeared.
        case networkChanged
        /// The wall clock was set, or the machine has slept.
        case clockChanged
    }

    /// Whether packets to a numeric address have a way out; nil if it cannot be told.
    public var hasRoute: @Sendable (String) -> Bool?
    /// Whether any interface but loopback is up and has an address.
    public var hasNetwork: @Sendable () -> Bool
    /// Whether a name server answers; may take some seconds.
    public var answersNames: @Sendable () -> Bool
    /// How long the machine has slept since it booted.
    public var slept: @Sendable () -> Duration
    /// Tells what happens until nobody listens any more.
    public var events: @Sendable () -> AsyncStream<Event>

    /// Makes a machine; the defaults are one that is never without a network, and where nothing happens.
    public init(
        hasRoute: @escaping @Sendable (String) -> Bool? = { _ in true },
        hasNetwork: @escaping @Sendable () -> Bool = { true },
        answersNames: @escaping @Sendable () -> Bool = { true },
        slept: @escaping @Sendable () -> Duration = { .zero },
        events: @escaping @Sendable () -> AsyncStream<Event> = { AsyncStream { $0.finish() } }
    ) {
        self.hasRoute = hasRoute
        self.hasNetwork = hasNetwork
        self.answersNames = answersNames
        self.slept = slept
        self.events = events
    }

    /// The one that this process runs on.
    public static let real = Machine(
        hasRoute: { address in
            let answer = ferry_has_route(address)
            return answer < 0 ? nil : answer == 1
        },
        hasNetwork: { ferry_has_network() == 1 },
        answersNames: { ferry_name_service_answers(3_000) != 0 },
        slept: { .nanoseconds(ferry_slept_nanoseconds()) },
        events: { MachineWatch.events() }
    )
}
