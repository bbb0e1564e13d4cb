/// A change of live limits: of the whole queue, or of one host.
public struct LimitChange: Codable, Sendable, Equatable {
    /// What a limit becomes.
    public enum Value: Codable, Sendable, Equatable {
        /// This much.
        case set(Int)
        /// What the configuration says.
        case configured
    }

    /// What a limit on bytes a second becomes.
    public enum Rate: Codable, Sendable, Equatable {
        /// So many bytes a second.
        case set(Int64)
        /// No limit, whatever the configuration says.
        case unlimited
        /// What the configuration says.
        case configured
    }

    /// The host, `name` or `name:port`; nil means all together.
    public var host: String?
    /// Jobs that run at once; to a host, connections.
    public var running: Value?
    /// What comes and goes, together.
    public var rate: Rate?
    /// What comes.
    public var down: Rate?
    /// What goes.
    public var up: Rate?

    /// Makes a change; nil leaves a limit as it is.
    public init(
        host: String? = nil,
        running: Value? = nil,
        rate: Rate? = nil,
        down: Rate? = nil,
        up: Rate? = nil
    ) {
        self.host = host
        self.running = running
        self.rate = rate
        self.down = down
        self.up = up
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
    /// The limits on bytes a second that hold now.
    public var rates: [RateLimitDocument]

    /// Makes a document.
    public init(
        running: Int,
        runningIsLive: Bool,
        perHost: Int,
        hosts: [HostLimitDocument],
        rates: [RateLimitDocument] = []
    ) {
        self.running = running
        self.runningIsLive = runningIsLive
        self.perHost = perHost
        self.hosts = hosts
        self.rates = rates
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

/// A limit on bytes a second.
public struct RateLimitDocument: Codable, Sendable, Equatable {
    /// What is limited.
    public enum Direction: String, Codable, Sendable {
        /// What comes and what goes, together.
        case both
        /// What comes.
        case down
        /// What goes.
        case up
    }

    /// Where a limit comes from.
    public enum Source: String, Codable, Sendable {
        /// `ferry limit`.
        case live
        /// The calendar of the configuration.
        case calendar
        /// Another key of the configuration.
        case configuration
    }

    /// `name`, or `name:port`; null is all together.
    public var host: String?
    /// What is limited.
    public var direction: Direction
    /// Bytes a second; null is expressly no limit.
    public var bytesPerS: Int64?
    /// Where it comes from.
    public var source: Source

    /// Makes a document.
    public init(host: String?, direction: Direction, bytesPerS: Int64?, source: Source) {
        self.host = host
        self.direction = direction
        self.bytesPerS = bytesPerS
        self.source = source
    }

    /// Encodes every field, null if there is none.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.host, forKey: .host)
        try container.encode(self.direction, forKey: .direction)
        try container.encode(self.bytesPerS, forKey: .bytesPerS)
        try container.encode(self.source, forKey: .source)
    }
}
