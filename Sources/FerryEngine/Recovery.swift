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
            let published = job.phase == .finishing ? try await self.published(job) : nil
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
        let keep = self.services.configuration.historyKeep
        let now = self.services.time.now()
        let oldest = Timestamp(milliseconds: now.milliseconds - keep.milliseconds)
        _ = try await self.services.store.write { try $0.trim(endedBefore: oldest, limit: 10_000) }
        return changes
    }

    /// Keeps what a killed process had written and not yet committed: what proves is synced, then committed.
    private func prove(_ claim: ProgressBoard.Claim, of key: ProgressBoard.Key) async throws {
        let (job, request, record, segments) = try await self.services.store.read { reader in
            (
                try reader.job(key.job), try reader.request(key.job), try reader.file(key.job),
                try reader.segments(key.job, generation: key.generation)
            )
        }
        guard let job, let request, let record, record.generation == key.generation,
            let segment = segments.first(where: { $0.start == key.start })
        else { return }
        let running = RunningJob(id: job.id, host: job.host, attempt: job.attempts)
        let transfer = DownloadTransfer(
            services: self.services,
            running: running,
            job: job,
            request: request
        )
        // A partial that cannot be opened now is the next attempt's matter.
        guard let partial = try? await transfer.openPartial() else { return }
        let proved = try? await self.services.disk.run {
            let proved = try ProgressBoard.prove(claim, of: partial.file, durable: segment.durable)
            if proved > segment.durable { try partial.file.syncData() }
            return proved
        }
        guard let proved, proved > segment.durable else { return }
        try await transfer.commit(durable: proved, of: partial)
    }

    /// The file under its final name, if the rename had happened: the partial's inode and whole size.
    private func published(_ job: JobRecord) async throws -> (FileRecord, PublishedFile)? {
        let id = job.id
        guard let record = try await self.services.store.read({ try $0.file(id) }) else { return nil }
        let calls = self.services.calls
        let found = try? await self.services.disk.run { () -> (String, OpenFile.Identity)? in
            let folder = try Folder(record.directory, calls: calls)
            guard let identity = try folder.identity(of: record.name), identity.isRegular,
                identity.isSameFile(inode: record.inode),
                identity.size == job.bytesTotal
            else { return nil }
            // Where a file cannot be renamed without replacing, it has both names for a moment.
            if let left = try folder.identity(of: record.partialName),
                left.isSameFile(inode: record.inode)
            {
                try folder.remove(record.partialName)
            }
            try folder.sync()
            return (folder.path(of: record.name), identity)
        }
        guard let (path, identity) = found else { return nil }
        let remote = RemoteObject(json: record.remote)
        return (record, PublishedFile(path: path, identity: identity, remote: remote, fingerprint: nil))
    }

    private func settle(_ job: JobRecord, _ published: (FileRecord, PublishedFile)?) async throws
        -> [JobChange]
    {
        let end: AttemptEnd = published.map { .published($0.1) } ?? .stopped
        let running = RunningJob(id: job.id, host: job.host, attempt: job.attempts)
        return try await AttemptLedger(services: self.services).commit(end, of: running)
    }
}

/// Cancels a job in three steps that a crash may part: the intent is committed, its partials go, and only
/// then does the job say `cancelled`.
struct Cancellation: Sendable {
    let services: TransferServices

    /// Commits the intent.
    func intend(_ id: JobID) async throws {
        let now = self.services.time.now()
        try await self.services.store.write { transaction in
            guard try !transaction.cleanups().contains(where: { $0.job == id && $0.kind == Cleanup.cancel })
            else { return }
            _ = try transaction.add(cleanup: Cleanup.cancel, job: id, detail: "", at: now)
        }
        self.services.crash.reach(.cancelCommitted)
    }

    /// Removes the partials and says that the job is cancelled.
    func carryOut(_ id: JobID) async throws -> [JobChange] {
        let files = try await self.services.store.read { try $0.files(id) }
        let calls = self.services.calls
        for file in files {
            let detail = try Cleanup.detail(file)
            try await self.services.disk.run { try Cleanup.remove(detail, calls: calls) }
        }
        self.services.crash.reach(.cancelUnlinked)
        return try await self.conclude(id, abandonsUpload: true)
    }

    /// Says that the job is cancelled; what is on disk stays, and what is on a server only if it is not abandoned.
    func conclude(_ id: JobID, abandonsUpload: Bool = false) async throws -> [JobChange] {
        let now = self.services.time.now()
        return try await self.services.store.write { transaction in
            if abandonsUpload { try UploadCleanup.abandon(id, in: transaction, at: now) }
            let result = try JobLedger.apply(.cancel, to: id, in: transaction, at: now)
            for cleanup in try transaction.cleanups()
            where cleanup.job == id && cleanup.kind == Cleanup.cancel {
                try transaction.removeCleanup(cleanup.id)
            }
            if case .moved(let change) = result { return [change] }
            return []
        }
    }
}
