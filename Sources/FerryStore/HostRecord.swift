public import FerryCore

/// What is known of a host and port.
public struct HostRecord: Sendable, Equatable {
    /// The host and port: `name:port`.
    public var host: String
    /// No request goes there before.
    public var pausedUntil: Timestamp?
    /// How often it was paused in a row.
    public var backoffLevel: Int
    /// JSON: what its answers taught.
    public var learned: String

    /// Makes a record.
    public init(
        host: String,
        pausedUntil: Timestamp? = nil,
        backoffLevel: Int = 0,
        learned: String = "{}"
    ) {
        self.host = host
        self.pausedUntil = pausedUntil
        self.backoffLevel = backoffLevel
        self.learned = learned
    }
}

extension HostRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = "host, paused_until, backoff_level, learned"

    init(row: inout Row) {
        self.init(
            host: row.text(),
            pausedUntil: row.optionalTime(),
            backoffLevel: row.int(),
            learned: row.text()
        )
    }
}
