import FerryCore
import FerryHTTP
import FerryStore

/// What the engine keeps of those who wait for the machine.
struct Waits {
    /// Listens to the machine.
    var listener: Task<Void, Never>?
    /// Looks at the room on full disks while somebody waits for it.
    var diskWatch: Task<Void, Never>?
    /// Notices sleep.
    var sleep = SleepWatch(slept: .zero)
}

extension Engine {
    /// Begins to listen to the machine, and takes up the waits that an earlier service has left.
    func beginWaits() async {
        let services = self.services
        self.waits.sleep = SleepWatch(slept: services.time.slept)
        services.waits.onAnswer { [weak self] host in
            Task { await self?.endOutage(of: host) }
        }
        self.waits.listener = Task { [weak self] in
            for await _ in services.machine.networkChanges() {
                guard let self else { return }
                await self.networkChanged()
            }
        }
        await self.lookAtDisks()
    }

    /// Ends what ``beginWaits()`` began.
    func endWaits() {
        self.waits.listener?.cancel()
        self.waits.diskWatch?.cancel()
    }

    // MARK: Sleep

    /// Drops old connections if the machine has slept since the last look.
    ///
    /// Those who wait for the network look at once, for it is often another one. Timers may have slept as well, so
    /// that more is due.
    func noticeSleep() {
        guard self.waits.sleep.look(slept: self.services.time.slept) != nil else { return }
        self.services.loop.wokeUp()
        Task {
            await self.networkChanged()
            await self.wakeDueJobs()
        }
    }

    // MARK: Network

    /// Lets one job of each host that waits for the network look now.
    ///
    /// That a host did not answer is forgotten, for it may have been the network.
    func networkChanged() async {
        self.services.waits.networkChanged()
        let now = self.services.time.now()
        for host in self.services.pauses.hosts where self.queue.budget(of: host).trouble == .unreachable {
            self.queue.hurry(host, at: now)
            self.publishPauses(of: [host])
        }
        await self.endWaits { _ in false }
        await self.schedule()
    }

    /// Lets all jobs that wait for the network at a host go on, for it has answered, and one of each other.
    private func endOutage(of host: String) async {
        await self.endWaits { $0.host == host }
    }

    /// Makes those due that may look now.
    private func endWaits(alsoThose isReached: @Sendable (JobRecord) -> Bool) async {
        guard let rows = try? await self.services.store.read({ try $0.waitingJobs(for: .network) }) else {
            return  // the timers of those who wait are left
        }
        let waiting = rows.filter { self.isWanted($0.id) }
        let now = self.services.time.monotonic()
        let chosen = waiting.filter { isReached($0) || self.services.waits.look(at: $0.host, now) == nil }
        _ = await self.endWait(of: chosen.map(\.id))  // else the timers of those who wait are left
    }

    /// Which of the jobs whose time has come need not look at the network, since another one of their host does.
    func networkLooks() -> NetworkLooks {
        self.noticeSleep()
        return NetworkLooks(
            waits: self.services.waits,
            now: self.services.time.monotonic(),
            wanted: self.runsAll
                ? nil : self.attachments.values.reduce(into: Set()) { $0.formUnion($1.jobs) }
        )
    }

    // MARK: Disk

    /// Lets the jobs go on for which there is room now, and looks again after a while as long as others wait.
    func lookAtDisks() async {
        self.waits.diskWatch?.cancel()
        self.waits.diskWatch = nil
        let rows = try? await self.services.store.read { try $0.waitingJobs(for: .disk) }
        // One with a time of its own is woken by that.
        let waiting = (rows ?? []).filter { $0.nextTry == nil }
        var waiters: [DiskPlan.Waiter] = []
        for job in waiting {
            guard let room = try? await DiskRoom.of(job.id, self.services) else { continue }
            waiters.append(DiskPlan.Waiter(id: job.id, need: room.need, space: room.space))
        }
        let ready = Set(DiskPlan.ready(waiters))
        let isCommitted = await self.endWait(of: waiting.map(\.id).filter(ready.contains))
        await self.renewMessages(of: waiters.filter { !ready.contains($0.id) }, rows: waiting)
        // One that could not be read, and a database that refuses, are looked at again too.
        if rows == nil || !isCommitted || waiting.contains(where: { !ready.contains($0.id) }) {
            self.watchDisks()
        }
    }

    /// Sees to it that full disks are looked at again.
    func watchDisks() {
        guard self.waits.diskWatch == nil, !self.isStopping else { return }
        let time = self.services.time
        self.waits.diskWatch = Task { [weak self] in
            do {
                try await time.sleep(DiskPlan.interval)
            } catch {
                return  // the engine stops, or has looked already
            }
            await self?.lookAtDisks()
        }
    }

    /// Lets the sentences of those who wait tell what is free now.
    private func renewMessages(of waiters: [DiskPlan.Waiter], rows: [JobRecord]) async {
        let old = Dictionary(uniqueKeysWithValues: rows.map { ($0.id, $0.message) })
        let news = waiters.compactMap { waiter -> (JobID, String)? in
            guard let message = waiter.need.message(waiter.space), message != old[waiter.id] else {
                return nil
            }
            return (waiter.id, message)
        }
        guard !news.isEmpty else { return }
        // A sentence that is not stored is stored with the next look.
        try? await self.services.store.write { transaction in
            for (id, message) in news {
                guard var job = try transaction.job(id), job.waitReason == .disk else { continue }
                job.message = message
                try transaction.save(job)
            }
        }
    }

    // MARK: Both

    /// Queues jobs whose wait is over; the time that they have waited counts for nothing.
    ///
    /// - Returns: False if the database refuses, and they wait on.
    private func endWait(of ids: [JobID]) async -> Bool {
        guard !ids.isEmpty, !self.isStopping else { return true }
        let now = self.services.time.now()
        let changes = try? await self.services.store.write { transaction in
            try ids.compactMap { id -> JobChange? in
                guard let job = try transaction.job(id), job.waitReason == .disk || job.waitReason == .network
                else { return nil }
                let result = try JobLedger.apply(.due, to: id, in: transaction, at: now) {
                    $0.progressAt = now
                }
                guard case .moved(let change) = result else { return nil }
                return change
            }
        }
        guard let changes else { return false }
        self.tell(changes)
        await self.schedule()
        return true
    }

    /// Takes up the waits that committed changes begin.
    func noticeWaits(_ changes: [JobChange]) {
        for change in changes {
            guard let job = change.job else { continue }
            if job.state == .waiting, job.waitReason == .disk, job.nextTry == nil { self.watchDisks() }
            if job.state.isEnded { self.services.waits.forget(job.id) }
        }
    }
}

/// Decides which of the jobs that wait for the network look at it when their time has come.
struct NetworkLooks: Sendable {
    let waits: WaitBook
    let now: Duration
    /// The jobs that are run, nil for all: others look at nothing, so nobody waits for their look.
    let wanted: Set<JobID>?

    /// How much longer a job waits; nil if its wait is over.
    func wait(of job: JobRecord) -> Duration? {
        guard job.waitReason == .network, self.wanted?.contains(job.id) ?? true else { return nil }
        return self.waits.look(at: job.host, self.now)
    }

    /// Lets a job wait for so much longer.
    static func postpone(
        _ job: JobRecord,
        by wait: Duration,
        in transaction: Transaction,
        at now: Timestamp
    ) throws -> JobChange {
        var job = job
        job.nextTry = now + wait
        try transaction.save(job)
        let event = try transaction.append(
            event: JobState.waiting.rawValue,
            job: job.id,
            state: .waiting,
            reason: WaitReason.network.rawValue,
            message: job.message,
            at: now
        )
        return JobChange(event: event, job: job, remote: nil)
    }
}
