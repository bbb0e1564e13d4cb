import FerryCore
import FerryFiles
import FerryStore

/// Takes up what a service left that ended without warning, before anything runs.
struct Recovery: Sendable {
    let services: TransferServices
    /// What the progress board claims of segments that were being written.
    let claims: [ProgressBoard.Key: ProgressBoard.Claim]

    /// Brings files and rows together again.
    ///
    /// A running job goes back to the queue, no attempt spent, unless its file already has its final name:
    /// then only the commit was missing, and is done. Recorded clean-ups are carried out.
    func run() async throws -> [JobChange] {
        var changes: [JobChange] = []
        for (key, claim) in self.claims { try await self.prove(claim, of: key) }
        let running = try await self.services.store.read { try $0.runningJobs() }
        for job in running {
            var published: PublishedFile?
            if job.phase == .finishing {
                // A folder that cannot be used now is looked at again by the job's own next attempt.
                published = try? await PublishedSearch(services: self.services, job: job).run()
            }
            changes += try await self.settle(job, published)
        }
        for cleanup in try await self.services.store.read({ try $0.cleanups() }) {
            switch cleanup.kind {
            case Cleanup.unlink:
                // A folder that cannot be used now is tried again at the next start.
                try? await Cleanup.carryOut(cleanup, self.services)
            case Cleanup.cancel:
                // Nor does it keep the service from the other jobs: the wish stays recorded.
                if let id = cleanup.job {
                    changes += (try? await Cancellation(services: self.services).carryOut(id)) ?? []
                }
            default:
                break
            }
        }
        return changes
    }

    /// Keeps what a killed process had written and not yet committed: what proves is synced, then committed.
    private func prove(_ claim: ProgressBoard.Claim, of key: ProgressBoard.Key) async throws {
        let (job, request, record) = try await self.services.store.read { reader in
            (try reader.job(key.job), try reader.request(key.job), try reader.file(key.job))
        }
        guard let job, let request, let record, record.generation == key.generation, key.start == 0 else {
            return
        }
        let running = RunningJob(id: job.id, host: job.host, attempt: job.attempts)
        let transfer = DownloadTransfer(
            services: self.services,
            running: running,
            job: job,
            request: request
        )
        // A partial that cannot be opened now is the next attempt's matter, and so is what lies before the
        // committed offset: reading all of it here would keep everyone waiting.
        guard let partial = try? await transfer.find(record) else { return }
        let proved = try? await self.services.disk.run {
            let proved = try ProgressBoard.prove(claim, of: partial.file, durable: partial.prefix)
            if proved.end > partial.durable { try partial.file.syncData() }
            return proved
        }
        guard let proved, proved.end > partial.durable else { return }
        try await transfer.commit(proved, of: partial)
    }

    private func settle(_ job: JobRecord, _ published: PublishedFile?) async throws -> [JobChange] {
        let end: AttemptEnd = published.map { .published($0) } ?? .stopped
        let running = RunningJob(id: job.id, host: job.host, attempt: job.attempts)
        return try await AttemptLedger(services: self.services).commit(end, of: running)
    }
}

/// Cancels jobs in three steps that a crash may part: the intent is committed, their partials go, and only
/// then do the jobs say `cancelled`.
struct Cancellation: Sendable {
    let services: TransferServices

    /// Commits the intent.
    func intend(_ ids: [JobID]) async throws {
        guard !ids.isEmpty else { return }
        let now = self.services.time.now()
        try await self.services.store.write { transaction in
            let known = Set(try transaction.cleanups().filter { $0.kind == Cleanup.cancel }.map(\.job))
            for id in ids where !known.contains(id) {
                _ = try transaction.add(cleanup: Cleanup.cancel, job: id, detail: "", at: now)
            }
        }
        self.services.crash.reach(.cancelCommitted)
    }

    /// Removes the partials, and says that the job is cancelled.
    func carryOut(_ id: JobID) async throws -> [JobChange] {
        if let failure = try await self.removePartials(of: [id])[id] { throw failure }
        return try await self.conclude([id], abandonsUploads: true)
    }

    /// Removes the partials of jobs; gives the failures of those whose folder cannot be used.
    func removePartials(of ids: [JobID]) async throws -> [JobID: FerryError] {
        guard !ids.isEmpty else { return [:] }
        let files = try await self.services.store.read { reader in
            try ids.flatMap { try reader.files($0) }
        }
        let calls = self.services.calls
        var failures: [JobID: FerryError] = [:]
        for file in files where failures[file.job] == nil {
            let detail = try Cleanup.detail(file)
            do {
                try await self.services.disk.run { try Cleanup.remove(detail, calls: calls) }
            } catch {
                failures[file.job] = error.asFerryError
            }
        }
        self.services.crash.reach(.cancelUnlinked)
        return failures
    }

    /// Says that jobs are cancelled; what is on disk stays, and what is on a server only if it is not abandoned.
    func conclude(_ ids: [JobID], abandonsUploads: Bool) async throws -> [JobChange] {
        guard !ids.isEmpty else { return [] }
        let now = self.services.time.now()
        return try await self.services.store.write { transaction in
            var changes: [JobChange] = []
            for id in ids {
                if abandonsUploads { try UploadCleanup.abandon(id, in: transaction, at: now) }
                let result = try JobLedger.apply(.cancel, to: id, in: transaction, at: now)
                if case .moved(let change) = result { changes.append(change) }
            }
            let done = Set(ids)
            for cleanup in try transaction.cleanups() where cleanup.kind == Cleanup.cancel {
                if let job = cleanup.job, done.contains(job) { try transaction.removeCleanup(cleanup.id) }
            }
            return changes
        }
    }
}
