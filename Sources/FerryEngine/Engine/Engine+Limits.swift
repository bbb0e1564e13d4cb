public import FerryCore
import FerryStore

extension Engine {
    /// A change of a live limit.
    public struct LimitChange: Sendable {
        /// The host; nil means all jobs together.
        public let host: HostPattern?
        /// How many may run at once; nil is what the configuration says.
        public let running: Int?

        /// Makes a change.
        public init(host: HostPattern?, running: Int?) {
            self.host = host
            self.running = running
        }
    }

    /// How many may run at once, of all jobs or to one host.
    public static let runningRange = 1...1_000

    /// The limits that were set while running; the rest is ``configuration``'s.
    public var limits: LiveLimits { self.services.live.limits }

    /// Changes live limits, all of them or none; they hold until they are taken back, restarts included.
    ///
    /// With a lower limit too many jobs may run. The newest of the lowest priority then go back to the queue, no
    /// attempt spent, as long as they can go on later where they stopped; the others end in their own time.
    ///
    /// - Throws: ``FerryError`` `.usage` for a number outside of ``runningRange``, and for a rate below 1.
    public func change(_ changes: [LimitChange], rates: [RateChange] = []) async throws {
        for case let number? in changes.map(\.running) where !Self.runningRange.contains(number) {
            throw FerryError.usage("a limit must be a number from 1 to \(Self.runningRange.upperBound)")
        }
        try Self.check(rates)
        let configuration = self.services.live.configured
        try await self.services.store.write { transaction in
            for change in changes {
                let scope: LimitRecord.Scope = change.host == nil ? .all : .host
                let name = change.host?.description ?? ""
                if let running = change.running {
                    try transaction.save(
                        LimitRecord(scope: scope, name: name, key: LiveLimits.running, value: Int64(running))
                    )
                } else {
                    try transaction.removeLimit(scope: scope, name: name, key: LiveLimits.running)
                }
            }
            for change in rates { try change.save(in: transaction, over: configuration) }
        }
        try await self.loadLimits()
        if !changes.isEmpty { try await self.demote() }
        await self.settingsChanged()
    }

    /// Takes up the limits that the database holds.
    func loadLimits() async throws {
        let records = try await self.services.store.read { try $0.limits() }
        self.services.live.set(LiveLimits(records))
        self.queue.set(perHost: Self.perHost(self.services.configuration), at: self.services.time.now())
        self.applyRates()
    }

    /// Puts running jobs back into the queue where there are more than the limits allow.
    func demote() async throws {
        let ids = Array(self.running.keys)
        let jobs = try await self.services.store.read { reader in
            try reader.jobs(JobFilter(jobs: ids, states: [.running])).map { job in
                (job, try reader.file(job.id).map { RemoteObject(json: $0.remote) })
            }
        }
        let candidates = jobs.compactMap { job, remote -> Scheduler.Demotable? in
            guard let running = self.running[job.id] else { return nil }
            return Scheduler.Demotable(
                job: job,
                mayStop: running.phase == .connecting
                    || (running.phase == .transferring && remote?.isResumable == true)
            )
        }
        let configuration = self.services.configuration
        let excess = Scheduler.demote(
            candidates,
            limit: configuration.running,
            perHost: configuration.perHost(of:)
        )
        for id in excess { self.running[id]?.requestStop(.interrupted) }
    }
}

extension LiveLimits {
    /// The key under which numbers of running jobs are stored.
    static let running = "running"

    /// The limits that are stored; kinds that this version does not know are left alone.
    init(_ records: [LimitRecord]) {
        self.init()
        self.rates = LiveRates(records)
        for record in records where record.key == Self.running {
            guard let value = record.value.flatMap({ Int(exactly: $0) }),
                Engine.runningRange.contains(value)
            else { continue }
            switch record.scope {
            case .all: self.running = value
            case .host: self.hosts[record.name] = value
            case .group, .job: break
            }
        }
    }
}
