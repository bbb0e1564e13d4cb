public import FerryCore
public import FerryStore

/// Something that happened to a job, as committed: what subscribers are told.
public struct JobChange: Sendable {
    /// The entry of the event log.
    public let event: EventRecord
    /// The job after it; nil if it was removed.
    public let job: JobRecord?
    /// What is known of the remote object.
    public let remote: RemoteObject?
    /// Why a queued job waits, if it is for its host.
    public internal(set) var hostPause: Engine.HostPause?
    /// When the job gives up, if that is new.
    var deadline: Timestamp?
    /// What the same commit brought about for other jobs; told first.
    var others: [JobChange] = []

    /// All changes, in the order in which they are told.
    var all: [JobChange] {
        var own = self
        own.others = []
        return self.others + [own]
    }
}

/// What became of an event that was applied to a job's row.
enum LedgerResult: Sendable {
    /// The row moved; tell subscribers after the commit.
    case moved(JobChange)
    /// It was so already.
    case unchanged(JobRecord)
    /// The job's state does not allow it.
    case refused(JobRecord)
    /// No such job.
    case unknown
}

/// Moves jobs from state to state: the machine's verdict, the row, the event and what follows from it are one
/// transaction.
enum JobLedger {
    /// Applies an event to a job.
    ///
    /// `edit` changes the row beside its state; it is called only if the event moves the job. A job that would be
    /// queued waits if its schedule wants that. With `settles` the jobs that come after one that ends follow.
    static func apply(
        _ event: JobEvent,
        to id: JobID,
        in transaction: Transaction,
        at now: Timestamp,
        settles: Bool = true,
        edit: (inout JobRecord) -> Void = { _ in }
    ) throws -> LedgerResult {
        guard var job = try transaction.job(id) else { return .unknown }
        let before = job
        var machine = JobMachine(status: job.status)
        switch machine.apply(event) {
        case .unchanged:
            return .unchanged(job)
        case .refused:
            return .refused(job)
        case .moved(let effects):
            job.status = machine.status
            // What was said about the state before is over; `edit` says what is true now.
            job.message = nil
            job.advice = nil
            if before.state == .failed, event == .retry { job.beginAnew(at: now) }
            edit(&job)
            if job.state == .queued, let hold = try JobSchedule.hold(job, in: transaction, at: now) {
                JobSchedule.apply(to: &job, &machine, hold)
                if job.status == before.status, job.message == before.message { return .unchanged(before) }
            }
            if job.state == .failed {
                job.advice = FailureAdvice.naming(
                    id,
                    job.advice ?? job.failureReason.map { FailureAdvice.text($0) } ?? ""
                )
            }
            if effects.contains(.setStarted), job.startedAt == nil { job.startedAt = now }
            job.finishedAt = job.state.isEnded ? now : nil
            try transaction.save(job)
            if job.state.isFinal {
                try transaction.release(id)
                if job.kind == .upload { try UploadCleanup.removeSpool(of: id, in: transaction, at: now) }
                try transaction.eraseSecrets(id)
            }
            var others =
                settles && job.state.isEnded
                ? try JobSchedule.settle(after: job, in: transaction, at: now) : []
            if (job.state == .paused) != (before.state == .paused) {
                others += try JobSchedule.renewMessages(after: id, in: transaction, at: now)
            }
            let entry = try transaction.append(
                event: self.word(job.state, event),
                job: id,
                state: job.state,
                reason: job.waitReason?.rawValue ?? job.failureReason?.rawValue,
                message: job.message,
                at: now
            )
            let remote = try transaction.file(id).map { RemoteObject(json: $0.remote) }
            var change = JobChange(event: entry, job: job, remote: remote, others: others)
            let wasFailed = before.state == .failed
            if wasFailed || before.state == .paused, job.state == .queued || job.state == .waiting {
                change.deadline = try self.renewDeadline(
                    of: job,
                    wasFailed: wasFailed,
                    in: transaction,
                    at: now
                )
            }
            return .moved(change)
        }
    }

    /// The word of the event log.
    private static func word(_ state: JobState, _ event: JobEvent) -> String {
        switch state {
        case .running: "started"
        case .queued: event == .interrupted ? "interrupted" : "queued"
        case .waiting, .paused, .failed, .completed, .cancelled: state.rawValue
        }
    }
}

extension JobRecord {
    /// Starts the counts anew by which a job gives up: a person wants it tried again.
    fileprivate mutating func beginAnew(at now: Timestamp) {
        self.transientTries = 0
        self.doubtfulTries = 0
        self.forgivenAttempts = self.attempts
        self.restarts = 0
        self.mismatches = 0
        self.progressAt = now
        self.renewals = 0
    }

    /// The part of the row that the state machine owns.
    public var status: JobStatus {
        get {
            JobStatus(
                state: self.state,
                phase: self.phase,
                waitReason: self.waitReason,
                failureReason: self.failureReason,
                retryAt: self.state == .waiting ? self.nextTry : nil
            )
        }
        set {
            self.state = newValue.state
            self.phase = newValue.phase
            self.waitReason = newValue.waitReason
            self.failureReason = newValue.failureReason
            self.nextTry = newValue.retryAt
        }
    }
}
