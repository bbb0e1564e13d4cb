public import FerryCore
import FerryHTTP
import FerryStore
import Synchronization

/// A rate that can be limited, of all transfers together or of a host's.
public enum RateKind: String, Sendable, CaseIterable {
    /// What comes and what goes, together.
    case both = "rate"
    /// What comes.
    case down
    /// What goes.
    case up
}

/// A limit on bytes a second that holds.
public struct RateLimit: Sendable, Equatable {
    /// Where a limit comes from.
    public enum Source: String, Sendable {
        /// `ferry limit`.
        case live = "ferry limit"
        /// `limits.calendar`.
        case calendar
        /// `limits` or `hosts` of the configuration.
        case configuration
    }

    /// The host, `name` or `name:port`; nil is all together.
    public let host: String?
    /// What is limited.
    public let kind: RateKind
    /// Bytes a second; nil is expressly no limit.
    public let bytes: Int64?
    /// Where it comes from.
    public let source: Source
}

/// Limits on bytes a second that a command has set; what is not there is as the configuration says.
public struct LiveRates: Sendable, Equatable {
    /// Of all transfers together.
    public var all: [RateKind: RateChoice] = [:]
    /// Of hosts, by `name` (on any port) or `name:port`.
    public var hosts: [String: [RateKind: RateChoice]] = [:]

    /// Makes limits that change nothing.
    public init() {}

    /// The limits that are stored.
    init(_ records: [LimitRecord]) {
        for record in records {
            guard let kind = RateKind(rawValue: record.key) else { continue }
            let choice = record.value.map { RateChoice.limited($0) } ?? .unlimited
            switch record.scope {
            case .all: self.all[kind] = choice
            case .host: self.hosts[record.name, default: [:]][kind] = choice
            case .group, .job: break
            }
        }
    }
}

extension EngineConfiguration {
    /// The limits that hold at a time: set live before those of the calendar, these before those of the keys.
    func rates(_ live: LiveRates, at time: LocalMinute) -> [RateLimit] {
        func limit(_ host: String?, _ kind: RateKind, _ choices: [(RateChoice, RateLimit.Source)])
            -> RateLimit?
        {
            choices.first { $0.0 != .unsaid }.map { choice, source in
                RateLimit(host: host, kind: kind, bytes: choice.bytes, source: source)
            }
        }
        func configured(_ bytes: Int64?) -> (RateChoice, RateLimit.Source) {
            (bytes.map { .limited($0) } ?? .unsaid, .configuration)
        }
        func said(_ choices: [RateKind: RateChoice]?, _ kind: RateKind) -> (RateChoice, RateLimit.Source) {
            (choices?[kind] ?? .unsaid, .live)
        }
        let all = [
            limit(nil, .both, [said(live.all, .both)]),
            limit(
                nil,
                .down,
                [said(live.all, .down), (self.calendar.down(at: time), .calendar), configured(self.down)]
            ),
            limit(
                nil,
                .up,
                [said(live.all, .up), (self.calendar.up(at: time), .calendar), configured(self.up)]
            ),
        ]
        let hosts = Set(self.hosts.keys).union(live.hosts.keys).sorted().flatMap { host in
            let (own, settings) = (live.hosts[host], self.hosts[host])
            return [
                limit(host, .both, [said(own, .both)]),
                limit(host, .down, [said(own, .down), configured(settings?.down)]),
                limit(host, .up, [said(own, .up), configured(settings?.up)]),
            ]
        }
        return (all + hosts).compactMap { $0 }
    }

    /// Puts live limits in the place of what the keys say.
    mutating func apply(_ live: LiveRates) {
        if let choice = live.all[.down] { self.down = choice.bytes }
        if let choice = live.all[.up] { self.up = choice.bytes }
        for (host, choices) in live.hosts {
            if let choice = choices[.down] { self.hosts[host, default: HostSettings()].down = choice.bytes }
            if let choice = choices[.up] { self.hosts[host, default: HostSettings()].up = choice.bytes }
        }
    }

    /// Whether the configuration limits a rate, now or at another time.
    func limits(_ kind: RateKind, of host: String?) -> Bool {
        switch (kind, host) {
        case (.both, _): false
        case (.down, nil): self.down != nil || self.calendar.entries.contains { $0.down.bytes != nil }
        case (.up, nil): self.up != nil || self.calendar.entries.contains { $0.up.bytes != nil }
        case (.down, let host?): self.hosts[host]?.down != nil
        case (.up, let host?): self.hosts[host]?.up != nil
        }
    }
}

extension Engine {
    /// A change of a limit on bytes a second.
    public struct RateChange: Sendable {
        /// The host; nil means all transfers together.
        public let host: HostPattern?
        /// What is limited.
        public let kind: RateKind
        /// What the limit becomes; unsaid is what the configuration says.
        public let choice: RateChoice

        /// Makes a change.
        public init(host: HostPattern?, kind: RateKind, choice: RateChoice) {
            self.host = host
            self.kind = kind
            self.choice = choice
        }

        /// Stores it; that there is no limit is stored only where the configuration has one.
        func save(in transaction: Transaction, over configuration: EngineConfiguration) throws {
            let scope: LimitRecord.Scope = self.host == nil ? .all : .host
            let name = self.host?.description ?? ""
            let isSaid =
                self.choice.bytes != nil
                || self.choice == .unlimited
                    && configuration.limits(self.kind, of: self.host?.description)
            guard isSaid else {
                return try transaction.removeLimit(scope: scope, name: name, key: self.kind.rawValue)
            }
            try transaction.save(
                LimitRecord(scope: scope, name: name, key: self.kind.rawValue, value: self.choice.bytes)
            )
        }
    }

    /// The limits on bytes a second that hold now.
    public var rates: [RateLimit] {
        let now = self.services.time.now()
        return self.services.live.rates(
            at: LocalMinute(at: now, offset: self.services.time.localOffset(now))
        )
    }

    static func check(_ changes: [RateChange]) throws {
        for change in changes {
            if let bytes = change.choice.bytes, bytes < 1 {
                throw FerryError.usage("a rate must be at least one byte a second")
            }
        }
    }

    /// Has the network keep to the limits that hold now, and again when the calendar says otherwise.
    func applyRates() {
        self.services.loop.limiter.set(RateLimits(self.rates))
        let hasCalendar = !self.services.configuration.calendar.entries.isEmpty
        guard hasCalendar, !self.isStopping else {
            self.calendarTimer?.cancel()
            self.calendarTimer = nil
            return
        }
        guard self.calendarTimer == nil else { return }
        self.calendarTimer = Task {
            // The clock on the wall may be set and its zone may change, so it is looked at each minute.
            while !Task.isCancelled {
                let past = self.services.time.now().milliseconds % 60_000
                guard (try? await self.services.time.sleep(.milliseconds(60_000 - past))) != nil else {
                    return
                }
                self.services.loop.limiter.set(RateLimits(self.rates))
            }
        }
    }

    /// Sets the limit of a job whose transfer begins; one that a command has set meanwhile stays.
    func begin(_ running: RunningJob, limitRate: Int64?) {
        guard !running.hasNewRate.load(ordering: .relaxed) else { return }
        self.services.loop.limiter.set(limitRate, of: running.id)
    }

    /// Sets the limit of a job if it runs; 0 is none.
    func setRate(_ rate: Int64, of id: JobID) {
        guard let running = self.running[id] else { return }
        running.hasNewRate.store(true, ordering: .relaxed)
        self.services.loop.limiter.set(rate == 0 ? nil : rate, of: id)
    }
}

extension RateLimits {
    /// The limits as the network takes them.
    init(_ limits: [RateLimit]) {
        self.init()
        for limit in limits {
            guard let bytes = limit.bytes else { continue }
            let place: WritableKeyPath<RateSet, Int64?> =
                switch limit.kind {
                case .both: \.total
                case .down: \.down
                case .up: \.up
                }
            if let host = limit.host {
                self.hosts[host, default: RateSet()][keyPath: place] = bytes
            } else {
                self.all[keyPath: place] = bytes
            }
        }
    }
}

extension HTTPRequest {
    /// Puts a request under the limits of its job, of the job's host, and of the host that it goes to.
    mutating func limit(as running: RunningJob, at origin: Origin) {
        self.job = running.id
        self.limitHosts = [running.host]
        if origin.hostAndPort != running.host { self.limitHosts.append(origin.hostAndPort) }
    }
}
