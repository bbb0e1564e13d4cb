public import FerryCore

/// One entry of the event log.
public struct EventRecord: Sendable, Equatable {
    /// Grows with each event; never reused.
    public var seq: Int64
    /// When.
    public var time: Timestamp
    /// The job; nil for events of the service.
    public var job: JobID?
    /// What happened, one word.
    public var kind: String
    /// The state after it.
    public var state: JobState?
    /// Why.
    public var reason: String?
    /// One sentence.
    public var message: String?

    /// Makes a record.
    public init(
        seq: Int64,
        time: Timestamp,
        job: JobID? = nil,
        kind: String,
        state: JobState? = nil,
        reason: String? = nil,
        message: String? = nil
    ) {
        self.seq = seq
        self.time = time
        self.job = job
        self.kind = kind
        self.state = state
        self.reason = reason
        self.message = message
    }
}

extension EventRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = "seq, time, job, kind, state, reason, message"

    init(row: inout Row) throws {
        self.init(
            seq: row.integer(),
            time: row.time(),
            job: row.optionalJob(),
            kind: row.text(),
            state: try row.optionalWord(JobState.self),
            reason: row.optionalText(),
            message: row.optionalText()
        )
    }
}

/// Something still to do after the fact; it outlives its job.
public struct CleanupRecord: Sendable, Equatable {
    /// The record's number.
    public var id: Int64
    /// The job that left it; may be gone.
    public var job: JobID?
    /// What to do, such as `unlink`.
    public var kind: String
    /// To what.
    public var detail: String
    /// When it was recorded.
    public var createdAt: Timestamp

    /// Makes a record.
    public init(
        id: Int64,
        job: JobID? = nil,
        kind: String,
        detail: String,
        createdAt: Timestamp
    ) {
        self.id = id
        self.job = job
        self.kind = kind
        self.detail = detail
        self.createdAt = createdAt
    }
}

extension CleanupRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = "id, job, kind, detail, created_at"

    init(row: inout Row) {
        self.init(
            id: row.integer(),
            job: row.optionalJob(),
            kind: row.text(),
            detail: row.text(),
            createdAt: row.time()
        )
    }
}
