import FerryControl
import FerryCore
import FerryEngine
import FerryStore

/// Answers the requests of clients by asking the engine.
struct ServiceHandler: ControlHandler {
    let engine: Engine
    let subscriptions: Subscriptions
    let onDemand: Bool
    /// The configuration as it was read last.
    let configuration: @Sendable () -> Configuration
    /// Called when the number of clients changes, or the service is asked to end (`true`).
    let clientsChanged: @Sendable (_ endNow: Bool) -> Void

    /// How long ended jobs are listed without `--all`.
    private static let recent = Duration.seconds(86_400)

    func clientJoined(_ client: ClientID) async {
        self.clientsChanged(false)
    }

    func clientLeft(_ client: ClientID) async {
        self.subscriptions.remove(client)
        await self.engine.detach(Engine.ClientKey(rawValue: client.rawValue))
        self.clientsChanged(false)
    }

    func handle(_ request: ControlRequest, from client: ClientID) async throws(FerryError) -> ControlResponse
    {
        do {
            return try await self.answer(request, Engine.ClientKey(rawValue: client.rawValue), client)
        } catch {
            throw error.asFerryError
        }
    }

    private func answer(
        _ request: ControlRequest,
        _ key: Engine.ClientKey,
        _ client: ClientID
    ) async throws -> ControlResponse {
        switch request {
        case .add(let requests, let attach):
            return try await self.add(requests, attach: attach, key)
        case .list(let selector, let host, let limit, let includeOld):
            return try await self.list(selector, host: host, limit: limit, includeOld: includeOld)
        case .show(let id):
            return .job(JobDocument(try await self.job(id), segments: true))
        case .log(let id):
            let job = JobDocument(try await self.job(id))
            let history = try await self.engine.history(id)
            return .log(
                job: job,
                attempts: AttemptDocument.list(history),
                events: history.events.map { EventDocument($0) }
            )
        case .steer(let action, let selector, let keepPartial):
            return try await self.steer(action, selector, keepPartial: keepPartial)
        case .attach(let jobs):
            _ = try await self.jobs(jobs)
            await self.engine.attach(key, jobs: jobs)
            return .done
        case .attachAll:
            await self.engine.attachAll(key)
            return .done
        case .subscribe(let jobs, let progress):
            // First the subscription, then the look: what happens in between is told twice rather than never.
            self.subscriptions.add(client, jobs: jobs, progress: progress, engine: self.engine)
            let snapshots =
                if let jobs {
                    try await self.jobs(jobs)
                } else {
                    try await self.engine.jobs(JobFilter(states: JobState.allCases.filter { !$0.isEnded }))
                }
            return .subscribed(snapshots.map { JobDocument($0) })
        case .counts:
            return .counts(try await self.counts())
        case .configuration:
            return .configuration(
                self.configuration().documents(effective: await self.engine.configuration)
            )
        case .handOver:
            guard self.onDemand else {
                throw FerryError(.busy, "a daemon serves this queue already", exitStatus: .noService)
            }
            self.clientsChanged(true)
            return .done
        }
    }

    private func add(
        _ requests: [JobRequest],
        attach: Bool,
        _ key: Engine.ClientKey
    ) async throws -> ControlResponse {
        let added = try await self.engine.add(requests, goOn: attach)
        if attach {
            await self.engine.attach(
                key,
                jobs: added.compactMap { $0.job?.state.isFinal == false ? $0.job?.id : nil }
            )
        } else {
            await self.engine.runAdded()
        }
        let answers = added.map { item in
            let outcome: AddedJob.Outcome =
                switch item.outcome {
                case .new: .new
                case .same: .same
                case .resumed: .resumed
                case .alreadyComplete: .alreadyComplete
                case .skipped: .skipped
                }
            return AddedJob(outcome: outcome, job: item.job.map { JobDocument($0) }, note: item.note)
        }
        return .added(answers, running: await self.engine.runsAll)
    }

    private func list(_ selector: Selector, host: String?, limit: Int?, includeOld: Bool) async throws
        -> ControlResponse
    {
        let now = EngineTime.real.now()
        let oldest = includeOld || !selector.jobs.isEmpty ? nil : now + (.zero - Self.recent)
        let filter = JobFilter(
            jobs: selector.jobs,
            states: selector.states,
            groups: selector.groups,
            host: host,
            endedAfter: oldest,
            limit: limit
        )
        let jobs = try await self.engine.jobs(filter).map { JobDocument($0) }
        return .jobs(jobs, counts: try await self.counts())
    }

    private func steer(_ action: SteerAction, _ selector: Selector, keepPartial: Bool) async throws
        -> ControlResponse
    {
        let steering: Engine.Steering =
            switch action {
            case .pause: .pause
            case .resume: .resume
            case .cancel: .cancel(keepPartial: keepPartial)
            case .retry: .retry
            case .remove: .remove
            }
        var steered: [SteeredJob] = []
        for id in try await self.selected(selector, for: action) {
            let result = try await self.engine.steer(steering, id)
            steered.append(SteeredJob(id: result.id, state: result.state, error: result.error))
        }
        await self.engine.runSteered()
        return .steered(steered, running: await self.engine.runsAll)
    }

    /// The jobs that are meant: those named, and for `--state`, `--group`, `--all` those that the action fits.
    private func selected(_ selector: Selector, for action: SteerAction) async throws -> [JobID] {
        var ids = selector.jobs
        guard selector.all || !selector.states.isEmpty || !selector.groups.isEmpty else { return ids }
        let fitting: [JobState] =
            switch action {
            case .pause: [.queued, .running, .waiting]
            case .resume: [.paused]
            case .cancel: [.queued, .running, .waiting, .paused, .failed]
            case .retry: [.failed]
            case .remove: [.completed, .failed, .cancelled]
            }
        let filter = JobFilter(
            states: selector.states.isEmpty ? fitting : selector.states,
            groups: selector.groups
        )
        for snapshot in try await self.engine.jobs(filter) where !ids.contains(snapshot.job.id) {
            ids.append(snapshot.job.id)
        }
        return ids
    }

    /// Jobs by number; all of them must exist.
    private func jobs(_ ids: [JobID]) async throws -> [Engine.Snapshot] {
        let found = ids.isEmpty ? [] : try await self.engine.jobs(JobFilter(jobs: ids))
        let known = Set(found.map(\.job.id))
        if let missing = ids.first(where: { !known.contains($0) }) {
            throw FerryError(.unknownJob, "there is no job \(missing)", exitStatus: .failed)
        }
        return found
    }

    private func job(_ id: JobID) async throws -> Engine.Snapshot {
        guard let snapshot = try await self.engine.job(id) else {
            throw FerryError(.unknownJob, "there is no job \(id)", exitStatus: .failed)
        }
        return snapshot
    }

    private func counts() async throws -> CountsDocument {
        let counts = try await self.engine.counts()
        return CountsDocument(
            states: Dictionary(uniqueKeysWithValues: JobState.allCases.map { ($0.rawValue, counts[$0] ?? 0) })
        )
    }
}
