public import FerryCore
import FerryStore

extension Engine {
    /// What a person can do to a job.
    public enum Steering: Sendable {
        /// Stop until resumed.
        case pause
        /// Queue a paused job; a waiting one is due now.
        case resume
        /// Give up.
        case cancel(keepPartial: Bool)
        /// Queue a failed job; a waiting one is due now.
        case retry
        /// Forget an ended job.
        case remove
    }

    /// What became of one job.
    public struct Steered: Sendable {
        /// The job.
        public let id: JobID
        /// Its state now; nil if it is unknown or was removed.
        public let state: JobState?
        /// Why it could not be done; nil if it was, or was so already.
        public let error: String?
    }

    /// Steers one job; when it returns, the change is committed.
    public func steer(_ steering: Steering, _ id: JobID) async throws -> Steered {
        self.held.insert(id)
        defer { self.held.remove(id) }
        let steered: Steered
        switch steering {
        case .pause:
            await self.stopTransfer(of: id, for: .pause)
            steered = try await self.apply(.pause, to: id, refusal: "is over; there is nothing to pause")
        case .resume:
            steered = try await self.apply(
                .resume,
                to: id,
                refusal: "cannot be resumed; `ferry retry` tries a failed job again"
            )
        case .retry:
            steered = try await self.apply(
                .retry,
                to: id,
                refusal: "cannot be tried again; `ferry resume` goes on with a paused job"
            )
        case .cancel(let keepPartial):
            steered = try await self.cancel(id, keepPartial: keepPartial)
        case .remove:
            steered = try await self.remove(id)
        }
        return steered
    }

    /// Lets jobs run that steering made ready.
    public func runSteered() async {
        await self.schedule()
    }

    private func apply(_ event: JobEvent, to id: JobID, refusal: String) async throws -> Steered {
        let now = self.services.time.now()
        let result = try await self.services.store.write { transaction in
            try JobLedger.apply(event, to: id, in: transaction, at: now)
        }
        switch result {
        case .moved(let change):
            self.observer([change])
            return Steered(id: id, state: change.job?.state, error: nil)
        case .unchanged(let job):
            return Steered(id: id, state: job.state, error: nil)
        case .refused(let job):
            return Steered(
                id: id,
                state: job.state,
                error: "job \(id) is \(job.state.rawValue) and \(refusal)"
            )
        case .unknown:
            return Steered(id: id, state: nil, error: "there is no job \(id)")
        }
    }

    private func cancel(_ id: JobID, keepPartial: Bool) async throws -> Steered {
        guard let job = try await self.services.store.read({ try $0.job(id) }) else {
            return Steered(id: id, state: nil, error: "there is no job \(id)")
        }
        guard !job.state.isFinal else {
            let error = job.state == .cancelled ? nil : "job \(id) is completed and cannot be cancelled"
            return Steered(id: id, state: job.state, error: error)
        }
        let cancellation = Cancellation(services: self.services)
        if !keepPartial { try await cancellation.intend(id) }
        await self.stopTransfer(of: id, for: .cancel)
        let changes = try await keepPartial ? cancellation.conclude(id) : cancellation.carryOut(id)
        self.observer(changes)
        if job.kind == .upload {
            self.services.crash.reach(.uploadAbandoned)
            await self.tidyNow()
        }
        let state = try await self.services.store.read { try $0.job(id)?.state }
        let error = state == .completed ? "job \(id) was completed before it could be cancelled" : nil
        return Steered(id: id, state: state, error: error)
    }

    private func remove(_ id: JobID) async throws -> Steered {
        let now = self.services.time.now()
        let services = self.services
        let (steered, change, cleanups) = try await services.store.write {
            transaction -> (Steered, JobChange?, [CleanupRecord]) in
            guard let job = try transaction.job(id) else {
                return (Steered(id: id, state: nil, error: "there is no job \(id)"), nil, [])
            }
            guard job.state.isEnded else {
                let error = "job \(id) is \(job.state.rawValue); cancel it first"
                return (Steered(id: id, state: job.state, error: error), nil, [])
            }
            // A failed job's partial goes with it. The clean-up outlives the job's rows.
            var ids: [Int64] = []
            if job.state == .failed, job.kind == .upload {
                try UploadCleanup.abandon(id, in: transaction, at: now)
                try UploadCleanup.removeSpool(of: id, in: transaction, at: now)
            }
            if job.state == .failed {
                for file in try transaction.files(id) {
                    let detail = try Cleanup.detail(file)
                    ids.append(
                        try transaction.add(cleanup: Cleanup.unlink, job: nil, detail: detail, at: now)
                    )
                }
            }
            let event = try transaction.append(
                event: "removed",
                job: id,
                state: nil,
                reason: nil,
                message: nil,
                at: now
            )
            try transaction.remove(id)
            let added = try transaction.cleanups().filter { ids.contains($0.id) }
            return (
                Steered(id: id, state: nil, error: nil), JobChange(event: event, job: nil, remote: nil), added
            )
        }
        for cleanup in cleanups { try await Cleanup.carryOut(cleanup, services) }
        if let change { self.observer([change]) }
        await self.tidyNow()
        return steered
    }
}
