/// A job's state with the words that go with it.
///
/// The phase belongs to `running`, wait reason and time to `waiting`, the failure reason to `failed`.
public struct JobStatus: Hashable, Sendable {
    /// Where it stands.
    public var state: JobState
    /// What a running job does.
    public var phase: JobPhase?
    /// Why a waiting job waits.
    public var waitReason: WaitReason?
    /// Why a failed job failed.
    public var failureReason: FailureReason?
    /// When a waiting job will be tried again, if that is known.
    public var retryAt: Timestamp?

    /// Makes a status.
    public init(
        state: JobState,
        phase: JobPhase? = nil,
        waitReason: WaitReason? = nil,
        failureReason: FailureReason? = nil,
        retryAt: Timestamp? = nil
    ) {
        self.state = state
        self.phase = phase
        self.waitReason = waitReason
        self.failureReason = failureReason
        self.retryAt = retryAt
    }
}

/// What happens to a job.
public enum JobEvent: Hashable, Sendable {
    /// The scheduler gave it a place.
    case claimed
    /// Its transfer does something else now.
    case phase(JobPhase)
    /// Its transfer is done and published.
    case succeeded
    /// Its transfer failed for good.
    case failed(FailureReason)
    /// Its transfer cannot go on now.
    case mustWait(WaitReason, until: Timestamp?)
    /// The service stopped or died; no attempt is spent.
    case interrupted
    /// A person stops it.
    case pause
    /// A person lets it go on.
    case resume
    /// A person gives it up.
    case cancel
    /// A person wants it tried again.
    case retry
    /// What it waited for is there.
    case due
    /// It must not begin before then; nil: before other jobs have ended.
    case schedule(Timestamp?)
    /// Its `--deadline` has passed.
    case deadlinePassed
    /// A job that it comes after failed.
    case dependencyFailed
    /// Its link has expired, and there is no new one yet: the program that has one is asked again then.
    case renewLater(Timestamp)
    /// Its link has expired, and there is no new one.
    case renewalFailed
}

/// What the owner does once the new status is committed.
public enum JobEffect: Hashable, Sendable {
    /// End the transfer; its late events change nothing.
    case stopTransfer
    /// Remove the partial, stored as a clean-up so that a crash does not forget it.
    case removePartial
    /// Overwrite the job's secrets.
    case eraseSecrets
    /// Note the time as `finished_at`; a job that is queued again loses it.
    case setFinished
    /// Note the time as `started_at`, if there is none yet.
    case setStarted
}

/// What became of an event.
public enum JobOutcome: Hashable, Sendable {
    /// It is so already, or the event came too late; a success for whoever asked.
    case unchanged
    /// The status is new; the effects are in order.
    case moved([JobEffect])
    /// The state does not allow it.
    case refused
}

/// The life of a job: state and event give the next state and what to do.
///
/// The manual's table of states is the law. Where it leaves a choice: `resume` of a failed job is refused,
/// for `retry` is the word for it, and `retry` of a paused one likewise; `retry` of a queued or running job
/// changes nothing. A deadline does not end a paused job before it is resumed. Whatever a transfer tells
/// after its job has left `running` is late and changes nothing.
public struct JobMachine: Sendable {
    /// The moves that exist, from each state; the same pairs stand in the manual.
    public static let moves: [JobState: Set<JobState>] = [
        .queued: [.running, .waiting, .paused, .cancelled, .failed],
        .running: [.completed, .failed, .waiting, .paused, .cancelled, .queued],
        .waiting: [.queued, .paused, .cancelled, .failed],
        .paused: [.queued, .cancelled],
        .failed: [.queued, .cancelled],
        .completed: [],
        .cancelled: [],
    ]

    /// Where the job stands.
    public private(set) var status: JobStatus

    /// Goes on from a status, as stored.
    public init(status: JobStatus) {
        self.status = status
    }

    /// Applies one event and tells what to do; after a refusal the status is as before.
    public mutating func apply(_ event: JobEvent) -> JobOutcome {
        switch event {
        case .claimed: self.claim()
        case .phase(let phase): self.enter(phase)
        case .succeeded: self.leaveRunning(to: JobStatus(state: .completed), [.eraseSecrets, .setFinished])
        case .failed(let reason):
            self.leaveRunning(to: JobStatus(state: .failed, failureReason: reason), [.setFinished])
        case .mustWait(let reason, let until):
            self.leaveRunning(to: JobStatus(state: .waiting, waitReason: reason, retryAt: until), [])
        case .interrupted: self.leaveRunning(to: JobStatus(state: .queued), [])
        case .pause: self.pause()
        case .resume: self.resume()
        case .cancel: self.cancel()
        case .retry: self.retry()
        case .due: self.becomeDue()
        case .schedule(let time): self.postpone(until: time)
        case .deadlinePassed: self.passDeadline()
        case .dependencyFailed: self.failDependency()
        case .renewLater(let time):
            self.endRenewal(JobStatus(state: .waiting, waitReason: .auth, retryAt: time))
        case .renewalFailed: self.endRenewal(JobStatus(state: .failed, failureReason: .linkExpired))
        }
    }

    private mutating func move(to status: JobStatus, _ effects: [JobEffect]) -> JobOutcome {
        self.status = status
        return .moved(effects)
    }

    private mutating func claim() -> JobOutcome {
        switch self.status.state {
        case .queued: self.move(to: JobStatus(state: .running, phase: .connecting), [.setStarted])
        case .running, .waiting, .paused, .failed, .completed, .cancelled: .refused
        }
    }

    private mutating func enter(_ phase: JobPhase) -> JobOutcome {
        switch self.status.state {
        case .running:
            phase == self.status.phase
                ? .unchanged : self.move(to: JobStatus(state: .running, phase: phase), [])
        case .queued, .waiting, .paused, .failed, .completed, .cancelled: .unchanged
        }
    }

    private mutating func leaveRunning(to status: JobStatus, _ effects: [JobEffect]) -> JobOutcome {
        switch self.status.state {
        case .running: self.move(to: status, effects)
        case .queued, .waiting, .paused, .failed, .completed, .cancelled: .unchanged
        }
    }

    private mutating func pause() -> JobOutcome {
        switch self.status.state {
        case .queued, .waiting: self.move(to: JobStatus(state: .paused), [])
        case .running: self.move(to: JobStatus(state: .paused), [.stopTransfer])
        case .paused: .unchanged
        case .failed, .completed, .cancelled: .refused
        }
    }

    private mutating func resume() -> JobOutcome {
        switch self.status.state {
        case .waiting, .paused: self.move(to: JobStatus(state: .queued), [])
        case .queued, .running: .unchanged
        case .failed, .completed, .cancelled: .refused
        }
    }

    private mutating func cancel() -> JobOutcome {
        let effects: [JobEffect] = [.removePartial, .eraseSecrets, .setFinished]
        switch self.status.state {
        case .queued, .waiting, .paused, .failed:
            return self.move(to: JobStatus(state: .cancelled), effects)
        case .running:
            return self.move(to: JobStatus(state: .cancelled), [.stopTransfer] + effects)
        case .cancelled:
            return .unchanged
        case .completed:
            return .refused
        }
    }

    private mutating func retry() -> JobOutcome {
        switch self.status.state {
        case .failed, .waiting: self.move(to: JobStatus(state: .queued), [])
        case .queued, .running: .unchanged
        case .paused, .completed, .cancelled: .refused
        }
    }

    private mutating func becomeDue() -> JobOutcome {
        switch self.status.state {
        case .waiting: self.move(to: JobStatus(state: .queued), [])
        case .queued, .running, .paused, .failed, .completed, .cancelled: .unchanged
        }
    }

    /// A paused or failed job stays as it is; one that is resumed or tried again can be postponed then.
    private mutating func postpone(until time: Timestamp?) -> JobOutcome {
        let waiting = JobStatus(state: .waiting, waitReason: .schedule, retryAt: time)
        switch self.status.state {
        case .queued: return self.move(to: waiting, [])
        case .running: return self.move(to: waiting, [.stopTransfer])
        case .waiting: return self.status == waiting ? .unchanged : self.move(to: waiting, [])
        case .paused, .failed: return .unchanged
        case .completed, .cancelled: return .refused
        }
    }

    private mutating func passDeadline() -> JobOutcome {
        let failed = JobStatus(state: .failed, failureReason: .gaveUp)
        switch self.status.state {
        case .queued, .waiting: return self.move(to: failed, [.setFinished])
        case .running: return self.move(to: failed, [.stopTransfer, .setFinished])
        case .paused, .failed, .completed, .cancelled: return .unchanged
        }
    }

    private mutating func failDependency() -> JobOutcome {
        switch self.status.state {
        case .waiting:
            self.move(to: JobStatus(state: .failed, failureReason: .dependency), [.setFinished])
        case .queued, .running, .paused, .failed, .completed, .cancelled: .unchanged
        }
    }

    /// Whoever has paused, resumed or given up the job meanwhile has the last word.
    private mutating func endRenewal(_ status: JobStatus) -> JobOutcome {
        guard self.status.state == .waiting, self.status.waitReason == .auth, self.status != status else {
            return .unchanged
        }
        return self.move(to: status, status.state == .failed ? [.setFinished] : [])
    }
}
