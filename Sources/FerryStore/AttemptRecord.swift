public import FerryCore

/// One attempt of a job.
public struct AttemptRecord: Sendable, Equatable {
    /// The job.
    public var job: JobID
    /// The number, from 1.
    public var number: Int
    /// When it began.
    public var beganAt: Timestamp
    /// When it ended; nil while it runs.
    public var endedAt: Timestamp?
    /// One word: `completed`, `interrupted`, `paused`, `cancelled`, or the cause of failure.
    public var outcome: String?
    /// One sentence.
    public var message: String?
    /// The first byte asked for.
    public var offset: Int64
    /// Body bytes received.
    public var received: Int64

    /// Makes a record.
    public init(
        job: JobID,
        number: Int,
        beganAt: Timestamp,
        endedAt: Timestamp? = nil,
        outcome: String? = nil,
        message: String? = nil,
        offset: Int64 = 0,
        received: Int64 = 0
    ) {
        self.job = job
        self.number = number
        self.beganAt = beganAt
        self.endedAt = endedAt
        self.outcome = outcome
        self.message = message
        self.offset = offset
        self.received = received
    }
}

extension AttemptRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = "job, number, began_at, ended_at, outcome, message, first_offset, received"

    init(row: inout Row) {
        self.init(
            job: row.job(),
            number: row.int(),
            beganAt: row.time(),
            endedAt: row.optionalTime(),
            outcome: row.optionalText(),
            message: row.optionalText(),
            offset: row.integer(),
            received: row.integer()
        )
    }
}

/// One request of an attempt.
public struct HopRecord: Sendable, Equatable {
    /// The job.
    public var job: JobID
    /// The attempt's number; its ``AttemptRecord`` must be there.
    public var attempt: Int
    /// The position among the attempt's requests, from 0.
    public var index: Int
    /// The URL, redacted.
    public var url: String
    /// The status; nil if no answer came.
    public var status: Int?
    /// The server's address.
    public var address: String?
    /// `1.1` or `2`.
    public var httpVersion: String?
    /// Milliseconds to the first byte of the answer.
    public var firstByteMs: Int64?
    /// Milliseconds to its end.
    public var totalMs: Int64?

    /// Makes a record.
    public init(
        job: JobID,
        attempt: Int,
        index: Int,
        url: String,
        status: Int? = nil,
        address: String? = nil,
        httpVersion: String? = nil,
        firstByteMs: Int64? = nil,
        totalMs: Int64? = nil
    ) {
        self.job = job
        self.attempt = attempt
        self.index = index
        self.url = url
        self.status = status
        self.address = address
        self.httpVersion = httpVersion
        self.firstByteMs = firstByteMs
        self.totalMs = totalMs
    }
}

extension HopRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = "job, attempt, position, url, status, address, http_version, first_byte_ms, total_ms"

    init(row: inout Row) {
        self.init(
            job: row.job(),
            attempt: row.int(),
            index: row.int(),
            url: row.text(),
            status: row.optionalInteger().map { Int($0) },
            address: row.optionalText(),
            httpVersion: row.optionalText(),
            firstByteMs: row.optionalInteger(),
            totalMs: row.optionalInteger()
        )
    }
}
