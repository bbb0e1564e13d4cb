/// The transfers that are limited, and whose turn it is.
///
/// Each transfer draws on every bucket that fits it: of all bytes, of its direction, of its hosts, of its job. Where
/// several wait for one bucket they get equal shares, in pieces: the one that has had the fewest bytes since it began
/// to compete is next (start-time fair queueing, Goyal, Vin and Cheng 1996). It then goes on while the buckets are
/// open, for a small quantum, so that fast transfers are not paused after each piece.
///
/// No clock and no I/O: times are nanoseconds of a clock that does not go back.
public struct RateScheduler<ID: Hashable & Sendable>: Sendable {
    /// What a transfer is, for limits.
    public struct Traits: Hashable, Sendable {
        /// Whether bytes are sent; else they come.
        public let isUpload: Bool
        /// The hosts whose limits hold, as `name:port`.
        public let hosts: [String]
        /// The job whose limit holds.
        public let job: JobID?

        /// Makes traits.
        public init(isUpload: Bool, hosts: [String] = [], job: JobID? = nil) {
            self.isUpload = isUpload
            self.hosts = hosts
            self.job = job
        }
    }

    private enum Direction: Hashable {
        case both, down, up
    }

    private enum Key: Hashable {
        case all(Direction)
        case host(String, Direction)
        case job(JobID)
    }

    private struct Bucket {
        let key: Key
        var tokens: TokenBucket
        /// How many transfers draw on it.
        var members = 0
    }

    private struct Flow {
        let traits: Traits
        var buckets: [Int] = []
        /// Bytes had, on the common scale; see ``RateScheduler/virtualTime``.
        var tag: Int64 = 0
        /// Bytes that it may take before others have their turn.
        var turn = 0
        /// Bytes that were taken for it, and that it has not used yet.
        var reserved = 0
        /// Bytes that it waits for; nil while it does not.
        var need: Int?
    }

    /// A quantum is at least this, and so is what a slow transfer gets at once.
    public static var smallestPiece: Int { 1_024 }
    private static var largestPiece: Int { 256 * 1_024 }

    private var limits = RateLimits()
    private var jobs: [JobID: Int64] = [:]
    private var buckets: [Bucket] = []
    private var flows: [ID: Flow] = [:]
    /// Those that wait, by tag; equal ones in the order of their coming.
    private var queue: [(tag: Int64, id: ID)] = []
    /// The tag of the one whose turn came last: where a newcomer begins, who has missed nothing.
    private var virtualTime: Int64 = 0

    /// Makes a scheduler without limits.
    public init() {}

    // MARK: Limits

    /// Whether anything is limited, or waits.
    public var isActive: Bool { !self.buckets.isEmpty || !self.queue.isEmpty }

    /// Replaces all limits but those of jobs.
    public mutating func set(_ limits: RateLimits, at now: Int64) {
        guard limits != self.limits else { return }
        self.limits = limits
        self.rebuild(at: now)
    }

    /// Sets the limit of a job; nil takes it away.
    public mutating func set(_ rate: Int64?, of job: JobID, at now: Int64) {
        guard self.jobs[job] != rate else { return }
        self.jobs[job] = rate
        self.rebuild(at: now)
    }

    private mutating func rebuild(at now: Int64) {
        var old: [Key: TokenBucket] = [:]
        for bucket in self.buckets { old[bucket.key] = bucket.tokens }
        self.buckets.removeAll()
        func buckets(of set: RateSet, _ key: (Direction) -> Key) -> [(Key, Int64)] {
            [(key(.both), set.total), (key(.down), set.down), (key(.up), set.up)].compactMap { key, rate in
                rate.map { (key, $0) }
            }
        }
        var wanted = buckets(of: self.limits.all) { .all($0) }
        for (host, set) in self.limits.hosts.sorted(by: { $0.key < $1.key }) {
            wanted += buckets(of: set) { .host(host, $0) }
        }
        wanted += self.jobs.sorted { $0.key < $1.key }.map { (.job($0.key), $0.value) }
        for (key, rate) in wanted {
            var tokens = old[key] ?? TokenBucket(rate: rate, at: now)
            if tokens.rate != rate { tokens.setRate(rate, at: now) }
            self.buckets.append(Bucket(key: key, tokens: tokens))
        }
        // What one had under other limits says nothing of its share under these.
        self.virtualTime = 0
        self.queue = self.queue.map { (0, $0.id) }
        for id in self.flows.keys {
            guard let traits = self.flows[id]?.traits else { continue }
            let fitting = self.fitting(traits)
            self.flows[id]?.buckets = fitting
            self.flows[id]?.tag = 0
            for index in fitting { self.buckets[index].members += 1 }
        }
    }

    private func fitting(_ traits: Traits) -> [Int] {
        func holds(_ direction: Direction) -> Bool {
            direction == .both || direction == (traits.isUpload ? .up : .down)
        }
        return self.buckets.indices.filter { index in
            switch self.buckets[index].key {
            case .all(let direction): holds(direction)
            case .host(let name, let direction):
                holds(direction) && traits.hosts.contains { $0 == name || $0.hasPrefix("\(name):") }
            case .job(let job): traits.job == job
            }
        }
    }

    // MARK: Transfers

    /// Enters a transfer; one that is known stays as it is.
    public mutating func enter(_ id: ID, _ traits: Traits) {
        guard self.flows[id] == nil else { return }
        let flow = Flow(traits: traits, buckets: self.fitting(traits), tag: self.virtualTime)
        for index in flow.buckets { self.buckets[index].members += 1 }
        self.flows[id] = flow
    }

    /// Forgets a transfer; what was taken for it and not used flows back.
    public mutating func leave(_ id: ID) {
        guard let flow = self.flows.removeValue(forKey: id) else { return }
        for index in flow.buckets {
            self.buckets[index].members -= 1
            self.buckets[index].tokens.take(-flow.reserved)
        }
        if flow.need != nil { self.queue.removeAll { $0.id == id } }
    }

    /// The share of a transfer in bytes a second if all that draw on its buckets were as busy as it; nil is no limit.
    public func share(of id: ID) -> Int64? {
        self.flows[id]?.buckets.map { index in
            self.buckets[index].tokens.rate / Int64(max(1, self.buckets[index].members))
        }.min()
    }

    /// Whether a transfer waits for its turn.
    public func isWaiting(_ id: ID) -> Bool { self.flows[id]?.need != nil }

    // MARK: Bytes

    /// Takes bytes of a transfer that come in one piece; false if it has to wait, and ``grant(at:)`` will name it.
    public mutating func take(_ bytes: Int, of id: ID, at now: Int64) -> Bool {
        guard var flow = self.flows[id] else { return true }
        defer { self.flows[id] = flow }
        guard flow.need == nil else { return false }
        let lack = bytes - flow.reserved
        guard lack > 0 else {
            flow.reserved -= bytes
            return true
        }
        guard self.mayTake(flow, at: now) else {
            self.wait(for: lack, id, &flow)
            return false
        }
        self.charge(lack, to: &flow)
        flow.reserved = 0
        return true
    }

    /// Takes up to so many bytes for a transfer that may choose the size of its pieces; 0 if it has to wait.
    public mutating func take(upTo room: Int, of id: ID, at now: Int64) -> Int {
        guard room > 0, var flow = self.flows[id] else { return room }
        defer { self.flows[id] = flow }
        guard flow.need == nil else { return 0 }
        if flow.reserved > 0 {
            let count = min(room, flow.reserved)
            flow.reserved -= count
            return count
        }
        // A piece is taken as a whole, however few tokens there are: so it is smaller than a turn.
        let count = min(room, max(Self.smallestPiece, self.piece(for: flow) / 4))
        guard self.mayTake(flow, at: now) else {
            self.wait(for: count, id, &flow)
            return 0
        }
        self.charge(count, to: &flow)
        return count
    }

    /// Gives back bytes that a transfer took and could not use; the next ones that it takes are these.
    public mutating func giveBack(_ bytes: Int, of id: ID) {
        self.flows[id]?.reserved += bytes
    }

    /// The transfers whose turn has come, and when to ask again if nothing happens before; nil if none waits.
    public mutating func grant(at now: Int64) -> (granted: [ID], next: Int64?) {
        guard !self.queue.isEmpty else { return ([], nil) }
        for index in self.buckets.indices {
            self.buckets[index].tokens.refill(at: now, isAwaited: self.buckets[index].members > 0)
        }
        var granted: [ID] = []
        var left: [(tag: Int64, id: ID)] = []
        for (position, entry) in self.queue.enumerated() {
            if self.isAllClosed {
                left += self.queue[position...]
                break
            }
            guard var flow = self.flows[entry.id], let need = flow.need else { continue }
            guard flow.buckets.allSatisfy({ self.buckets[$0].tokens.isReady }) else {
                left.append(entry)
                continue
            }
            // The first of several only: the others may have less than it when they are back for more.
            if granted.isEmpty { self.virtualTime = max(self.virtualTime, flow.tag) }
            flow.need = nil
            flow.turn = self.piece(for: flow)
            self.charge(need, to: &flow)
            flow.reserved += need
            self.flows[entry.id] = flow
            granted.append(entry.id)
        }
        self.queue = left
        guard !left.isEmpty else { return (granted, nil) }
        return (granted, self.isAllClosed ? self.buckets.first?.tokens.readyAt : self.nextTime)
    }

    /// The bucket of all bytes in both directions is the first, if there is one: while it is closed nobody is served.
    private var isAllClosed: Bool {
        guard let first = self.buckets.first, case .all(.both) = first.key else { return false }
        return !first.tokens.isReady
    }

    private var nextTime: Int64? {
        self.queue.compactMap { entry in
            self.flows[entry.id]?.buckets.map { self.buckets[$0].tokens.readyAt }.max()
        }.min()
    }

    /// Whether a transfer may go on now: its buckets are open, and it has them for itself, or it is its turn.
    private mutating func mayTake(_ flow: Flow, at now: Int64) -> Bool {
        for index in flow.buckets { self.buckets[index].tokens.refill(at: now) }
        return flow.buckets.allSatisfy { self.buckets[$0].tokens.isOpen }
            && (flow.turn > 0 || self.isAlone(flow))
    }

    /// Whether nobody else draws on the buckets of a transfer.
    private func isAlone(_ flow: Flow) -> Bool { flow.buckets.allSatisfy { self.buckets[$0].members == 1 } }

    private mutating func charge(_ bytes: Int, to flow: inout Flow) {
        guard !flow.buckets.isEmpty else { return }
        // Alone it competes with nobody, so that who comes later has missed nothing.
        if !self.isAlone(flow) { flow.tag += Int64(bytes) }
        flow.turn -= bytes
        for index in flow.buckets { self.buckets[index].tokens.take(bytes) }
    }

    private mutating func wait(for need: Int, _ id: ID, _ flow: inout Flow) {
        flow.need = need
        flow.turn = 0
        flow.tag = max(flow.tag, self.virtualTime)
        var low = 0
        var high = self.queue.count
        while low < high {
            let middle = (low + high) / 2
            if self.queue[middle].tag <= flow.tag { low = middle + 1 } else { high = middle }
        }
        self.queue.insert((flow.tag, id), at: low)
    }

    /// How much a transfer gets in one turn: a fifth of a second of its share.
    private func piece(for flow: Flow) -> Int {
        let shares = flow.buckets.map { index in
            self.buckets[index].tokens.rate / Int64(max(1, self.buckets[index].members)) / 5
        }
        let share = shares.min().map { Int(clamping: $0) } ?? Self.largestPiece
        return min(max(share, Self.smallestPiece), Self.largestPiece)
    }
}
