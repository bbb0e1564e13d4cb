public import FerryCore

/// A job as `--json` shows it and the control protocol sends it; names become snake_case in JSON.
///
/// Every field is always there, null if unknown (`segments` in `show` only). Fields are added, never changed.
public struct JobDocument: Codable, Sendable, Equatable {
    /// Always `job`.
    public var type = "job"
    /// The job's number.
    public var id: JobID
    /// Download or upload.
    public var kind: JobKind
    /// One of the seven states.
    public var state: JobState
    /// What a running job does.
    public var phase: JobPhase?
    /// Why it waits or failed.
    public var reason: String?
    /// One sentence: what happened last, or what it waits for.
    public var message: String?
    /// What helps.
    public var advice: String?
    /// The URL without user info and with query values hidden.
    public var url: String
    /// The file's final path, null until the name is known; of an upload the file that is sent, null for forms.
    public var path: String?
    /// Where the server keeps what was uploaded, redacted; null for downloads and until it is known.
    public var resultUrl: String?
    /// The group.
    public var group: String?
    /// -100…100.
    public var priority: Int
    /// The jobs that have to be completed before it, as asked for.
    public var after: [JobID] = []
    /// The hours at which it may run, `22:00-06:00` in its owner's local time; null if at any.
    public var window: String?
    /// Bytes present, in memory of the kernel or on disk.
    public var bytesDone: Int64
    /// Bytes that survive a power cut.
    public var bytesDurable: Int64
    /// The whole size, null if unknown.
    public var bytesTotal: Int64?
    /// Over the last seconds; null unless running.
    public var rateBytesPerS: Int64?
    /// Seconds to the end at that rate.
    public var etaS: Int64?
    /// 0 before the first try; never goes down.
    public var attempt: Int
    /// When it will be tried again.
    public var retryAt: Timestamp?
    /// When it was accepted.
    public var createdAt: Timestamp
    /// When it first ran.
    public var startedAt: Timestamp?
    /// When it ended.
    public var finishedAt: Timestamp?
    /// What proves the remote object to be the same.
    public var validator: ValidatorDocument?
    /// The digest expected and computed.
    public var checksum: ChecksumDocument?
    /// The transfer protocol: `http` for downloads.
    public var `protocol`: String?
    /// `1.1` or `2`.
    public var httpVersion: String?
    /// False if the server gave no length and no checksum was known; null until the end of the body.
    public var lengthProved: Bool?
    /// The coding that the server applied unasked.
    public var contentEncoding: String?
    /// In `show` only.
    public var segments: [SegmentDocument]?
    /// In `show` only, and of uploads that were answered.
    public var answer: AnswerDocument?
    /// In `show` only, and of jobs with a deadline: when it gives up.
    public var deadlineAt: Timestamp?
    /// The job's own limit; in `show` only, and where there is one.
    public var limitRateBytesPerS: Int64?
    /// The program that has a new link when this one has expired; in `show` only, and where there is one.
    public var renew: String?

    /// Makes a document of the fields that every job has; the rest is set afterwards.
    public init(
        id: JobID,
        kind: JobKind,
        state: JobState,
        url: String,
        priority: Int,
        createdAt: Timestamp
    ) {
        self.id = id
        self.kind = kind
        self.state = state
        self.url = url
        self.priority = priority
        self.createdAt = createdAt
        self.bytesDone = 0
        self.bytesDurable = 0
        self.attempt = 0
    }

    /// Encodes every field, null if unknown; `segments`, `answer`, `deadlineAt`, the limit and `renew` only if set.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.type, forKey: .type)
        try container.encode(self.id, forKey: .id)
        try container.encode(self.kind, forKey: .kind)
        try container.encode(self.state, forKey: .state)
        try container.encode(self.phase, forKey: .phase)
        try container.encode(self.reason, forKey: .reason)
        try container.encode(self.message, forKey: .message)
        try container.encode(self.advice, forKey: .advice)
        try container.encode(self.url, forKey: .url)
        try container.encode(self.path, forKey: .path)
        try container.encode(self.resultUrl, forKey: .resultUrl)
        try container.encode(self.group, forKey: .group)
        try container.encode(self.priority, forKey: .priority)
        try container.encode(self.after, forKey: .after)
        try container.encode(self.window, forKey: .window)
        try container.encode(self.bytesDone, forKey: .bytesDone)
        try container.encode(self.bytesDurable, forKey: .bytesDurable)
        try container.encode(self.bytesTotal, forKey: .bytesTotal)
        try container.encode(self.rateBytesPerS, forKey: .rateBytesPerS)
        try container.encode(self.etaS, forKey: .etaS)
        try container.encode(self.attempt, forKey: .attempt)
        try container.encode(self.retryAt, forKey: .retryAt)
        try container.encode(self.createdAt, forKey: .createdAt)
        try container.encode(self.startedAt, forKey: .startedAt)
        try container.encode(self.finishedAt, forKey: .finishedAt)
        try container.encode(self.validator, forKey: .validator)
        try container.encode(self.checksum, forKey: .checksum)
        try container.encode(self.protocol, forKey: .protocol)
        try container.encode(self.httpVersion, forKey: .httpVersion)
        try container.encode(self.lengthProved, forKey: .lengthProved)
        try container.encode(self.contentEncoding, forKey: .contentEncoding)
        try container.encodeIfPresent(self.segments, forKey: .segments)
        try container.encodeIfPresent(self.answer, forKey: .answer)
        try container.encodeIfPresent(self.deadlineAt, forKey: .deadlineAt)
        try container.encodeIfPresent(self.limitRateBytesPerS, forKey: .limitRateBytesPerS)
        try container.encodeIfPresent(self.renew, forKey: .renew)
    }
}

/// The server's last answer to an upload.
public struct AnswerDocument: Codable, Sendable, Equatable {
    /// The status.
    public var status: Int
    /// The main header fields, `Name: value` each, redacted.
    public var headers: [String]
    /// The body's beginning as text, 64 KiB at most; bytes that are no UTF-8 are replaced.
    public var body: String
    /// Whether the body was longer.
    public var isCut: Bool

    /// Makes a document.
    public init(status: Int, headers: [String], body: String, isCut: Bool) {
        self.status = status
        self.headers = headers
        self.body = body
        self.isCut = isCut
    }
}

/// A validator in JSON.
public struct ValidatorDocument: Codable, Sendable, Equatable {
    /// `etag`, `last-modified` or `size`.
    public var kind: String
    /// As the server sent it.
    public var value: String
    /// Whether two equal ones prove equal bytes (RFC 9110 §8.8.1).
    public var strong: Bool

    /// Makes a document.
    public init(kind: String, value: String, strong: Bool) {
        self.kind = kind
        self.value = value
        self.strong = strong
    }
}

/// A checksum in JSON.
public struct ChecksumDocument: Codable, Sendable, Equatable {
    /// `sha-256` and so on.
    public var algorithm: String
    /// Hexadecimal.
    public var expected: String?
    /// Hexadecimal.
    public var actual: String?
    /// `user`, or the header field's name.
    public var source: String

    /// Makes a document.
    public init(algorithm: String, expected: String?, actual: String?, source: String) {
        self.algorithm = algorithm
        self.expected = expected
        self.actual = actual
        self.source = source
    }

    /// Encodes every field, null if unknown.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.algorithm, forKey: .algorithm)
        try container.encode(self.expected, forKey: .expected)
        try container.encode(self.actual, forKey: .actual)
        try container.encode(self.source, forKey: .source)
    }
}

/// One segment in JSON.
public struct SegmentDocument: Codable, Sendable, Equatable {
    /// First byte.
    public var startBytes: Int64
    /// One past the last byte; null if the end is unknown.
    public var endBytes: Int64?
    /// One past the last byte that survives a power cut.
    public var durableBytes: Int64

    /// Makes a document.
    public init(startBytes: Int64, endBytes: Int64?, durableBytes: Int64) {
        self.startBytes = startBytes
        self.endBytes = endBytes
        self.durableBytes = durableBytes
    }

    /// Encodes every field, null if unknown.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.startBytes, forKey: .startBytes)
        try container.encode(self.endBytes, forKey: .endBytes)
        try container.encode(self.durableBytes, forKey: .durableBytes)
    }
}

/// One attempt of a job, with the hops that its requests took (`ferry log`).
public struct AttemptDocument: Codable, Sendable, Equatable {
    /// Always `attempt`.
    public var type = "attempt"
    /// The number, from 1.
    public var attempt: Int
    /// When it began.
    public var beganAt: Timestamp
    /// When it ended; null while it runs.
    public var endedAt: Timestamp?
    /// One word: `completed`, `interrupted`, `paused`, `cancelled`, or the cause of failure.
    public var outcome: String?
    /// One sentence.
    public var message: String?
    /// The first byte asked for.
    public var offsetBytes: Int64
    /// Body bytes received.
    public var receivedBytes: Int64
    /// The requests, one a redirect hop.
    public var hops: [HopDocument]

    /// Makes a document without an end and hops.
    public init(attempt: Int, beganAt: Timestamp, offsetBytes: Int64, receivedBytes: Int64) {
        self.attempt = attempt
        self.beganAt = beganAt
        self.offsetBytes = offsetBytes
        self.receivedBytes = receivedBytes
        self.hops = []
    }

    /// Encodes every field, null if unknown.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.type, forKey: .type)
        try container.encode(self.attempt, forKey: .attempt)
        try container.encode(self.beganAt, forKey: .beganAt)
        try container.encode(self.endedAt, forKey: .endedAt)
        try container.encode(self.outcome, forKey: .outcome)
        try container.encode(self.message, forKey: .message)
        try container.encode(self.offsetBytes, forKey: .offsetBytes)
        try container.encode(self.receivedBytes, forKey: .receivedBytes)
        try container.encode(self.hops, forKey: .hops)
    }
}

/// One request of an attempt.
public struct HopDocument: Codable, Sendable, Equatable {
    /// The URL, redacted.
    public var url: String
    /// The status; null if no answer came.
    public var status: Int?
    /// The server's address.
    public var address: String?
    /// `1.1` or `2`.
    public var httpVersion: String?
    /// Milliseconds to the first byte of the answer.
    public var firstByteMs: Int64?

    /// Makes a document.
    public init(url: String, status: Int?, address: String?, httpVersion: String?, firstByteMs: Int64?) {
        self.url = url
        self.status = status
        self.address = address
        self.httpVersion = httpVersion
        self.firstByteMs = firstByteMs
    }

    /// Encodes every field, null if unknown.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.url, forKey: .url)
        try container.encode(self.status, forKey: .status)
        try container.encode(self.address, forKey: .address)
        try container.encode(self.httpVersion, forKey: .httpVersion)
        try container.encode(self.firstByteMs, forKey: .firstByteMs)
    }
}

/// One entry of the event log, as streamed and as `ferry log` shows it.
public struct EventDocument: Codable, Sendable, Equatable {
    /// Always `event`.
    public var type = "event"
    /// Grows by one an event; never reused.
    public var seq: Int64
    /// When.
    public var time: Timestamp
    /// The job; null for events of the service.
    public var job: JobID?
    /// `added`, `started`, `queued`, `waiting`, `paused`, `failed`, `completed`, `cancelled`, `resumed`,
    /// `restarted`, `removed`.
    public var kind: String
    /// The state after it.
    public var state: JobState?
    /// Why.
    public var reason: String?
    /// One sentence.
    public var message: String?

    /// Makes a document.
    public init(
        seq: Int64,
        time: Timestamp,
        job: JobID?,
        kind: String,
        state: JobState?,
        reason: String?,
        message: String?
    ) {
        self.seq = seq
        self.time = time
        self.job = job
        self.kind = kind
        self.state = state
        self.reason = reason
        self.message = message
    }

    /// Encodes every field, null if unknown.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.type, forKey: .type)
        try container.encode(self.seq, forKey: .seq)
        try container.encode(self.time, forKey: .time)
        try container.encode(self.job, forKey: .job)
        try container.encode(self.kind, forKey: .kind)
        try container.encode(self.state, forKey: .state)
        try container.encode(self.reason, forKey: .reason)
        try container.encode(self.message, forKey: .message)
    }
}

/// Where a running job stands; sent ten times a second at most.
public struct ProgressDocument: Codable, Sendable, Equatable {
    /// Always `progress`.
    public var type = "progress"
    /// The job.
    public var id: JobID
    /// What it does.
    public var phase: JobPhase
    /// The file's final path, null until the name is known.
    public var path: String?
    /// Bytes present.
    public var bytesDone: Int64
    /// Bytes that survive a power cut.
    public var bytesDurable: Int64
    /// The whole size, null if unknown.
    public var bytesTotal: Int64?
    /// Over the last seconds.
    public var rateBytesPerS: Int64?
    /// Seconds to the end at that rate.
    public var etaS: Int64?

    /// Makes a document.
    public init(
        id: JobID,
        phase: JobPhase,
        path: String? = nil,
        bytesDone: Int64,
        bytesDurable: Int64,
        bytesTotal: Int64?,
        rateBytesPerS: Int64?,
        etaS: Int64?
    ) {
        self.id = id
        self.phase = phase
        self.path = path
        self.bytesDone = bytesDone
        self.bytesDurable = bytesDurable
        self.bytesTotal = bytesTotal
        self.rateBytesPerS = rateBytesPerS
        self.etaS = etaS
    }

    /// Encodes every field, null if unknown.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.type, forKey: .type)
        try container.encode(self.id, forKey: .id)
        try container.encode(self.phase, forKey: .phase)
        try container.encode(self.path, forKey: .path)
        try container.encode(self.bytesDone, forKey: .bytesDone)
        try container.encode(self.bytesDurable, forKey: .bytesDurable)
        try container.encode(self.bytesTotal, forKey: .bytesTotal)
        try container.encode(self.rateBytesPerS, forKey: .rateBytesPerS)
        try container.encode(self.etaS, forKey: .etaS)
    }
}
