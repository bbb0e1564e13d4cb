import FerryCore
import FerryStore

/// The queued jobs of each host as far as the scheduler looks, with the hosts' budgets; it says which job runs next.
///
/// By priority, then for the host with the fewest running jobs, then by order of arrival. A claim costs the logarithm
/// of the number of hosts: those that may start a job are in a heap, those that may later in another by that time, and
/// the rest is not looked at. Entries that a change has made wrong stay in the heaps until they come up.
struct ClaimQueue {
    /// A job that was chosen.
    struct Claim: Equatable {
        let id: JobID
        let host: String
    }

    private struct Host {
        var budget = HostBudget()
        var heads: ArraySlice<QueuedHead> = []
        /// Whether the database has more.
        var isCut = false
        /// Another number with every change, never used again; entries in the heaps that bear an older one are void.
        var stamp = 0
    }

    private struct Entry: Comparable {
        let priority: Int
        /// What there is against the host: of suspects the least suspicious comes first.
        let doubt: Int
        let load: Int
        let id: JobID
        let host: String
        let stamp: Int

        static func < (left: Entry, right: Entry) -> Bool {
            (right.priority, left.doubt, left.load, left.id)
                < (left.priority, right.doubt, right.load, right.id)
        }
    }

    private struct Opening: Comparable {
        let time: Timestamp
        let host: String
        let stamp: Int

        static func < (left: Opening, right: Opening) -> Bool { left.time < right.time }
    }

    private var hosts: [String: Host] = [:]
    /// Hosts that may start a job now.
    private var ready = Heap<Entry>()
    /// Those of them that have failed and not answered since.
    private var suspects = Heap<Entry>()
    private var openings = Heap<Opening>()
    /// Jobs that run on those without an answer.
    private var doubtful = 0
    private var lane = SuspectLane()
    private var running = 0
    private var lastStamp = 0
    /// Hosts whose heads have to be read again.
    private(set) var wanting: Set<String> = []
    private var perHost: @Sendable (String) -> Int
    private let random: @Sendable () -> Double

    /// Makes an empty one.
    ///
    /// - Parameters:
    ///   - perHost: How many jobs of a host the configuration allows at once.
    ///   - random: A number in 0..<1.
    init(
        perHost: @escaping @Sendable (String) -> Int,
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
    ) {
        self.perHost = perHost
        self.random = random
    }

    // MARK: What is queued

    /// Takes over the next jobs of a host, in order; `isCut`: there are more.
    mutating func refill(_ name: String, _ heads: [QueuedHead], isCut: Bool, at now: Timestamp) {
        var host = self.hosts[name] ?? Host()
        host.heads = heads.filter { !host.budget.runs($0.id) }[...]
        host.isCut = isCut
        self.hosts[name] = host
        self.evaluate(name, at: now)
    }

    /// Says that what is queued for a host has changed.
    mutating func want(_ name: String) { self.wanting.insert(name) }

    /// Says that a host's queue is being read; what changes from now on needs another look.
    mutating func isRead(_ name: String) { self.wanting.remove(name) }

    /// Puts these jobs, in whatever order, in the place of all that are known; there are no others.
    mutating func replace(_ heads: [QueuedHead], at now: Timestamp) {
        self.wanting = []
        for name in self.hosts.keys {
            self.hosts[name]?.heads = []
            self.hosts[name]?.isCut = false
        }
        for (name, heads) in Dictionary(grouping: heads, by: \.host) {
            let budget = self.hosts[name]?.budget
            self.hosts[name, default: Host()].heads =
                heads.filter { budget?.runs($0.id) != true }.sorted()[...]
        }
        self.rebuild(at: now)
    }

    /// Adds a job to those that are known of its host, or gives it another place among them.
    mutating func insert(_ head: QueuedHead, at now: Timestamp) {
        var host = self.hosts[head.host] ?? Host()
        guard !host.budget.runs(head.id) else { return }
        host.heads.removeAll { $0.id == head.id }
        host.heads.insert(head, at: host.heads.firstIndex { head < $0 } ?? host.heads.endIndex)
        self.hosts[head.host] = host
        self.evaluate(head.host, at: now)
    }

    // MARK: Claiming

    /// Chooses jobs and begins them.
    ///
    /// Hosts that have failed and not answered since have a lane of their own (``SuspectLane``), so that those that do
    /// nothing but fail or time out take little from the others.
    ///
    /// - Parameters:
    ///   - count: How many at most.
    ///   - now: The time.
    ///   - isHeld: Jobs that are not to be begun now, although they are queued.
    /// - Returns: The jobs, the first choice first.
    mutating func claim(_ count: Int, at now: Timestamp, isHeld: (JobID) -> Bool = { _ in false }) -> [Claim]
    {
        // Void entries below the top are worth a look only when there are many.
        let entries = self.ready.count + self.suspects.count + self.openings.count
        if entries > 4 * self.hosts.count + 1_000 { self.rebuild(at: now) }
        self.open(at: now)
        let places = self.running + count
        var claims: [Claim] = []
        var aside: [String] = []
        while claims.count < count, let name = self.next(places: places, at: now) {
            guard let host = self.hosts[name] else { continue }
            guard let index = host.heads.firstIndex(where: { !isHeld($0.id) }) else {
                aside.append(name)
                continue
            }
            let id = host.heads[index].id
            claims.append(Claim(id: id, host: name))
            self.begin(id, host: name, at: now)
        }
        for name in aside {
            // Behind those that are held there may be others.
            if self.hosts[name]?.isCut == true { self.wanting.insert(name) }
            self.evaluate(name, at: now)
        }
        return claims
    }

    /// Takes the best host out of its heap.
    private mutating func next(places: Int, at now: Timestamp) -> String? {
        Self.dropVoid(&self.ready, self.hosts)
        Self.dropVoid(&self.suspects, self.hosts)
        let other = self.ready.first
        let share = SuspectLane.share(of: places, isWanted: other != nil)
        let suspect = self.doubtful < max(1, share) ? self.suspects.first : nil
        guard let best = self.choose(other, suspect, places: places, at: now) else { return nil }
        if best.stamp == suspect?.stamp {
            self.suspects.removeFirst()
            self.lane.suspectStarted(at: now)
        } else {
            self.ready.removeFirst()
            self.lane.otherStarted()
        }
        self.hosts[best.host]?.stamp = 0  // of no entry
        return best.host
    }

    /// Chooses between the best of the hosts that are not suspect and the best of those that are.
    private func choose(_ other: Entry?, _ suspect: Entry?, places: Int, at now: Timestamp) -> Entry? {
        guard let other, let suspect else { return other ?? suspect }
        guard other.priority == suspect.priority else {
            return other.priority < suspect.priority ? suspect : other
        }
        return self.lane.isDue(at: now, places: places) ? suspect : other
    }

    private static func dropVoid(_ heap: inout Heap<Entry>, _ hosts: [String: Host]) {
        while let first = heap.first, hosts[first.host]?.stamp != first.stamp { heap.removeFirst() }
    }

    /// The hosts that wait for a place, the next ones first.
    ///
    /// - Parameters:
    ///   - count: How many at most.
    ///   - places: All places there are.
    /// - Returns: Those that are not suspect, and those that are and find the places full that they may have.
    mutating func rivals(_ count: Int, places: Int) -> (
        others: [SilencePlan.Rival], suspects: [SilencePlan.Rival]
    ) {
        let others = Self.first(count, of: &self.ready, self.hosts)
        let share = SuspectLane.share(of: places, isWanted: !others.isEmpty)
        guard self.doubtful >= max(1, share) else { return (others, []) }
        return (others, Self.first(count, of: &self.suspects, self.hosts))
    }

    private static func first(_ count: Int, of heap: inout Heap<Entry>, _ hosts: [String: Host])
        -> [SilencePlan.Rival]
    {
        var entries: [Entry] = []
        while entries.count < count {
            self.dropVoid(&heap, hosts)
            guard let entry = heap.removeFirst() else { break }
            entries.append(entry)
        }
        for entry in entries { heap.insert(entry) }
        return entries.map { SilencePlan.Rival(host: $0.host, priority: $0.priority) }
    }

    // MARK: Running

    /// Enters a job that begins to run.
    mutating func begin(_ id: JobID, host name: String, at now: Timestamp) {
        let random = self.random()
        self.change(name, at: now) { host, _ in
            if host.heads.first?.id == id {
                host.heads.removeFirst()
            } else {
                host.heads.removeAll { $0.id == id }
            }
            host.budget.began(id, at: now, random: random)
        }
        if let host = self.hosts[name], host.heads.isEmpty, host.isCut { self.wanting.insert(name) }
    }

    /// Takes up that a running job's host has answered; gives whether its pause or trouble is over.
    mutating func answered(_ id: JobID, host name: String, at now: Timestamp) -> Bool {
        self.change(name, at: now) { host, limit in host.budget.answered(id, limit: limit) }
    }

    /// Takes up how a job ended; gives whether pause or trouble of its host has changed.
    @discardableResult
    mutating func end(
        _ id: JobID,
        host name: String,
        _ sign: HostSign,
        at now: Timestamp,
        backOff: (Int) -> Duration = { _ in .zero }
    ) -> Bool {
        // It has had its turn: those who wait go before its next job.
        if sign == .silent { self.lane.suspectStarted(at: now) }
        return self.change(name, at: now) { host, limit in
            host.budget.ended(id, sign, at: now, limit: limit, backOff: backOff)
        }
    }

    /// A person wants a job of that host tried now.
    mutating func hurry(_ name: String, at now: Timestamp) {
        guard self.hosts[name] != nil else { return }
        self.change(name, at: now) { host, _ in host.budget.hurry() }
    }

    /// The budget of a host.
    func budget(of name: String) -> HostBudget { self.hosts[name]?.budget ?? HostBudget() }

    /// Hosts that there is anything to know of.
    var hostCount: Int { self.hosts.count }

    // MARK: Time and settings

    /// When the next host that waits for a time may start a job.
    var nextOpening: Timestamp? {
        mutating get {
            while let first = self.openings.first, self.hosts[first.host]?.stamp != first.stamp {
                self.openings.removeFirst()
            }
            return self.openings.first?.time
        }
    }

    /// Takes over what was stored of a host.
    mutating func restore(_ name: String, _ budget: HostBudget, at now: Timestamp) {
        self.hosts[name, default: Host()].budget = budget
        self.evaluate(name, at: now)
    }

    /// The configuration allows another number of jobs.
    mutating func set(perHost: @escaping @Sendable (String) -> Int, at now: Timestamp) {
        self.perHost = perHost
        self.rebuild(at: now)
    }

    /// The clock was set, and shows that much more.
    mutating func shift(by jump: Duration, at now: Timestamp) {
        for name in self.hosts.keys { self.hosts[name]?.budget.shift(by: jump) }
        self.rebuild(at: now)
    }

    // MARK: Entries

    private mutating func rebuild(at now: Timestamp) {
        self.ready.removeAll()
        self.suspects.removeAll()
        self.openings.removeAll()
        for name in Array(self.hosts.keys) { self.evaluate(name, at: now) }
    }

    private mutating func open(at now: Timestamp) {
        while let time = self.nextOpening, time <= now, let first = self.openings.removeFirst() {
            self.evaluate(first.host, at: now)
        }
    }

    private mutating func change<Result>(
        _ name: String,
        at now: Timestamp,
        _ body: (inout Host, Int) -> Result
    ) -> Result {
        var host = self.hosts.removeValue(forKey: name) ?? Host()
        self.count(host.budget, by: -1)
        let result = body(&host, self.perHost(name))
        self.count(host.budget, by: 1)
        self.hosts[name] = host
        self.evaluate(name, at: now)
        return result
    }

    private mutating func count(_ budget: HostBudget, by sign: Int) {
        self.running += sign * budget.running
        if budget.isSuspect { self.doubtful += sign * budget.unanswered }
    }

    /// Puts a host where it belongs now; what was entered before is void.
    private mutating func evaluate(_ name: String, at now: Timestamp) {
        guard var host = self.hosts[name] else { return }
        self.lastStamp += 1
        host.stamp = self.lastStamp
        guard let head = host.heads.first else {
            self.hosts[name] = host.budget.isPlain ? nil : host
            return
        }
        self.hosts[name] = host
        switch host.budget.leave(at: now, limit: self.perHost(name)) {
        case .now:
            let entry = Entry(
                priority: head.priority,
                doubt: host.budget.isSuspect ? host.budget.doubt : 0,
                load: host.budget.running,
                id: head.id,
                host: name,
                stamp: host.stamp
            )
            if host.budget.isSuspect { self.suspects.insert(entry) } else { self.ready.insert(entry) }
        case .at(let time):
            self.openings.insert(Opening(time: time, host: name, stamp: host.stamp))
        case .later:
            break
        }
    }
}
