public import FerryCore
import FerryHTTP
import FerryStore

extension Engine {
    /// Why the queued jobs of a host wait.
    public struct HostPause: Sendable, Equatable {
        /// When the next request goes there; nil once one job is on its way to see.
        public let until: Timestamp?
        /// A sentence.
        public let message: String
        /// Whether it has asked for that, rather than failed.
        public var isAsked = false
    }

    /// Takes up the pauses of hosts that the database holds.
    func loadHosts() async throws {
        let policy = self.services.configuration.retry
        let longest = max(policy.retryAfterCap, policy.cap)
        let latest = self.services.time.now() + longest
        let paused = try await self.services.store.write { transaction in
            try transaction.capWaits(at: latest)
            return try transaction.pausedHosts()
        }
        let now = self.services.time.now()
        for host in paused { self.queue.restore(host.host, HostBudget(host), at: now) }
        self.publishPauses(of: paused.map(\.host))
    }

    /// Takes up how an attempt ended, for its host's budget; the change has to be committed with the end.
    func judge(_ end: AttemptEnd, of running: RunningJob) -> BudgetChange {
        let now = self.services.time.now()
        let policy = self.services.configuration.retry
        let hops = running.hops
        var changed: Set<String> = []
        if hops.contains(where: { $0.status.map(HostSign.isGood) ?? false }),
            self.queue.answered(running.id, host: running.host, at: now)
        {
            changed.insert(running.host)
        }
        var sign = HostSign.nothing
        var teller = running.host
        if case .failed(let failure) = end {
            sign = HostSign(
                failure.cause,
                hasAnswered: hops.contains { $0.status != nil },
                policy: policy
            )
            // After a redirect it is another host that has spoken.
            if let last = hops.last, last.status != nil, let parsed = try? URLParser.parse(last.url) {
                teller = parsed.address.origin.hostAndPort
            }
        }
        let backOff = { RetryPlan.backOff(try: $0, policy: policy, random: Double.random(in: 0..<1)) }
        if case .stopped = end, running.hasYielded { sign = .silent }
        if teller != running.host {
            self.queue.begin(running.id, host: teller, at: now)
            if self.queue.end(running.id, host: teller, sign, at: now, backOff: backOff) {
                changed.insert(teller)
            }
            sign = .answered
        }
        if self.queue.end(running.id, host: running.host, sign, at: now, backOff: backOff) {
            changed.insert(running.host)
        }
        self.publishPauses(of: changed)
        var change = BudgetChange()
        change.opensAt = [running.host, teller].compactMap { self.opensAgain($0) }.max()
        for host in changed { change.changed[host] = self.queue.budget(of: host) }
        return change
    }

    /// A job that has failed lets the others of its host go first when the host's pause is over: it may be the only
    /// one that the host does not like.
    private static let deference = Duration.milliseconds(250)

    /// When a job that has failed may go to a host again; nil if there is no pause.
    private func opensAgain(_ host: String) -> Timestamp? {
        let budget = self.queue.budget(of: host)
        return budget.opensAt.map { budget.trouble == .asked ? $0 : $0 + Self.deference }
    }

    /// Takes up that a running job's host has answered: whoever waits for that may follow.
    func hostAnswered(_ running: RunningJob) async {
        let host = running.host
        if case .made(let time?) = running.contact { self.connectionTook(time) }
        let before = self.queue.budget(of: host)
        if self.queue.answered(running.id, host: host, at: self.services.time.now()) {
            self.publishPauses(of: [host])
            let budget = self.queue.budget(of: host)
            // If the database refuses, the next service sends one job first where it need not.
            try? await self.services.store.write { try budget.save(as: host, in: $0) }
        }
        if before.window != nil || before.isSuspect || before.trouble != nil { await self.schedule() }
    }

    /// Tells transfers which hosts are left alone.
    func publishPauses(of hosts: some Sequence<String>) {
        for host in hosts {
            let budget = self.queue.budget(of: host)
            self.services.pauses.set(host, budget.pausedUntil.flatMap { Self.pause(host, budget, until: $0) })
        }
    }

    /// The same for all that transfers know of.
    func publishPauses() {
        self.publishPauses(of: self.services.pauses.hosts)
    }

    /// A number that is another one when the pause of any host has changed, of which no event tells.
    public var pausesVersion: UInt64 { self.services.pauses.version }

    /// Why a queued job waits, if it is for its host.
    func hostPause(of job: JobRecord, at now: Timestamp) -> HostPause? {
        guard job.state == .queued else { return nil }
        let budget = self.queue.budget(of: job.host)
        if let until = budget.pausedUntil, until > now { return Self.pause(job.host, budget, until: until) }
        if budget.silences > 0 {
            let text = "\(job.host) has not answered at once; jobs of other hosts go first"
            return HostPause(until: nil, message: FileName.display(text))
        }
        guard budget.isProbed else { return nil }
        return Self.pause(job.host, budget, until: nil)
    }

    /// Tells in words why a host is left alone, or that one job is on its way there first.
    private static func pause(_ host: String, _ budget: HostBudget, until: Timestamp?) -> HostPause? {
        let why: String
        switch budget.trouble {
        case nil: return nil
        case .asked: why = "\(host) asked for a pause"
        case .overloaded: why = "\(host) has too much to do"
        case .unreachable: why = "\(host) does not answer"
        }
        let text = until == nil ? "\(why); another job tries first" : why
        return HostPause(until: until, message: FileName.display(text), isAsked: budget.trouble == .asked)
    }

    /// Lets the next job of a host go at once if this one gave up for good: where many have waited for a host in
    /// vain, they are not to wait for each other's end as well.
    func passOn(_ changes: [JobChange], of running: RunningJob) {
        guard changes.contains(where: { $0.job?.state == .failed }) else { return }
        switch self.queue.budget(of: running.host).trouble {
        case nil, .asked: return
        case .overloaded, .unreachable: break
        }
        self.queue.hurry(running.host, at: self.services.time.now())
        self.publishPauses(of: [running.host])
    }
}

/// What an attempt has changed about the budgets of hosts.
struct BudgetChange: Sendable {
    /// No request goes to the hosts of the attempt before.
    var opensAt: Timestamp?
    /// What is to be stored.
    var changed: [String: HostBudget] = [:]

    /// The time at which the job is tried again that would be at `time` if its hosts did not mind.
    func earliest(_ time: Timestamp) -> Timestamp { max(time, self.opensAt ?? time) }
}

extension HostBudget {
    /// The budget that is stored of a host.
    init(_ record: HostRecord) {
        self.init(
            pausedUntil: record.pausedUntil,
            level: record.backoffLevel,
            trouble: HostKnowledge(json: record.learned).trouble
        )
    }

    /// Stores what has to survive the service.
    func save(as host: String, in transaction: Transaction) throws {
        var record = try transaction.host(host) ?? HostRecord(host: host)
        var knowledge = HostKnowledge(json: record.learned)
        knowledge.trouble = self.trouble
        record.learned = knowledge.json
        record.pausedUntil = self.pausedUntil
        record.backoffLevel = self.level
        try transaction.save(record)
    }
}
