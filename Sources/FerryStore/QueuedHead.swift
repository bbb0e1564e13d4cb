public import FerryCore

/// A queued job, as the scheduler orders it: the highest priority first, then the oldest.
public struct QueuedHead: Sendable, Equatable, Comparable {
    /// The job.
    public let id: JobID
    /// -100…100.
    public let priority: Int
    /// The host and port that its requests go to.
    public let host: String

    /// Makes a head.
    public init(id: JobID, priority: Int, host: String) {
        self.id = id
        self.priority = priority
        self.host = host
    }

    /// Orders by priority, then by acceptance.
    public static func < (left: QueuedHead, right: QueuedHead) -> Bool {
        (right.priority, left.id) < (left.priority, right.id)
    }
}

extension Reader {
    /// The next jobs of a host: highest priority first, then oldest.
    public final func queuedHeads(host: String, limit: Int) throws -> [QueuedHead] {
        try self.connection.rows(Query.queuedHeads, [host, limit]) {
            QueuedHead(id: $0.job(), priority: $0.int(), host: host)
        }
    }

    /// Those of these jobs that are queued, in no order.
    public final func queuedHeads(of jobs: [JobID]) throws -> [QueuedHead] {
        let numbers = "[" + jobs.map(\.description).joined(separator: ",") + "]"
        return try self.connection.rows(
            """
            SELECT id, priority, host FROM job
            WHERE id IN (SELECT value FROM json_each(?)) AND state = 'queued'
            """,
            [numbers]
        ) { QueuedHead(id: $0.job(), priority: $0.int(), host: $0.text()) }
    }
}
