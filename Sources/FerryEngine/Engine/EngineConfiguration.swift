public import FerryCore
public import FerryFiles
public import FerryHTTP
import Synchronization

/// What the configuration file says about transfers; the defaults are the built-in ones.
public struct EngineConfiguration: Sendable, Equatable {
    /// Jobs that run at once (`limits.running`).
    public var running = 16
    /// Connections to one host and port at once (`limits.per_host`).
    public var perHost = 6
    /// `limits.down`: bytes a second that come, of all transfers together.
    public var down: Int64?
    /// `limits.up`: bytes a second that go, of all transfers together.
    public var up: Int64?
    /// `limits.calendar`: other limits at some times of the week.
    public var calendar = RateCalendar()
    /// `hosts`: what differs for some, by `name` or `name:port`.
    public var hosts: [String: HostSettings] = [:]
    /// `retry`, for jobs made by `add`.
    public var retry = RetryPolicy()
    /// `retry.no_progress_foreground`: how long `get` and `put` go on without progress.
    public var noProgressForeground: Duration? = .seconds(3_600)
    /// `transport`.
    public var transport = TransportPolicy()
    /// `transport.tls_minimum`.
    public var tlsMinimum = HTTPRequest.TLSMinimum.v12
    /// `transport.http2`: whether servers may be spoken to in HTTP/2.
    public var http2 = false
    /// `history.keep`: how long ended jobs stay listed.
    public var historyKeep: Duration = .seconds(90 * 86_400)

    /// The only folders that files may go to (`--allow-dir`); nil is anywhere.
    ///
    /// Holds as long as the engine lives.
    public var allowedFolders: AllowedFolders?

    /// The built-in defaults.
    public init() {}

    /// Jobs of one host and port that may run at once.
    func perHost(of host: String) -> Int {
        self.own(\.perHost, of: host) ?? self.perHost
    }

    /// Whether a host and port may be spoken to in HTTP/2.
    func allowsHTTP2(_ host: String) -> Bool {
        self.own(\.http2, of: host) ?? self.http2
    }

    /// What `hosts` says of `name:port`; an entry with the port wins over one without.
    private func own<Value>(_ key: KeyPath<HostSettings, Value?>, of host: String) -> Value? {
        if let value = self.hosts[host]?[keyPath: key] { return value }
        guard let colon = host.lastIndex(of: ":") else { return nil }
        return self.hosts[String(host[..<colon])]?[keyPath: key]
    }

    /// Puts limits on top; one for all ports of a host also replaces what is said of one of its ports.
    fileprivate mutating func apply(_ limits: LiveLimits) {
        self.running = limits.running ?? self.running
        // In this order a limit for one port comes after that for all of them, and wins.
        for (host, limit) in limits.hosts.sorted(by: { $0.key < $1.key }) {
            for name in self.hosts.keys where name.hasPrefix("\(host):") { self.hosts[name]?.perHost = limit }
            self.hosts[host, default: HostSettings()].perHost = limit
        }
        self.apply(limits.rates)
    }

    /// The policy that a job lives by.
    func retryPolicy(for request: JobRequest) -> RetryPolicy {
        var policy = self.retry
        if let attempts = request.attempts { policy.attempts = attempts }
        if request.foreground { policy.noProgress = self.noProgressForeground }
        return policy
    }

    /// The transport policy with the job's own leave.
    func transportPolicy(for request: JobRequest) -> TransportPolicy {
        var policy = self.transport
        policy.jobAllowsHTTP = request.allowHTTP
        return policy
    }
}

/// What the configuration says of one host; nil is what holds for all.
public struct HostSettings: Sendable, Equatable {
    /// Connections at once.
    public var perHost: Int?
    /// Whether it may be spoken to in HTTP/2.
    public var http2: Bool?
    /// Bytes a second that come from it, all of its jobs together.
    public var down: Int64?
    /// Bytes a second that go to it.
    public var up: Int64?

    /// Makes settings that change nothing.
    public init() {}
}

/// Limits that a command has set while the service runs; nil is what the configuration says.
public struct LiveLimits: Sendable, Equatable {
    /// Jobs that run at once.
    public var running: Int?
    /// Connections to hosts at once, by `name` (on any port) or `name:port`.
    public var hosts: [String: Int] = [:]
    /// Bytes a second.
    public var rates = LiveRates()

    /// Makes limits that change nothing.
    public init() {}
}

/// The configuration as it is now, and the limits set on top of it; read by every transfer when it needs a value.
final class LiveConfiguration: Sendable {
    private struct State {
        var configuration: EngineConfiguration
        var limits = LiveLimits()
    }
    private let state: Mutex<State>

    init(_ configuration: EngineConfiguration) {
        self.state = Mutex(State(configuration: configuration))
    }

    /// What holds now.
    var value: EngineConfiguration {
        self.state.withLock { state in
            var value = state.configuration
            value.apply(state.limits)
            return value
        }
    }

    /// The limits on bytes a second that hold at a time, and where each comes from.
    func rates(at time: LocalMinute) -> [RateLimit] {
        self.state.withLock { $0.configuration.rates($0.limits.rates, at: time) }
    }

    /// What is configured, without the limits.
    var configured: EngineConfiguration { self.state.withLock { $0.configuration } }

    /// Replaces the configuration; the limits stay.
    func set(_ configuration: EngineConfiguration) {
        self.state.withLock { $0.configuration = configuration }
    }

    /// The limits alone.
    var limits: LiveLimits { self.state.withLock { $0.limits } }

    /// Replaces the limits.
    func set(_ limits: LiveLimits) {
        self.state.withLock { $0.limits = limits }
    }
}

extension Origin {
    /// `name:port`, as jobs, limits and host records name a host.
    var hostAndPort: String {
        self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)"
    }
}
