import FerryControl
import FerryCore
import FerryEngine
import FerryStore

extension JobDocument {
    /// The document of a job's row, with what its transfer and its partial tell.
    init(_ job: JobRecord, live: Engine.Progress? = nil, remote: RemoteObject? = nil) {
        self.init(
            id: job.id,
            kind: job.kind,
            state: job.state,
            url: job.url,
            priority: job.priority,
            createdAt: job.createdAt
        )
        self.phase = job.state == .running ? live?.phase ?? job.phase : nil
        self.reason = job.waitReason?.rawValue ?? job.failureReason?.rawValue
        self.message = job.message
        self.advice = job.advice
        self.path = job.path
        self.group = job.group
        self.after = job.after
        self.window = job.window?.hours
        self.bytesDone = live?.done ?? job.bytesDurable
        self.bytesDurable = live?.durable ?? job.bytesDurable
        self.bytesTotal = live?.total ?? job.bytesTotal
        self.rateBytesPerS = live?.rate
        self.etaS = live?.secondsLeft
        self.attempt = job.attempts
        self.retryAt = job.state == .waiting ? job.nextTry : nil
        self.startedAt = job.startedAt
        self.finishedAt = job.finishedAt
        self.validator = remote?.validator.map {
            ValidatorDocument(kind: $0.kind.rawValue, value: $0.value, strong: $0.isStrong)
        }
        self.checksum = remote?.verified.map {
            ChecksumDocument(
                algorithm: $0.expected.checksum.algorithm.rawValue,
                expected: $0.expected.checksum.hex,
                actual: $0.actual?.hex,
                source: $0.expected.source.rawValue
            )
        }
        self.resultUrl = job.resultURL
        self.protocol = job.protocolName
        self.httpVersion = job.httpVersion
        self.lengthProved = job.lengthProved
        self.contentEncoding = job.contentEncoding
    }

    /// The document of a job after a change; nil if it is gone.
    init?(_ change: JobChange) {
        guard let job = change.job else { return nil }
        self.init(job, remote: change.remote)
        self.apply(change.hostPause)
    }

    /// Tells what a queued job waits for.
    private mutating func apply(_ pause: Engine.HostPause?) {
        guard let pause else { return }
        self.message = pause.message
        self.retryAt = pause.until
    }

    /// The document of a snapshot; segments only if wanted.
    init(_ snapshot: Engine.Snapshot, segments: Bool = false) {
        self.init(snapshot.job, live: snapshot.live, remote: snapshot.remote)
        self.apply(snapshot.hostPause)
        guard segments else { return }
        self.deadlineAt = snapshot.job.state.isEnded ? nil : snapshot.deadline
        self.answer = snapshot.answer.map {
            AnswerDocument(status: $0.status, headers: $0.headers, body: $0.body, isCut: $0.isCut)
        }
        self.limitRateBytesPerS = snapshot.limitRate
        self.renew = snapshot.renew
        self.segments = snapshot.segments.map {
            SegmentDocument(startBytes: $0.start, endBytes: $0.end, durableBytes: $0.durable)
        }
    }
}

extension ProgressDocument {
    /// The document of a running job's progress.
    init(_ progress: Engine.Progress) {
        self.init(
            id: progress.id,
            phase: progress.phase,
            path: progress.path,
            bytesDone: progress.done,
            bytesDurable: progress.durable,
            bytesTotal: progress.total,
            rateBytesPerS: progress.rate,
            etaS: progress.secondsLeft
        )
    }
}

extension EventDocument {
    /// The document of an entry of the event log.
    init(_ event: EventRecord) {
        self.init(
            seq: event.seq,
            time: event.time,
            job: event.job,
            kind: event.kind,
            state: event.state,
            reason: event.reason,
            message: event.message
        )
    }
}

extension AttemptDocument {
    /// The documents of a job's attempts with their hops.
    static func list(_ history: Engine.History) -> [AttemptDocument] {
        history.attempts.map { attempt in
            var document = AttemptDocument(
                attempt: attempt.number,
                beganAt: attempt.beganAt,
                offsetBytes: attempt.offset,
                receivedBytes: attempt.received
            )
            document.endedAt = attempt.endedAt
            document.outcome = attempt.outcome
            document.message = attempt.message
            document.hops = history.hops.filter { $0.attempt == attempt.number }.map { hop in
                HopDocument(
                    url: hop.url,
                    status: hop.status,
                    address: hop.address,
                    httpVersion: hop.httpVersion,
                    firstByteMs: hop.firstByteMs
                )
            }
            return document
        }
    }
}

extension AddedJob {
    /// The document of an accepted job.
    init(_ added: Engine.Added) {
        let outcome: Outcome =
            switch added.outcome {
            case .new: .new
            case .same: .same
            case .resumed: .resumed
            case .alreadyComplete: .alreadyComplete
            case .skipped: .skipped
            }
        self.init(outcome: outcome, job: added.job.map { JobDocument($0) }, note: added.note)
    }
}

extension RateLimitDocument {
    /// The document of a limit.
    init(_ limit: RateLimit) {
        let direction: Direction =
            switch limit.kind {
            case .both: .both
            case .down: .down
            case .up: .up
            }
        let source: Source =
            switch limit.source {
            case .live: .live
            case .calendar: .calendar
            case .configuration: .configuration
            }
        self.init(host: limit.host, direction: direction, bytesPerS: limit.bytes, source: source)
    }
}

extension LimitChange {
    /// The changes of rates as the engine takes them.
    func rates(of host: HostPattern?) -> [Engine.RateChange] {
        [(RateKind.both, self.rate), (.down, self.down), (.up, self.up)].compactMap { kind, rate in
            let choice: RateChoice
            switch rate {
            case nil: return nil
            case .set(let bytes): choice = .limited(bytes)
            case .unlimited: choice = .unlimited
            case .configured: choice = .unsaid
            }
            return Engine.RateChange(host: host, kind: kind, choice: choice)
        }
    }
}
