import FerryCore
import FerryHTTP
import FerryStore
import Synchronization

/// The live side of a running job: counters that anyone may read, and the way to stop it.
final class RunningJob: Sendable {
    /// Thrown inside a transfer that was asked to stop.
    struct Stopped: Error {}

    private struct Stop {
        var event: JobEvent?
        var exchange: Exchange?
        /// Whether the event is for the sake of one that waits for the place.
        var isYield = false
        /// The attempt's first exchange, and when it began.
        var first: (exchange: Exchange, at: Duration)?
    }

    let id: JobID
    let host: String
    private let attemptNumber: Atomic<Int>
    private let importance = Atomic<Int>(0)
    /// A command has set its rate since it began.
    let hasNewRate = Atomic(false)
    private let doneBytes = Atomic<Int64>(0)
    private let durableBytes = Atomic<Int64>(0)
    private let totalBytes = Atomic<Int64>(-1)
    private let phaseIndex = Atomic<Int>(0)
    private let receivedBytes = Atomic<Int64>(0)
    private let stop = Mutex(Stop())
    private let hopLog = Mutex<[HopRecord]>([])
    private let meter = Mutex(RateMeter())
    private let finalPath = Mutex<String?>(nil)
    private let answerHook = Mutex<(@Sendable () -> Void)?>(nil)

    init(id: JobID, host: String, attempt: Int) {
        self.id = id
        self.host = host
        self.attemptNumber = Atomic(attempt)
    }

    /// The attempt's number; known once it is committed.
    var attempt: Int {
        get { self.attemptNumber.load(ordering: .relaxed) }
        set { self.attemptNumber.store(newValue, ordering: .relaxed) }
    }

    /// The job's priority.
    var priority: Int {
        get { self.importance.load(ordering: .relaxed) }
        set { self.importance.store(newValue, ordering: .relaxed) }
    }

    // MARK: Counters

    /// Bytes taken from the network and kept, from the beginning of the file.
    var done: Int64 {
        get { self.doneBytes.load(ordering: .relaxed) }
        set { self.doneBytes.store(newValue, ordering: .relaxed) }
    }
    /// Bytes that survive a power cut.
    var durable: Int64 {
        get { self.durableBytes.load(ordering: .relaxed) }
        set { self.durableBytes.store(newValue, ordering: .relaxed) }
    }
    /// The whole size, nil while unknown.
    var total: Int64? {
        get {
            let value = self.totalBytes.load(ordering: .relaxed)
            return value < 0 ? nil : value
        }
        set { self.totalBytes.store(newValue ?? -1, ordering: .relaxed) }
    }
    /// What it does now.
    var phase: JobPhase {
        get { JobPhase.allCases[self.phaseIndex.load(ordering: .relaxed)] }
        set {
            self.phaseIndex.store(JobPhase.allCases.firstIndex(of: newValue) ?? 0, ordering: .relaxed)
        }
    }
    /// The file's final path, once the name is known.
    var path: String? {
        get { self.finalPath.withLock { $0 } }
        set { self.finalPath.withLock { $0 = newValue } }
    }
    /// Body bytes of this attempt.
    var received: Int64 { self.receivedBytes.load(ordering: .relaxed) }

    /// Counts body bytes.
    func addReceived(_ count: Int64) {
        self.receivedBytes.wrappingAdd(count, ordering: .relaxed)
    }

    /// The rate over the last seconds, in bytes a second; to be called a few times a second.
    func rate(at now: Duration) -> Int64? {
        let received = self.received
        return self.meter.withLock { $0.sample(received, at: now) }
    }

    // MARK: The log of this attempt

    /// Remembers a request that was answered or failed.
    func add(hop: HopRecord) {
        self.hopLog.withLock { $0.append(hop) }
        guard hop.status.map(HostSign.isGood) ?? false else { return }
        let hook = self.answerHook.withLock { hook in
            defer { hook = nil }
            return hook
        }
        hook?()
    }

    /// Names what is called once, when an answer comes that is no wish to be left alone.
    func onAnswer(_ hook: @escaping @Sendable () -> Void) {
        self.answerHook.withLock { $0 = hook }
    }

    /// Adds what only the end of an exchange tells: address and times.
    func amendLastHop(_ end: ExchangeEnd) {
        self.hopLog.withLock { hops in
            guard !hops.isEmpty else { return }
            hops[hops.count - 1].address = end.address
            hops[hops.count - 1].firstByteMs = end.firstByte?.milliseconds
            hops[hops.count - 1].totalMs = end.total.milliseconds
        }
    }

    /// The requests so far.
    var hops: [HopRecord] { self.hopLog.withLock { $0 } }

    // MARK: Stopping

    /// Asks the transfer to stop; what it has is kept.
    ///
    /// The event says what then happens to the job: `.interrupted`, `.pause` or `.cancel`. The first one asked
    /// for wins.
    func requestStop(_ event: JobEvent) {
        let exchange: Exchange? = self.stop.withLock { stop in
            if stop.event == nil { stop.event = event }
            return stop.exchange
        }
        exchange?.cancel()
    }

    /// Asks the transfer to give its place up, for it has no connection; it goes back to the queue.
    func yield() {
        self.stop.withLock { stop in if stop.event == nil { stop.isYield = true } }
        self.requestStop(.interrupted)
    }

    /// Whether it was stopped to give its place up.
    var hasYielded: Bool { self.stop.withLock { $0.isYield } }

    /// How it stands with a running job's connection.
    enum Contact {
        /// It has not asked for one.
        case none
        /// It has, then.
        case asking(since: Duration)
        /// It has one, or had; the time that it took to make it if it is new.
        case made(Duration?)
    }

    /// How it stands with the connection for the first request.
    var contact: Contact {
        self.stop.withLock { stop in
            guard let first = stop.first else { return .none }
            switch first.exchange.connection {
            case nil: return .asking(since: first.at)
            case .old: return .made(nil)
            case .new(let time): return .made(time)
            }
        }
    }

    /// What was asked for.
    var stopEvent: JobEvent? { self.stop.withLock { $0.event } }

    /// Ends here if a stop was asked for.
    func checkStop() throws(Stopped) {
        if self.stopEvent != nil { throw Stopped() }
    }

    /// Names the exchange that a stop has to end.
    func track(_ exchange: Exchange, at now: Duration) {
        let isStopped = self.stop.withLock { stop in
            stop.exchange = exchange
            if stop.first == nil { stop.first = (exchange, now) }
            return stop.event != nil
        }
        if isStopped { exchange.cancel() }
    }
}

/// A rate over a window of the last few seconds.
struct RateMeter {
    /// How far back the rate looks.
    static let window = Duration.seconds(5)
    private var samples: [(time: Duration, bytes: Int64)] = []

    /// Takes a growing count and gives bytes a second over the window; nil until there is enough to tell.
    mutating func sample(_ bytes: Int64, at time: Duration) -> Int64? {
        if let last = self.samples.last, time - last.time < .milliseconds(50) {
            // Too close to be a sample of its own.
        } else {
            self.samples.append((time, bytes))
        }
        while self.samples.count > 2, time - self.samples[1].time >= Self.window {
            self.samples.removeFirst()
        }
        guard let first = self.samples.first, time - first.time >= .milliseconds(200) else { return nil }
        let (seconds, attoseconds) = (time - first.time).components
        let elapsed = Double(seconds) + Double(attoseconds) / 1e18
        return Int64((Double(bytes - first.bytes) / elapsed).rounded())
    }
}

extension Duration {
    /// Milliseconds, rounded down.
    var milliseconds: Int64 {
        let (seconds, attoseconds) = self.components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }
}
