public import FerryCore
public import FerryStore

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

        /// Makes an answer.
        public init(id: JobID, state: JobState?, error: String?) {
            self.id = id
            self.state = state
            self.error = error
        }

        /// The answer for a number that no job has.
        static func unknown(_ id: JobID) -> Steered {
            Steered(id: id, state: nil, error: "there is no job \(id)")
        }
    }

    /// Jobs that are steered in one transaction: few enough that nobody else waits long for the database.
    static let steeringBatch = 256

    /// The numbers of the jobs that a filter lets through, oldest first.
    public func select(_ filter: JobFilter) async throws -> [JobID] {
        try await self.services.store.read { try $0.jobIDs(filter) }
    }

    /// Steers jobs; when it returns, the changes are committed.
    ///
    /// Many jobs are steered in batches, each in one transaction. None of them is started meanwhile.
    ///
    /// - Returns: An answer a job, in their order.
    public func steer(_ steering: Steering, _ ids: [JobID]) async throws -> [Steered] {
        await self.followClock()
        self.hold(ids)
        defer { self.release(ids) }
        var steered: [Steered] = []
        steered.reserveCapacity(ids.count)
        for start in stride(from: 0, to: ids.count, by: Self.steeringBatch) {
            let batch = Array(ids[start..<min(start + Self.steeringBatch, ids.count)])
            switch steering {
            case .pause:
                await self.stopTransfers(of: batch, for: .pause)
                steered += try await self.apply(
                    .pause,
                    to: batch,
                    refusal: "is over; there is nothing to pause"
                )
            case .resume:
                steered += try await self.apply(
                    .resume,
                    to: batch,
                    refusal: "cannot be resumed; `ferry retry` tries a failed job again"
                )
            case .retry:
                steered += try await self.apply(
                    .retry,
                    to: batch,
                    refusal: "cannot be tried again; `ferry resume` goes on with a paused job"
                )
            case .cancel(let keepPartial):
                steered += try await self.cancel(batch, keepPartial: keepPartial)
            case .remove:
                steered += try await self.remove(batch)
            }
        }
        return steered
    }

    /// Lets jobs run that steering made ready.
    public func runSteered() async {
        await self.renewLinks()
        await self.schedule()
    }

    /// Tells observers of committed changes, and sees to it that jobs that wait now are woken.
    func tell(_ changes: [JobChange]) {
        for job in changes.compactMap(\.job) { self.running[job.id]?.priority = job.priority }
        self.observer(changes)
        self.wake(for: changes)
    }

    private func apply(_ event: JobEvent, to ids: [JobID], refusal: String) async throws -> [Steered] {
        let now = self.services.time.now()
        let (steered, changes, hurried) = try await self.services.store.write { transaction in
            var steered: [Steered] = []
            var changes: [JobChange] = []
            var hurried: Set<String> = []
            for id in ids {
                if event != .pause, let job = try transaction.job(id),
                    [.waiting, .failed].contains(job.state)
                {
                    hurried.insert(job.host)
                }
                let result = try Self.apply(event, to: id, in: transaction, at: now, &changes)
                switch result {
                case .moved(let change):
                    steered.append(Steered(id: id, state: change.job?.state, error: Self.vain(change.job)))
                case .unchanged(let job):
                    steered.append(Steered(id: id, state: job.state, error: Self.vain(job)))
                case .refused(let job):
                    let error = "job \(id) is \(job.state.rawValue) and \(refusal)"
                    steered.append(Steered(id: id, state: job.state, error: error))
                case .unknown:
                    steered.append(.unknown(id))
                }
            }
            return (steered, changes, hurried)
        }
        for host in hurried { self.queue.hurry(host, at: now) }
        self.publishPauses(of: hurried)
        self.tell(changes)
        return steered
    }

    /// What is said of a job that steering has not set going, since one that it comes after has failed.
    private static func vain(_ job: JobRecord?) -> String? {
        guard let job, job.state == .failed else { return nil }
        return "job \(job.id) fails at once: \(job.message ?? "")"
    }

    /// Applies an event; one that waits for a time or its window waits for neither any longer.
    private static func apply(
        _ event: JobEvent,
        to id: JobID,
        in transaction: Transaction,
        at now: Timestamp,
        _ changes: inout [JobChange]
    ) throws -> LedgerResult {
        let before = try transaction.job(id)?.state
        let result = try JobLedger.apply(event, to: id, in: transaction, at: now) { row in
            guard event == .resume || event == .retry else { return }
            if before != .paused { row.notBefore = nil }
            if before == .waiting, let window = row.window, !window.isOpen(at: now) {
                row.windowFrom = window.opening(after: now)
            }
            row.progressAt = now  // the time that it stood still counts for nothing
        }
        if let change = result.change { changes.append(change) }
        return result
    }

    private func cancel(_ ids: [JobID], keepPartial: Bool) async throws -> [Steered] {
        let rows = try await self.services.store.read { reader in
            try ids.map { id in
                let job = try reader.job(id)
                let hasFiles = try !reader.files(id).isEmpty
                return (state: job?.state, hasFiles: hasFiles, isUpload: job?.kind == .upload)
            }
        }
        var open: [JobID] = []
        var withPartial: [JobID] = []
        for (id, row) in zip(ids, rows) where row.state?.isFinal == false {
            open.append(id)
            if !keepPartial, row.hasFiles || self.running[id] != nil { withPartial.append(id) }
        }
        let cancellation = Cancellation(services: self.services)
        try await cancellation.intend(withPartial)
        await self.stopTransfers(of: open, for: .cancel)
        let failures = try await cancellation.removePartials(of: withPartial)
        let given = open.filter { failures[$0] == nil }
        self.tell(try await cancellation.conclude(given, abandonsUploads: !keepPartial))
        if rows.contains(where: \.isUpload) {
            self.services.crash.reach(.uploadAbandoned)
            await self.tidyNow()
        }
        let states = try await self.services.store.read { reader in
            try ids.map { try reader.job($0)?.state }
        }
        let wasOpen = Set(open)
        return zip(ids, states).map { id, state in
            if let failure = failures[id] {
                return Steered(id: id, state: state, error: "job \(id): \(failure)")
            }
            switch state {
            case nil: return .unknown(id)
            case .completed where wasOpen.contains(id):
                let error = "job \(id) was completed before it could be cancelled"
                return Steered(id: id, state: state, error: error)
            case .completed:
                return Steered(
                    id: id,
                    state: state,
                    error: "job \(id) is completed and cannot be cancelled"
                )
            default:
                return Steered(id: id, state: state, error: nil)
            }
        }
    }

    private func remove(_ ids: [JobID]) async throws -> [Steered] {
        let now = self.services.time.now()
        let (steered, changes, cleanups) = try await self.services.store.write {
            transaction -> ([Steered], [JobChange], [CleanupRecord]) in
            var steered: [Steered] = []
            var changes: [JobChange] = []
            var added: Set<Int64> = []
            for id in ids {
                guard let job = try transaction.job(id) else {
                    steered.append(.unknown(id))
                    continue
                }
                guard job.state.isEnded else {
                    let error = "job \(id) is \(job.state.rawValue); cancel it first"
                    steered.append(Steered(id: id, state: job.state, error: error))
                    continue
                }
                if job.state == .failed, job.kind == .upload {
                    try UploadCleanup.abandon(id, in: transaction, at: now)
                    try UploadCleanup.removeSpool(of: id, in: transaction, at: now)
                }
                // A failed job's partial goes with it. The clean-up outlives the job's rows.
                for file in job.state == .failed ? try transaction.files(id) : [] {
                    let detail = try Cleanup.detail(file)
                    added.insert(
                        try transaction.add(cleanup: Cleanup.unlink, job: nil, detail: detail, at: now)
                    )
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
                steered.append(Steered(id: id, state: nil, error: nil))
                changes.append(JobChange(event: event, job: nil, remote: nil))
            }
            let cleanups = added.isEmpty ? [] : try transaction.cleanups().filter { added.contains($0.id) }
            return (steered, changes, cleanups)
        }
        for cleanup in cleanups { try await Cleanup.carryOut(cleanup, self.services) }
        self.tell(changes)
        await self.tidyNow()
        return steered
    }
}
