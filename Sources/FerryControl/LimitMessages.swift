/// A change of live limits: of the whole queue, or of one host.
public struct LimitChange: Codable, Sendable, Equatable {
    /// What a limit becomes.
    public enum Value: Codable, Sendable, Equatable {
        /// This much.
        case set(Int)
        /// What the configuration says.
        case configured
    }

    /// The host, `name` or `name:port`; nil means all together.
    public var host: String?
    /// Jobs that run at once; to a host, connections.
    public var running: Value?

    /// Makes a change; nil leaves a limit as it is.
    public init(host: String? = nil, running: Value? = nil) {
        self.host = host
        self.running = running
    }
}

/// The limits that hold: `ferry limit --json`.
public struct LimitsDocument: Codable, Sendable, Equatable {
    /// Always `limits`.
    public var type = "limits"
    /// Jobs that run at once.
    public var running: Int
    /// Whether ``running`` was set with `ferry limit`; else it is the configuration's.
    public var runningIsLive: Bool
    /// Connections to one host and port, where ``hosts`` has no other number.
    public var perHost: Int
    /// The hosts with limits of their own, by name.
    public var hosts: [HostLimitDocument]

    /// Makes a document.
    public init(running: Int, runningIsLive: Bool, perHost: Int, hosts: [HostLimitDocument]) {
        self.running = running
        self.runningIsLive = runningIsLive
        self.perHost = perHost
        self.hosts = hosts
    }
}

/// The limits of one host.
public struct HostLimitDocument: Codable, Sendable, Equatable {
    /// `name`, or `name:port`.
    public var host: String
    /// Connections at once.
    public var running: Int
    /// Whether it was set with `ferry limit`; else it is the configuration's.
    public var runningIsLive: Bool

    /// Makes a document.
    public init(host: String, running: Int, runningIsLive: Bool) {
        self.host = host
        self.running = running
        self.runningIsLive = runningIsLive
    }
}
