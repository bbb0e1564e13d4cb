import FerryCore
public import FerryFiles
public import FerryHTTP
public import FerryStore

/// The queue at work: accepts jobs, runs them, steers them, and tells what happens.
///
/// All state that matters is in the database; what the actor holds is only which transfers run in this
/// process and for whom. Every change of a job goes through ``JobLedger`` in one transaction, and observers
/// are told after its commit.
public actor Engine {
    /// Which jobs are run.
    public enum Mode: Sendable {
        /// All of them: a daemon.
        case all
        /// Those that an attached client stands for: a service on demand.
        case attached
    }

    /// A client that jobs are run for.
    public struct ClientKey: Hashable, Sendable {
        /// Any number that the caller gives to one client only.
        public let rawValue: UInt64

        /// Wraps a number.
        public init(rawValue: UInt64) {
            self.rawValue = rawValue
        }
    }

    /// What the queue's heads are.
    enum View {
        /// Out of date.
        case none
        /// The first jobs of every host.
        case all
        /// The jobs that attached clients stand for.
        case wanted
    }

    struct Attachment {
        var jobs: Set<JobID> = []
        var all = false
    }

    /// Called with committed changes, in their order.
    public typealias Observer = @Sendable ([JobChange]) -> Void

    private(set) var services: TransferServices
    let boardPath: String?
    let mode: Mode
    /// Takes note of committed changes, then tells whoever made the engine.
    let observer: Observer
    private let news: EngineNews
    /// What may run next, and the hosts' budgets.
    var queue: ClaimQueue
    var view = View.none
    var deadlines = Deadlines()
    /// Wall time less the time that nobody sets, as it was when stored times were last right.
    var clockOffset: Duration?
    var following: Task<Void, Never>?
    private var clockWatch: ClockWatch?
    let renewal: Renewal
    var running: [JobID: RunningJob] = [:]
    var attachments: [ClientKey: Attachment] = [:]
    /// Jobs that commands are steering right now, and how many of them; not to be claimed meanwhile.
    var held: [JobID: Int] = [:]
    var isStopping = false
    /// The wait for a clean-up that failed begins with twice this.
    static let firstTidyWait = Duration.seconds(15)
    /// What is left of uploads is being done, and has to be looked at again; see ``tidy()``.
    var isTidying = false
    var tidyAgain = false
    var tidyWait = Engine.firstTidyWait
    var tidier: Task<Void, Never>?
    /// Programs that are asked for new links; see ``renewLinks()``.
    var renewals: [JobID: Task<Void, Never>] = [:]
    /// See `Engine+Waits.swift`.
    var waits = Waits()
    /// See `Engine+Silence.swift`.
    var silence = Silence()
    private var isScheduling = false
    private var scheduleAgain = false
    /// Who waits for the ends of running jobs, and of all of them; see `Engine+Ends.swift`.
    var endWaiters: [JobID: [CheckedContinuation<Void, Never>]] = [:]
    var idleWaiters: [CheckedContinuation<Void, Never>] = []
    private var waker: Task<Void, Never>?
    /// Looks at the calendar of limits each minute, where there is one.
    var calendarTimer: Task<Void, Never>?
    private var wakeAt: Timestamp?
    /// No waiting job is due before; the timer has other reasons too, for which rows need not be looked at.
    var dueAt = Engine.unknownDue
    private static let unknownDue = Timestamp(milliseconds: .min)
    private static let noDue = Timestamp(milliseconds: .max)

    /// Makes an engine; ``start()`` begins the work.
    public init(
        store: JobStore,
        loop: NetworkLoop,
        configuration: EngineConfiguration,
        mode: Mode,
        time: EngineTime = .real,
        machine: Machine = .real,
        calls: FileCalls = .real,
        crashPoint: String? = nil,
        boardPath: String? = nil,
        spool: String? = nil,
        renewal: Renewal = Renewal(),
        observer: @escaping Observer
    ) {
        var calls = calls
        calls.allowedFolders = configuration.allowedFolders
        self.services = TransferServices(
            store: store,
            loop: loop,
            live: LiveConfiguration(configuration),
            time: time,
            calls: calls,
            disk: BlockingPool(label: "ferry.disk", width: 4),
            board: nil,
            crash: CrashPoints(crashPoint),
            spool: spool,
            machine: machine
        )
        let live = self.services.live
        self.queue = ClaimQueue(perHost: Self.perHost(live.value))
        self.mode = mode
        self.renewal = renewal
        self.boardPath = boardPath
        let news = EngineNews()
        self.news = news
        self.observer = { [pauses = self.services.pauses] changes in
            let all = changes.flatMap(\.all)
            news.note(all)
            observer(
                all.map { change in
                    guard let job = change.job, job.state == .queued else { return change }
                    var change = change
                    change.hostPause = pauses.pause(of: job.host, at: time.now())
                    return change
                }
            )
        }
    }

    static func perHost(_ configuration: EngineConfiguration) -> @Sendable (String) -> Int {
        { configuration.perHost(of: $0) }
    }

    /// Takes up what an earlier service left, then begins to run jobs.
    public func start() async throws {
        let claims = self.boardPath.map { ProgressBoard.claims(path: $0) } ?? [:]
        await self.followClock()
        let changes = try await Recovery(services: self.services, claims: claims).run()
        try await self.loadLimits()
        try await self.loadHosts()
        self.clockWatch = ClockWatch { [weak self] in
            Task { await self?.clockMayHaveBeenSet() }
        }
        self.services.loop.grow(to: Self.threads(for: self.services.configuration))
        // Only now, for it clears what an earlier process claimed. Without it a crash costs more, and no more.
        self.services.board = self.boardPath.flatMap { try? ProgressBoard(path: $0, slots: Self.slots) }
        self.tell(changes)
        await self.beginWaits()
        await self.wakeDueJobs()
        await self.schedule()
        await self.renewLinks()
        Task { await self.loadDeadlines() }
        Task { await self.tidy() }
    }

    /// Slots of the board: one for each job that may ever run at once, and a few to spare, since a body that has
    /// ended keeps its slot until the loop has let go of it.
    private static let slots = 1_000 + 16

    /// Stops all transfers; jobs that ran are queued, no attempt spent.
    ///
    /// What can be made durable within `limit` is. The rest is in the kernel's hands, the progress board keeps
    /// what is known of it, and the next start proves it; so nothing is lost if the process ends before this
    /// returns.
    public func stop(syncingFor limit: Duration = .seconds(60)) async {
        self.isStopping = true
        self.services.stopBudget.begin(until: self.services.time.monotonic() + limit)
        self.services.board?.freeze()
        self.waker?.cancel()
        self.tidier?.cancel()
        self.clockWatch = nil
        self.endWaits()
        self.silence.timer?.cancel()
        self.calendarTimer?.cancel()
        for job in self.running.values { job.requestStop(.interrupted) }
        await self.stopRenewals { _ in true }
        while !self.running.isEmpty {
            await withCheckedContinuation { self.idleWaiters.append($0) }
        }
    }

    // MARK: Settings

    /// Takes over a new configuration; limits set by ``change(_:)`` stay on top of it.
    ///
    /// Where more jobs run than the new limits allow, some make room as under ``change(_:)``. What running jobs ask
    /// for next, they ask for by the new settings.
    public func reconfigure(_ configuration: EngineConfiguration) async {
        self.services.live.set(configuration)
        do {
            try await self.demote()
        } catch {
            // The database refuses: they end in their own time, and the limits hold for what begins then.
        }
        await self.settingsChanged()
    }

    /// The settings that hold now, limits included.
    public var configuration: EngineConfiguration { self.services.configuration }

    func settingsChanged() async {
        self.applyRates()
        let configuration = self.services.configuration
        self.services.loop.grow(to: Self.threads(for: configuration))
        self.queue.set(perHost: Self.perHost(configuration), at: self.services.time.now())
        await self.schedule()
    }

    /// A network thread for 256 transfers (design page, *Network*).
    private static func threads(for configuration: EngineConfiguration) -> Int {
        (configuration.running + 255) / 256
    }

    /// Runs a closure on the actor; that it returns proves that the actor lives.
    public func ping(_ body: @Sendable () -> Void = {}) {
        body()
    }

    /// Forgets jobs that ended longer ago than `history.keep`; a few hundred a transaction, so that nobody waits.
    ///
    /// - Returns: How many were forgotten.
    public func trimHistory() async throws -> Int {
        var total = 0
        while !self.isStopping {
            let oldest = self.services.time.now() + (.zero - self.services.configuration.historyKeep)
            let count = try await self.services.store.write {
                try $0.trim(endedBefore: oldest, limit: Self.trimBatch)
            }
            total += count
            guard count == Self.trimBatch else { break }
        }
        return total
    }

    private static let trimBatch = 256

    // MARK: Running

    /// Starts queued jobs while there are places.
    ///
    /// Callers may overlap: one of them works, and looks again if others have called meanwhile.
    func schedule() async {
        guard !self.isStopping else { return }
        guard !self.isScheduling else {
            self.scheduleAgain = true
            return
        }
        self.isScheduling = true
        repeat {
            self.scheduleAgain = false
            do {
                let claimed = try await self.claim()
                if claimed > 0 { self.scheduleAgain = true } else { self.lookForSilence() }
            } catch {
                // The database refuses: nothing is lost, and the next change or timer tries again.
                self.wake(at: self.services.time.now() + .seconds(5))
            }
        } while self.scheduleAgain && !self.isStopping
        self.isScheduling = false
    }

    /// Claims as many jobs as there are places, in one transaction, and starts them.
    private func claim() async throws -> Int {
        await self.followClock()
        self.takeNews()
        let free = self.services.configuration.running - self.running.count
        guard free > 0 else {
            // Who waits has to be known, for there may be one that gives its place up.
            if self.isSilent { try await self.readHeads() }
            return 0
        }
        try await self.readHeads()
        let picks = self.queue.claim(free, at: self.services.time.now()) {
            self.running[$0] != nil || self.held[$0] != nil
        }
        if let next = self.queue.nextOpening { self.wake(at: next) }
        guard !picks.isEmpty else { return 0 }
        // Entered before the commit, so that whoever steers a job or stops the engine meanwhile finds it here.
        for pick in picks {
            self.running[pick.id] = RunningJob(id: pick.id, host: pick.host, attempt: 0)
        }
        let now = self.services.time.now()
        let changes: [JobChange]
        do {
            changes = try await self.services.store.write { transaction in
                try picks.compactMap { pick in
                    try JobSchedule.reconsider(pick.id, in: transaction, at: now)
                        ?? Self.claim(pick, in: transaction, at: now)
                }
            }
        } catch {
            for pick in picks { self.giveBack(pick) }
            throw error
        }
        self.services.crash.reach(.claimed)
        let claimed = changes.compactMap(\.job).filter { $0.state == .running }
        for job in claimed { self.launch(job) }
        let ids = Set(claimed.map(\.id))
        for pick in picks where !ids.contains(pick.id) { self.giveBack(pick) }
        self.tell(changes)
        return picks.count
    }

    /// Jobs of a host that are known in advance.
    private static let headCount = 16

    /// Brings the queue up to date: with the first jobs of each host, or with all that attached clients stand for.
    private func readHeads() async throws {
        guard self.runsAll else {
            guard self.view != .wanted else { return }
            self.view = .wanted  // what changes from here on is news
            let wanted = self.attachments.values.reduce(into: Set()) { $0.formUnion($1.jobs) }
            do {
                let heads =
                    wanted.isEmpty
                    ? [] : try await self.services.store.read { try $0.queuedHeads(of: wanted.sorted()) }
                self.queue.replace(heads, at: self.services.time.now())
            } catch {
                self.view = .none
                throw error
            }
            return
        }
        let hosts = self.queue.wanting
        let isAll = self.view != .all
        self.view = .all
        if isAll { self.queue.replace([], at: self.services.time.now()) }
        guard isAll || !hosts.isEmpty else { return }
        for host in hosts { self.queue.isRead(host) }
        let limit = Self.headCount + min(self.held.count, Self.headCount)
        do {
            let heads = try await self.services.store.read { reader in
                try (isAll ? reader.queuedHosts() : Array(hosts)).map {
                    ($0, try reader.queuedHeads(host: $0, limit: limit))
                }
            }
            let now = self.services.time.now()
            for (host, list) in heads { self.queue.refill(host, list, isCut: list.count == limit, at: now) }
        } catch {
            if isAll { self.view = .none }
            for host in hosts { self.queue.want(host) }
            throw error
        }
    }

    /// Takes up what committed changes say of the queue.
    private func takeNews() {
        let (heads, deadlines) = self.news.take()
        let now = self.services.time.now()
        for head in heads {
            switch self.view {
            case .all: self.queue.want(head.host)
            case .wanted: if self.isWanted(head.id) { self.queue.insert(head, at: now) }
            case .none: break
            }
        }
        for (id, time) in deadlines {
            self.deadlines.set(id, time)
            self.wake(at: time)
        }
    }

    /// Gives the place of a job back that could not be claimed; what is known of its host's queue is wrong.
    private func giveBack(_ pick: ClaimQueue.Claim) {
        self.leave(pick.id)
        if self.view == .all { self.queue.want(pick.host) } else { self.view = .none }
    }

    private static func claim(_ pick: ClaimQueue.Claim, in transaction: Transaction, at now: Timestamp) throws
        -> JobChange?
    {
        // A new URL may have brought it to another host since.
        guard try transaction.job(pick.id)?.host == pick.host else { return nil }
        let result = try JobLedger.apply(.claimed, to: pick.id, in: transaction, at: now) { $0.attempts += 1 }
        guard case .moved(let change) = result, let job = change.job else { return nil }
        try transaction.save(
            AttemptRecord(
                job: job.id,
                number: job.attempts,
                beganAt: now,
                endedAt: nil,
                outcome: nil,
                message: nil,
                offset: job.bytesDurable,
                received: 0
            )
        )
        return change
    }

    private func launch(_ job: JobRecord) {
        guard let running = self.running[job.id] else { return }  // `claim` has entered it
        running.attempt = job.attempts
        running.priority = job.priority
        running.onAnswer { [weak self] in
            Task { await self?.hostAnswered(running) }
        }
        running.done = job.bytesDurable
        running.durable = job.bytesDurable
        running.total = job.bytesTotal
        running.path = job.path
        let services = self.services
        Task {
            let end: AttemptEnd
            do {
                guard let request = try await services.store.read({ try $0.request(job.id) }) else {
                    throw FerryError(.database, "the job's request is missing", exitStatus: .database)
                }
                self.begin(running, limitRate: request.limitRateBytes)
                end = await Self.carryOut(job, request, running, services)
            } catch {
                end = .storeFailed(error.asFerryError)
            }
            await self.finish(running, end)
        }
    }

    // MARK: Waking

    /// Queues the jobs whose waiting time is over, and sets the timer for the next one.
    func wakeDueJobs() async {
        self.wakeAt = nil
        await self.followClock()
        let looks = self.networkLooks()
        let now = self.services.time.now()
        do {
            try await self.passDeadlines(at: now)
            if self.dueAt <= now { try await self.queueDueJobs(looks, at: now) }
            for time in [self.dueAt, self.deadlines.next].compactMap(\.self) where time < Self.noDue {
                self.wake(at: time)
            }
        } catch {
            self.wake(at: now + .seconds(5))  // the database refuses; the rows are still there
        }
        await self.closeWindows()
        await self.schedule()
    }

    private func queueDueJobs(_ looks: NetworkLooks, at now: Timestamp) async throws {
        self.dueAt = Self.noDue  // who begins to wait meanwhile is told of
        do {
            let (changes, next) = try await self.services.store.write { transaction in
                var changes: [JobChange] = []
                for job in try transaction.dueJobs(before: now, limit: 1_000) {
                    if let wait = looks.wait(of: job) {
                        changes.append(try NetworkLooks.postpone(job, by: wait, in: transaction, at: now))
                        continue
                    }
                    let result = try JobLedger.apply(.due, to: job.id, in: transaction, at: now) { row in
                        // The time that it was not to run counts for nothing.
                        if [.schedule, .network, .disk].contains(job.waitReason) { row.progressAt = now }
                        // Its time has come once, whatever the clock says later.
                        if job.waitReason == .schedule, row.notBefore == job.nextTry { row.notBefore = nil }
                    }
                    if case .moved(let change) = result { changes.append(change) }
                }
                return (changes, try transaction.nextDue())
            }
            if let next { self.dueAt = min(self.dueAt, next) }
            self.tell(changes)
        } catch {
            self.dueAt = Self.unknownDue
            throw error
        }
    }

    /// Stops the timer, whose time means something else now.
    ///
    /// ``wakeDueJobs()`` has to follow.
    func forgetTimer() {
        self.waker?.cancel()
        self.wakeAt = nil
        self.dueAt = Self.unknownDue
    }

    /// Makes sure that waiting jobs are looked at then, or earlier.
    func wake(at time: Timestamp) {
        guard !self.isStopping, self.wakeAt.map({ time < $0 }) ?? true else { return }
        self.wakeAt = time
        self.waker?.cancel()
        let clock = self.services.time
        self.waker = Task {
            do {
                try await clock.sleep(max(.milliseconds(1), time - clock.now()))
            } catch {
                return  // another timer took its place
            }
            await self.wakeDueJobs()
        }
    }
}
