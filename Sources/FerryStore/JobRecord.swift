public import FerryCore

/// A row of the job table: all that `list` shows and the scheduler walks.
///
/// The schema requires: a wait reason exactly while waiting, a failure reason exactly while failed, an end
/// time exactly while failed, completed or cancelled, and a phase only while running.
public struct JobRecord: Sendable, Equatable {
    /// The job's number.
    public var id: JobID
    /// The library session that it belongs to; nil for the command's jobs.
    public var session: String?
    /// Download or upload.
    public var kind: JobKind
    /// Where it stands.
    public var state: JobState
    /// What it does while running.
    public var phase: JobPhase?
    /// Why it waits.
    public var waitReason: WaitReason?
    /// Why it failed.
    public var failureReason: FailureReason?
    /// One sentence: what happened last, or what it waits for.
    public var message: String?
    /// What helps.
    public var advice: String?
    /// -100…100; higher runs first.
    public var priority: Int
    /// The host and port that its requests go to: `name:port`.
    public var host: String
    /// The group.
    public var group: String?
    /// The URL, redacted.
    public var url: String
    /// The file's final path once it is known.
    public var path: String?
    /// Not to be run before.
    public var notBefore: Timestamp?
    /// When a waiting job is due; nil if only an event ends the wait.
    public var nextTry: Timestamp?
    /// Attempts begun.
    public var attempts: Int
    /// Transient failures since the last progress.
    public var transientTries: Int
    /// Doubtful failures since the last progress.
    public var doubtfulTries: Int
    /// Tries that do not count against a limit: ended by the service, a full disk, or at the server's wish.
    public var forgivenAttempts: Int
    /// Starts from 0 because the object changed.
    public var restarts: Int
    /// How often a whole file did not have the expected digest.
    public var mismatches: Int
    /// When it last had more durable bytes than ever before.
    public var progressAt: Timestamp?
    /// The most durable bytes that it ever had.
    public var bestBytes: Int64
    /// The whole size; nil if unknown.
    public var bytesTotal: Int64?
    /// Bytes that survive a power cut.
    public var bytesDurable: Int64
    /// When it was accepted.
    public var createdAt: Timestamp
    /// When it first ran.
    public var startedAt: Timestamp?
    /// When it ended.
    public var finishedAt: Timestamp?
    /// False if nothing proved the length; nil until the end of the body.
    public var lengthProved: Bool?
    /// `1.1` or `2`.
    public var httpVersion: String?
    /// The coding that the server applied unasked.
    public var contentEncoding: String?
    /// The transfer protocol.
    public var protocolName: String?
    /// Where an upload's result is, redacted; nil until the server has confirmed it.
    public var resultURL: String?
    /// The jobs that have to be completed before it, as asked for.
    public var after: [JobID] = []
    /// The hours at which it may run.
    public var window: RunWindow?
    /// Until then it may run at any hour: a person did not want to wait.
    public var windowFrom: Timestamp?
    /// New links since the last progress.
    public var renewals = 0

    /// Makes a record; the defaults are those of a new job.
    public init(
        id: JobID,
        session: String? = nil,
        kind: JobKind = .download,
        state: JobState = .queued,
        phase: JobPhase? = nil,
        waitReason: WaitReason? = nil,
        failureReason: FailureReason? = nil,
        message: String? = nil,
        advice: String? = nil,
        priority: Int = 0,
        host: String,
        group: String? = nil,
        url: String,
        path: String? = nil,
        notBefore: Timestamp? = nil,
        nextTry: Timestamp? = nil,
        attempts: Int = 0,
        transientTries: Int = 0,
        doubtfulTries: Int = 0,
        forgivenAttempts: Int = 0,
        restarts: Int = 0,
        mismatches: Int = 0,
        progressAt: Timestamp? = nil,
        bestBytes: Int64 = 0,
        bytesTotal: Int64? = nil,
        bytesDurable: Int64 = 0,
        createdAt: Timestamp,
        startedAt: Timestamp? = nil,
        finishedAt: Timestamp? = nil,
        lengthProved: Bool? = nil,
        httpVersion: String? = nil,
        contentEncoding: String? = nil,
        protocolName: String? = nil,
        resultURL: String? = nil
    ) {
        self.id = id
        self.session = session
        self.kind = kind
        self.state = state
        self.phase = phase
        self.waitReason = waitReason
        self.failureReason = failureReason
        self.message = message
        self.advice = advice
        self.priority = priority
        self.host = host
        self.group = group
        self.url = url
        self.path = path
        self.notBefore = notBefore
        self.nextTry = nextTry
        self.attempts = attempts
        self.transientTries = transientTries
        self.doubtfulTries = doubtfulTries
        self.forgivenAttempts = forgivenAttempts
        self.restarts = restarts
        self.mismatches = mismatches
        self.progressAt = progressAt
        self.bestBytes = bestBytes
        self.bytesTotal = bytesTotal
        self.bytesDurable = bytesDurable
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.lengthProved = lengthProved
        self.httpVersion = httpVersion
        self.contentEncoding = contentEncoding
        self.protocolName = protocolName
        self.resultURL = resultURL
    }
}

extension JobRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = """
        job.id, job.session, job.kind, job.state, job.phase, job.wait_reason, job.failure_reason, \
        job.message, job.advice, job.priority, job.host, job.group_name, job.url, job.path, job.not_before, \
        job.next_try, job.attempts, job.transient_tries, job.doubtful_tries, \
        job.forgiven_attempts, job.restarts, job.mismatches, job.progress_at, job.best_bytes, job.bytes_total, job.bytes_durable, job.created_at, job.started_at, \
        job.finished_at, job.length_proved, job.http_version, job.content_encoding, job.protocol, \
        job.result_url, job.after_jobs, job.run_window, job.window_from, job.renewals
        """

    init(row: inout Row) throws {
        self.init(
            id: row.job(),
            session: row.optionalText(),
            kind: try row.word(JobKind.self),
            state: try row.word(JobState.self),
            phase: try row.optionalWord(JobPhase.self),
            waitReason: try row.optionalWord(WaitReason.self),
            failureReason: try row.optionalWord(FailureReason.self),
            message: row.optionalText(),
            advice: row.optionalText(),
            priority: row.int(),
            host: row.text(),
            group: row.optionalText(),
            url: row.text(),
            path: row.optionalText(),
            notBefore: row.optionalTime(),
            nextTry: row.optionalTime(),
            attempts: row.int(),
            transientTries: row.int(),
            doubtfulTries: row.int(),
            forgivenAttempts: row.int(),
            restarts: row.int(),
            mismatches: row.int(),
            progressAt: row.optionalTime(),
            bestBytes: row.integer(),
            bytesTotal: row.optionalInteger(),
            bytesDurable: row.integer(),
            createdAt: row.time(),
            startedAt: row.optionalTime(),
            finishedAt: row.optionalTime(),
            lengthProved: row.optionalBool(),
            httpVersion: row.optionalText(),
            contentEncoding: row.optionalText(),
            protocolName: row.optionalText(),
            resultURL: row.optionalText()
        )
        self.after = row.optionalText().map(JobRecord.jobs) ?? []
        self.window = row.optionalText().flatMap { RunWindow(stored: $0) }
        self.windowFrom = row.optionalTime()
        self.renewals = row.int()
    }

    /// Numbers of jobs as one text, nil if there are none.
    static func text(_ jobs: [JobID]) -> String? {
        jobs.isEmpty ? nil : jobs.map(\.description).joined(separator: " ")
    }

    /// Reads ``text(_:)``.
    static func jobs(_ text: String) -> [JobID] {
        text.split(separator: " ").compactMap { JobID(String($0)) }
    }
}
