public import FerryCore
public import FerryStore

extension Engine {
    /// A job with what only its running transfer knows.
    public struct Snapshot: Sendable {
        /// The row.
        public let job: JobRecord
        /// The transfer, if it runs.
        public let live: Progress?
        /// What is known of the remote object.
        public let remote: RemoteObject?
        /// The segments of the newest generation.
        public let segments: [SegmentRecord]
        /// Why it is queued and does not run, if that is its host's doing.
        public var hostPause: HostPause?
        /// What a server has answered to an upload; only where one job is asked for.
        public var answer: KeptAnswer?
        /// When the job gives up; only where one job is asked for.
        public var deadline: Timestamp?
        /// The job's own limit in bytes a second; only where one job is asked for.
        public var limitRate: Int64?
        /// The program that has new links; only where one job is asked for.
        public var renew: String?
    }

    /// Where a running job stands.
    public struct Progress: Sendable {
        /// The job.
        public let id: JobID
        /// What it does.
        public let phase: JobPhase
        /// The file's final path, once the name is known.
        public let path: String?
        /// Bytes present.
        public let done: Int64
        /// Bytes that survive a power cut.
        public let durable: Int64
        /// The whole size.
        public let total: Int64?
        /// Bytes a second over the last seconds.
        public let rate: Int64?

        /// Seconds to the end at that rate.
        public var secondsLeft: Int64? {
            guard let total, let rate, rate > 0, total >= self.done else { return nil }
            return (total - self.done + rate - 1) / rate
        }
    }

    /// The history of a job.
    public struct History: Sendable {
        /// Its attempts, oldest first.
        public let attempts: [AttemptRecord]
        /// Their requests, in order.
        public let hops: [HopRecord]
        /// Its events, oldest first.
        public let events: [EventRecord]
    }

    /// Where the running jobs stand, in the order of their numbers.
    public func progress() -> [Progress] {
        self.running.keys.sorted().compactMap { self.progress(of: $0) }
    }

    /// The jobs that a filter lets through, oldest first.
    ///
    /// They are read in pages, between which others have their turn; so the list is no snapshot of one moment.
    public func jobs(_ filter: JobFilter) async throws -> [Snapshot] {
        var snapshots: [Snapshot] = []
        var page = filter
        var left = filter.limit ?? .max
        while left > 0 {
            page.limit = min(left, Self.page)
            let rows = try await self.services.store.read { [page] reader in
                try reader.jobs(page).map { job in
                    (job, try reader.file(job.id).map { RemoteObject(json: $0.remote) })
                }
            }
            snapshots += rows.reversed().map { job, remote in
                self.snapshot(job, remote)
            }
            left -= rows.count
            guard rows.count == page.limit, let oldest = rows.first?.0.id else { break }
            page.before = oldest
        }
        return snapshots.reversed()
    }

    /// Jobs that are read at once.
    private static let page = 500

    /// One job with its segments; nil if there is none of that number.
    public func job(_ id: JobID) async throws -> Snapshot? {
        let row = try await self.services.store.read {
            reader -> (JobRecord, FileRecord?, [SegmentRecord], String?, JobRequest?)? in
            guard let job = try reader.job(id) else { return nil }
            let file = try reader.file(id)
            let segments = try file.map { try reader.segments(id, generation: $0.generation) } ?? []
            return (job, file, segments, try reader.upload(id)?.answer, try reader.request(id))
        }
        return row.map { job, file, segments, answer, request in
            var snapshot = self.snapshot(job, file.map { RemoteObject(json: $0.remote) }, segments)
            snapshot.answer = KeptAnswer(json: answer)
            snapshot.deadline = request?.deadlineAt
            snapshot.limitRate = request?.limitRateBytes
            snapshot.renew = request?.renew
            return snapshot
        }
    }

    /// The history of a job.
    public func history(_ id: JobID) async throws -> History {
        try await self.services.store.read { reader in
            History(
                attempts: try reader.attempts(id),
                hops: try reader.hops(id),
                events: try reader.events(job: id)
            )
        }
    }

    /// Numbers of jobs by state.
    public func counts() async throws -> [JobState: Int64] {
        try await self.services.store.read { try $0.counts() }
    }

    func snapshot(_ job: JobRecord, _ remote: RemoteObject?, _ segments: [SegmentRecord] = []) -> Snapshot {
        Snapshot(
            job: job,
            live: self.progress(of: job.id),
            remote: remote,
            segments: segments,
            hostPause: self.hostPause(of: job, at: self.services.time.now())
        )
    }

    func progress(of id: JobID) -> Progress? {
        guard let running = self.running[id] else { return nil }
        return Progress(
            id: id,
            phase: running.phase,
            path: running.path,
            done: running.done,
            durable: running.durable,
            total: running.total,
            rate: running.rate(at: self.services.time.monotonic())
        )
    }
}
