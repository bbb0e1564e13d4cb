public import FerryCore

extension Engine {
    /// Says that a client stands for jobs: they run as long as it, or another that does, stays.
    public func attach(_ client: ClientKey, jobs: [JobID]) async {
        self.attachments[client, default: Attachment()].jobs.formUnion(jobs)
        let wanted = await self.withDependencies(jobs)
        self.attachments[client]?.jobs.formUnion(wanted)  // it may have gone meanwhile
        if self.view == .wanted { self.view = .none }
        await self.schedule()
        await self.renewLinks()
    }

    /// Says that a client stands for the whole queue.
    public func attachAll(_ client: ClientKey) async {
        self.attachments[client, default: Attachment()].all = true
        await self.schedule()
        await self.renewLinks()
    }

    /// Says that a client has gone; jobs that nobody else stands for stop and stay queued.
    public func detach(_ client: ClientKey) async {
        self.attachments[client] = nil
        if self.view == .wanted { self.view = .none }
        guard self.mode == .attached else { return }
        for (id, job) in self.running where !self.isWanted(id) { job.requestStop(.interrupted) }
        for (id, renewal) in self.renewals where !self.isWanted(id) { renewal.cancel() }
    }

    /// Whether anything runs the job, now or when its turn comes.
    public func isWanted(_ id: JobID) -> Bool {
        self.mode == .all || self.attachments.values.contains { $0.all || $0.jobs.contains(id) }
    }

    /// Whether the whole queue is run.
    public var runsAll: Bool { self.mode == .all || self.attachments.values.contains { $0.all } }
}
