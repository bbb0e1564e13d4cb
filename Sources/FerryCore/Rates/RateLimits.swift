/// Limits on bytes a second; nil is none.
public struct RateSet: Hashable, Sendable {
    /// Both directions together.
    public var total: Int64?
    /// What comes.
    public var down: Int64?
    /// What goes.
    public var up: Int64?

    /// Makes a set.
    public init(total: Int64? = nil, down: Int64? = nil, up: Int64? = nil) {
        self.total = total
        self.down = down
        self.up = up
    }
}

/// All limits on bytes a second but those of single jobs; each one that fits a transfer holds for it.
public struct RateLimits: Hashable, Sendable {
    /// Of all transfers together.
    public var all: RateSet
    /// Of hosts, by `name` (all of its ports together) or `name:port`.
    public var hosts: [String: RateSet]

    /// Makes limits; the default is none.
    public init(all: RateSet = RateSet(), hosts: [String: RateSet] = [:]) {
        self.all = all
        self.hosts = hosts
    }
}

/// What is said of one rate in one place.
public enum RateChoice: Hashable, Sendable {
    /// Nothing: what the next weaker place says.
    case unsaid
    /// Expressly without a limit.
    case unlimited
    /// So many bytes a second.
    case limited(Int64)

    /// This, or what the next weaker place says.
    public func over(_ weaker: RateChoice) -> RateChoice { self == .unsaid ? weaker : self }

    /// Bytes a second; nil is no limit.
    public var bytes: Int64? {
        if case .limited(let bytes) = self { return bytes }
        return nil
    }
}

/// Reads and writes a RATE as users type it.
public enum RateText {
    /// What is said of a text that is none.
    public static let wanted = "rate such as 500K or 10M, and not 'none'"

    /// Reads a RATE: a number of bytes a second, or `0` or `none` for no limit; nil for anything else.
    public static func parse(_ text: String) -> RateChoice? {
        if ASCII.lowercased(text) == "none" { return .unlimited }
        guard let count = ByteCount(text: text) else { return nil }
        return count.bytes == 0 ? .unlimited : .limited(count.bytes)
    }

    /// A RATE that reads back as the same: `10M`, `1500`.
    public static func exact(_ bytes: Int64) -> String {
        for (unit, size) in [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)]
            as [(String, Int64)]
        where bytes > 0 && bytes % size == 0 {
            return "\(bytes / size)\(unit)"
        }
        return "\(bytes)"
    }
}
