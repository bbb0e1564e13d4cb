import Dispatch
import FerryControl
import FerryCore
import FerryEngine
import FerryStore

/// Answers the requests of clients by asking the engine.
struct ServiceHandler: ControlHandler {
    let engine: Engine
    let subscriptions: Subscriptions
    let onDemand: Bool
    /// The queue that is served.
    let location: QueueLocation
    /// The configuration as it was read last.
    let configuration: @Sendable () -> Configuration
    /// Called when the number of clients changes, or the service is asked to end (`true`).
    let clientsChanged: @Sendable (_ endNow: Bool) -> Void

    /// How long ended jobs are listed without `--all`.
    static let recent = Duration.seconds(86_400)

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
        case .set(let selector, let changes):
            let selection = try await self.selected(selector, for: nil)
            return await self.answer(try await self.engine.set(changes, selection.jobs), selection)
        case .limits(let changes):
            return .limits(try await self.limits(changes))
        case .attach(let jobs):
            try Self.check(
                jobs,
                found: jobs.isEmpty ? [] : try await self.engine.select(JobFilter(jobs: jobs))
            )
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
        case .watch(let query):
            return .watched(try await self.watch(query, client))
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
        case .check:
            return await self.check()
        case .exportResumeData(let id):
            return .resumeData(try await self.engine.resumeDocument(of: id))
        case .importResumeData(let document, let request, let beside):
            let added = try await self.engine.importResumeData(document, request, beside: beside)
            await self.engine.runAdded()
            return .added([AddedJob(added)], running: await self.engine.runsAll)
        }
    }

    /// Looks at what the service keeps on disk, on a thread of its own.
    private func check() async -> ControlResponse {
        let running = Set(await self.engine.progress().map(\.id))
        let location = self.location
        return await withCheckedContinuation { continuation in
            DispatchQueue(label: "ferry.check").async {
                var check = StateCheck(location, running: running, now: EngineTime.real.now())
                check.run()
                continuation.resume(returning: .checked(check.findings, damaged: check.isDamaged))
            }
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
        return .added(added.map { AddedJob($0) }, running: await self.engine.runsAll)
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
        let selection = try await self.selected(selector, for: action)
        return await self.answer(try await self.engine.steer(steering, selection.jobs), selection)
    }

    private func answer(_ steered: [Engine.Steered], _ selection: Selection) async -> ControlResponse {
        await self.engine.runSteered()
        return .steered(
            selection.answers(to: steered).map { SteeredJob(id: $0.id, state: $0.state, error: $0.error) },
            running: await self.engine.runsAll
        )
    }

    /// The jobs that are meant: those named, and for `--state`, `--group`, `--all` those that the action fits;
    /// nil is `set`.
    private func selected(_ selector: Selector, for action: SteerAction?) async throws -> Selection {
        let named = Set(selector.jobs)
        guard selector.all || !selector.states.isEmpty || !selector.groups.isEmpty else {
            return Selection(jobs: selector.jobs, named: named, states: [])
        }
        let fitting: [JobState] =
            switch action {
            case nil: [.queued, .running, .waiting, .paused]
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
        let others = try await self.engine.select(filter).filter { !named.contains($0) }
        return Selection(jobs: selector.jobs + others, named: named, states: Set(filter.states))
    }

    private func limits(_ changes: [LimitChange]) async throws -> LimitsDocument {
        var rates: [Engine.RateChange] = []
        let wanted = try changes.compactMap { change -> Engine.LimitChange? in
            let host = try change.host.map { text -> HostPattern in
                guard let host = HostPattern(text) else { throw FerryError.usage("'\(text)' is no host") }
                return host
            }
            rates += change.rates(of: host)
            guard let running = change.running else { return nil }
            switch running {
            case .set(let number): return Engine.LimitChange(host: host, running: number)
            case .configured: return Engine.LimitChange(host: host, running: nil)
            }
        }
        if !wanted.isEmpty || !rates.isEmpty { try await self.engine.change(wanted, rates: rates) }
        let live = await self.engine.limits
        let configuration = await self.engine.configuration
        return LimitsDocument(
            running: configuration.running,
            runningIsLive: live.running != nil,
            perHost: configuration.perHost,
            hosts: configuration.hosts.keys.sorted().compactMap { host in
                configuration.hosts[host]?.perHost.map {
                    HostLimitDocument(host: host, running: $0, runningIsLive: live.hosts[host] != nil)
                }
            },
            rates: await self.engine.rates.map { RateLimitDocument($0) }
        )
    }

    /// Jobs by number; all of them must exist.
    private func jobs(_ ids: [JobID]) async throws -> [Engine.Snapshot] {
        let found = ids.isEmpty ? [] : try await self.engine.jobs(JobFilter(jobs: ids))
        try Self.check(ids, found: found.map(\.job.id))
        return found
    }

    private static func check(_ ids: [JobID], found: [JobID]) throws {
        let known = Set(found)
        if let missing = ids.first(where: { !known.contains($0) }) {
            throw FerryError(.unknownJob, "there is no job \(missing)", exitStatus: .failed)
        }
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
