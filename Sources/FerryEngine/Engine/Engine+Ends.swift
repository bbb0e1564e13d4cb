import FerryCore
import FerryHTTP
import FerryStore

/// How attempts are carried out, and what follows their ends.
extension Engine {
    /// Carries one attempt out, as the job's kind wants it.
    static func carryOut(
        _ job: JobRecord,
        _ request: JobRequest,
        _ running: RunningJob,
        _ services: TransferServices
    ) async -> AttemptEnd {
        switch job.kind {
        case .download:
            return await DownloadTransfer(services: services, running: running, job: job, request: request)
                .run()
        case .upload:
            guard let order = request.upload else {
                let error = FerryError(.database, "the job's upload is missing", exitStatus: .database)
                return .storeFailed(error)
            }
            return await UploadTransfer(
                services: services,
                running: running,
                job: job,
                request: request,
                order: order
            ).run()
        }
    }

    /// Commits how an attempt ended, tells observers, and gives the place to the next job.
    ///
    /// If the database refuses, the end is kept and committed when it works again: a finished file is not
    /// forgotten because the disk was full for a while.
    func finish(_ running: RunningJob, _ end: AttemptEnd) async {
        await self.followClock()
        let end = await MachineExamination(services: self.services).examine(end, of: running)
        let budget = self.judge(end, of: running)
        var changes: [JobChange]?
        while changes == nil {
            do {
                changes = try await AttemptLedger(services: self.services, budget: budget)
                    .commit(end, of: running)
            } catch {
                guard !self.isStopping else { break }
                try? await self.services.time.sleep(.seconds(1))  // only a cancelled task cuts it short
            }
        }
        self.services.crash.reach(.completed)
        if let changes {
            self.tell(changes)
            self.passOn(changes, of: running)
            self.noticeWaits(changes)
        }
        self.leave(running.id)
        if changes?.contains(where: { $0.job?.kind == .upload && $0.job?.state.isFinal == true }) == true {
            Task { await self.tidy() }
        }
        if changes?.contains(where: { $0.job?.waitReason == .auth }) == true { await self.renewLinks() }
        await self.schedule()
    }

    /// Gives a job's place back, and tells those who wait for its end.
    func leave(_ id: JobID) {
        if let job = self.running.removeValue(forKey: id) {
            self.queue.end(id, host: job.host, .nothing, at: self.services.time.now())
        }
        self.services.loop.limiter.set(nil, of: id)
        for waiter in self.endWaiters.removeValue(forKey: id) ?? [] { waiter.resume() }
        guard self.running.isEmpty else { return }
        for waiter in self.idleWaiters { waiter.resume() }
        self.idleWaiters.removeAll()
    }

    /// Stops the transfers of those jobs that run, and waits until their ends are committed.
    func stopTransfers(of ids: [JobID], for event: JobEvent) async {
        for id in ids {
            self.running[id]?.requestStop(event)
            self.renewals[id]?.cancel()
        }
        for id in ids where self.running[id] != nil {
            await withCheckedContinuation { self.endWaiters[id, default: []].append($0) }
        }
    }

    /// Keeps jobs from being claimed until ``release(_:)``, which has to follow.
    func hold(_ ids: [JobID]) {
        for id in ids { self.held[id, default: 0] += 1 }
    }

    /// Takes a ``hold(_:)`` back.
    func release(_ ids: [JobID]) {
        for id in ids { self.held[id] = self.held[id].flatMap { $0 > 1 ? $0 - 1 : nil } }
    }
}
