import Dispatch
public import FerryCore
import Synchronization

/// The limits on bytes a second of all transfers of a ``NetworkLoop``; any thread may change them.
///
/// While nothing is limited a transfer looks at one flag for each piece of its body, and no more.
public final class RateLimiter: Sendable {
    /// One direction of one exchange.
    struct Flow: Hashable, Sendable {
        let thread: Int
        let exchange: UInt64
        let isUpload: Bool
    }

    private struct State {
        var scheduler = RateScheduler<Flow>()
        /// Those whose turn has come, for threads that have not asked yet.
        var granted: [Flow] = []

        var isActive: Bool { self.scheduler.isActive || !self.granted.isEmpty }
    }

    private let state = Mutex(State())
    private let active = Atomic(false)
    private let changes = Atomic<UInt64>(0)
    private let wakers = Mutex<[@Sendable () -> Void]>([])

    /// Replaces all limits but those of jobs; running transfers feel it at once.
    public func set(_ limits: RateLimits) {
        self.change { $0.set(limits, at: Self.now) }
    }

    /// Sets the limit of a job in bytes a second, in both directions together; nil takes it away.
    public func set(_ rate: Int64?, of job: JobID) {
        self.change { $0.set(rate, of: job, at: Self.now) }
    }

    private func change(_ body: (inout RateScheduler<Flow>) -> Void) {
        let concerns = self.update { state in
            let wasActive = state.isActive
            body(&state.scheduler)
            return wasActive || state.isActive
        }
        guard concerns else { return }
        self.changes.wrappingAdd(1, ordering: .relaxed)
        for wake in self.wakers.withLock({ $0 }) { wake() }
    }

    // MARK: For the loop's threads

    /// Has a closure called after each change of limits, on any thread; it must return at once.
    func onChange(_ wake: @escaping @Sendable () -> Void) {
        self.wakers.withLock { $0.append(wake) }
    }

    /// Whether anything is limited or waits.
    var isActive: Bool { self.active.load(ordering: .relaxed) }

    /// Another number after each change of limits.
    var changeCount: UInt64 { self.changes.load(ordering: .relaxed) }

    /// Enters a flow and tells its share in bytes a second; nil is no limit.
    func enter(_ flow: Flow, _ traits: RateScheduler<Flow>.Traits) -> Int64? {
        self.update { state in
            state.scheduler.enter(flow, traits)
            return state.scheduler.share(of: flow)
        }
    }

    /// The share of a flow that was entered.
    func share(of flow: Flow) -> Int64? { self.state.withLock { $0.scheduler.share(of: flow) } }

    /// Forgets a flow.
    func leave(_ flow: Flow) {
        self.update { state in
            state.scheduler.leave(flow)
            state.granted.removeAll { $0 == flow }
        }
    }

    /// Takes a piece that has come; false if the flow has to wait.
    func take(_ bytes: Int, of flow: Flow) -> Bool {
        self.update { $0.scheduler.take(bytes, of: flow, at: Self.now) }
    }

    /// Takes as much as may be sent now, up to the room there is; 0 if the flow has to wait.
    func take(upTo room: Int, of flow: Flow) -> Int {
        self.update { $0.scheduler.take(upTo: room, of: flow, at: Self.now) }
    }

    /// Takes back what a flow took and could not use.
    func giveBack(_ bytes: Int, of flow: Flow) {
        self.update { $0.scheduler.giveBack(bytes, of: flow) }
    }

    /// The exchanges of a thread that may go on, and in how many milliseconds to ask again; nil if nothing waits.
    func grant(to thread: Int) -> (exchanges: [UInt64], wait: Int32?) {
        self.update { state in
            let now = Self.now
            let (granted, next) = state.scheduler.grant(at: now)
            state.granted += granted
            let own = state.granted.filter { $0.thread == thread }.map(\.exchange)
            if !own.isEmpty { state.granted.removeAll { $0.thread == thread } }
            // Rounded up: a turn that comes too early would be for nothing.
            return (own, next.map { Int32(clamping: (max(0, $0 - now) + 999_999) / 1_000_000) })
        }
    }

    private func update<Result>(_ body: (inout State) -> Result) -> Result {
        // The flag changes under the lock, so that it never lags behind the state.
        self.state.withLock { state in
            let result = body(&state)
            let isActive = state.isActive
            if isActive != self.active.load(ordering: .relaxed) {
                self.active.store(isActive, ordering: .relaxed)
            }
            return result
        }
    }

    /// Nanoseconds of the monotonic clock.
    private static var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds) }
}

/// One direction of a transfer under the limiter; confined to the loop's thread.
final class RatePace {
    private let limiter: RateLimiter
    private let flow: RateLimiter.Flow
    private let traits: RateScheduler<RateLimiter.Flow>.Traits
    private var isEntered = false
    private var isCharged = false
    /// Whether it stands still until the limiter lets it go on.
    private(set) var isHeld = false

    init(_ limiter: RateLimiter, _ flow: RateLimiter.Flow, _ traits: RateScheduler<RateLimiter.Flow>.Traits) {
        self.limiter = limiter
        self.flow = flow
        self.traits = traits
    }

    /// The share that it has, in bytes a second; nil is no limit.
    var share: Int64? {
        guard self.limiter.isActive else { return nil }
        return self.isEntered ? self.limiter.share(of: self.flow) : self.enter()
    }

    /// Takes a piece that has come; false if it has to wait.
    func take(_ bytes: Int) -> Bool {
        self.isHeld = self.isLimited && !self.limiter.take(bytes, of: self.flow)
        return !self.isHeld
    }

    /// Takes as much as may be sent now; 0 if it has to wait.
    func take(upTo room: Int) -> Int {
        let count = self.isLimited ? self.limiter.take(upTo: room, of: self.flow) : room
        self.isHeld = count == 0
        return count
    }

    /// Gives back what was taken and could not be used.
    func giveBack(_ bytes: Int) {
        if self.isCharged { self.limiter.giveBack(bytes, of: self.flow) }
    }

    /// Ends it.
    func leave() {
        if self.isEntered { self.limiter.leave(self.flow) }
    }

    private var isLimited: Bool {
        self.isCharged = self.limiter.isActive
        if self.isCharged, !self.isEntered { _ = self.enter() }
        return self.isCharged
    }

    private func enter() -> Int64? {
        self.isEntered = true
        return self.limiter.enter(self.flow, self.traits)
    }
}
