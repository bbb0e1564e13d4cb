import CFerryLinux
public import Dispatch
import Synchronization

/// Brings the bytes of one segment into its file: in slabs by the writer's thread while they come fast, and
/// straight through while they come slowly, so that a trickle never holds memory that others need.
///
/// ``append(_:)`` never waits for anything but a small `pwrite`. Bytes are written in their order.
public final class SegmentWriter: Sendable {
    /// A transfer that takes longer than this for a slab is written straight through.
    static let slabTime = Duration.milliseconds(100)
    /// Slabs that one segment may have on their way to the disk.
    static let slabLimit = 8

    /// What became of bytes.
    public enum Answer: Sendable {
        /// All were taken.
        case taken
        /// None was taken; `room` will be called.
        case full
        /// None was taken; see ``SegmentWriter/failure``.
        case failed
    }

    private struct State {
        var isDirect = true
        var slab: Slab?
        var filled = 0
        /// One past the last byte that was handed to the writer's thread, or written.
        var submittedEnd: Int64
        /// What the kernel has by now.
        var written: PrefixHash
        var inFlight = 0
        var windowBegan: Duration
        var windowBytes = 0
        var failure: SystemError?
        var wantsRoom = false
        var waiters: [(end: Int64, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let file: OpenFile
    private let pool: SlabPool
    private let queue: DispatchQueue
    private let slot: ProgressBoard.Slot?
    private let prefix: PrefixHasher
    private let hasher: Hasher?
    private let monotonic: @Sendable () -> Duration
    private let room: @Sendable () -> Void
    private let lock = Mutex(())
    /// Guarded by ``lock``: a mutex that held it could not lend it out together with borrowed bytes.
    private nonisolated(unsafe) var state: State

    /// Makes a writer that goes on where a prefix of the file ends.
    ///
    /// `queue` is the writer's thread, a serial queue. A `hasher` gets all bytes, in order. `room` is called,
    /// from any thread, when bytes that were refused may come again, and after a failure.
    public init(
        file: OpenFile,
        prefix: PrefixHasher,
        pool: SlabPool,
        queue: DispatchQueue,
        slot: ProgressBoard.Slot?,
        hasher: Hasher? = nil,
        monotonic: @escaping @Sendable () -> Duration,
        room: @escaping @Sendable () -> Void
    ) {
        self.file = file
        self.prefix = prefix
        self.pool = pool
        self.queue = queue
        self.slot = slot
        self.hasher = hasher
        self.monotonic = monotonic
        self.room = room
        let hash = prefix.hash
        self.state = State(submittedEnd: hash.end, written: hash, windowBegan: monotonic())
    }

    /// One past the last byte taken.
    public var takenEnd: Int64 {
        self.lock.withLock { _ in self.state.submittedEnd + Int64(self.state.filled) }
    }

    /// What the kernel has by now: how far the file is written, and the hash of all before that.
    public var written: PrefixHash { self.lock.withLock { _ in self.state.written } }

    /// The write that failed; nothing is written after it.
    public var failure: SystemError? { self.lock.withLock { _ in self.state.failure } }

    /// Takes all of the bytes, or none; for one thread at a time.
    public func append(_ bytes: UnsafeRawBufferPointer) -> Answer {
        self.lock.withLock { _ in
            guard self.state.failure == nil else { return .failed }
            guard !bytes.isEmpty else { return .taken }
            guard self.turnWindow() else { return .failed }
            self.state.windowBytes += bytes.count
            if self.state.isDirect {
                self.state.isDirect = self.state.windowBytes < SlabPool.slabSize
                return self.writeThrough(bytes)
            }
            return self.collect(bytes)
        }
    }

    /// Says that a sync of the file has failed: nothing that was written since the last one may be believed.
    public func withdrawClaim() {
        self.slot?.withdraw()
    }

    /// Waits until all that was taken before is written, or has failed; gives ``written``.
    public func flush() async -> PrefixHash {
        await withCheckedContinuation { continuation in
            let isDone = self.lock.withLock { _ in
                guard self.state.failure == nil else { return true }
                self.submit()
                guard self.state.written.end < self.state.submittedEnd else { return true }
                self.state.waiters.append((self.state.submittedEnd, continuation))
                return false
            }
            if isDone { continuation.resume() }
        }
        return self.written
    }

    // MARK: Called with the lock held

    /// Looks at the rate of the last window: too slow for slabs means straight through, once none is under way.
    ///
    /// False if that had to write what the slab holds, and failed.
    private func turnWindow() -> Bool {
        let now = self.monotonic()
        guard now - self.state.windowBegan >= Self.slabTime else { return true }
        let isSlow = self.state.windowBytes < SlabPool.slabSize
        self.state.windowBegan = now
        self.state.windowBytes = 0
        guard isSlow, !self.state.isDirect else { return true }
        guard self.state.inFlight == 0 else {
            self.submit()
            return true
        }
        self.state.isDirect = true
        guard let slab = self.state.slab else { return true }
        let filled = self.state.filled
        self.state.slab = nil
        self.state.filled = 0
        return self.writeThrough(UnsafeRawBufferPointer(rebasing: slab.memory[..<filled])) == .taken
    }

    private func writeThrough(_ bytes: UnsafeRawBufferPointer) -> Answer {
        self.willWrite(bytes)
        do throws(SystemError) {
            try self.file.write(bytes, at: self.state.written.end)
        } catch {
            self.state.failure = error
            return .failed
        }
        // Nothing of this segment is under way, so the hasher's thread has nothing of it either.
        self.hasher?.update(bytes)
        self.state.written = self.prefix.hash
        self.state.submittedEnd = self.state.written.end
        return .taken
    }

    /// Hashes bytes that are about to be written, and claims them if there is a place on the board.
    private func willWrite(_ bytes: UnsafeRawBufferPointer) {
        guard let slot else { return self.prefix.update(bytes) }
        slot.willWrite(bytes, self.prefix)
    }

    /// Copies into the present slab, and into a second one where the bytes cross its border.
    ///
    /// Where no slab can be had, the bytes wait for one of this segment's own writes to end; with none under
    /// way they are written straight through. So segments that hold part-filled slabs never wait for each other.
    private func collect(_ bytes: UnsafeRawBufferPointer) -> Answer {
        precondition(bytes.count <= SlabPool.slabSize, "a piece fits into one slab")
        let count = min(bytes.count, self.border - self.state.filled)
        let first = self.state.slab ?? self.take()
        let second = count < bytes.count && first != nil ? self.take() : nil
        guard let first, count == bytes.count || second != nil else {
            self.submit()
            guard self.state.inFlight > 0 else { return self.writeThrough(bytes) }
            self.state.wantsRoom = true
            return .full
        }
        self.state.slab = first
        self.copy(bytes[..<count])
        if self.state.filled == self.border { self.submit() }
        if let second {
            self.state.slab = second
            self.copy(bytes[count...])
        }
        return .taken
    }

    /// The room of a slab that begins at the submitted end: up to the next aligned offset.
    private var border: Int {
        SlabPool.slabSize - Int(self.state.submittedEnd % Int64(SlabPool.slabSize))
    }

    private func take() -> Slab? {
        self.state.inFlight < Self.slabLimit ? self.pool.take() : nil
    }

    private func copy(_ bytes: Slice<UnsafeRawBufferPointer>) {
        guard let slab = self.state.slab else { return }
        UnsafeMutableRawBufferPointer(rebasing: slab.memory[self.state.filled...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes))
        self.state.filled += bytes.count
    }

    /// Hands what is in the slab to the writer's thread.
    private func submit() {
        guard let slab = self.state.slab, self.state.filled > 0 else { return }
        let (offset, count) = (self.state.submittedEnd, self.state.filled)
        self.state.slab = nil
        self.state.filled = 0
        self.state.submittedEnd += Int64(count)
        self.state.inFlight += 1
        self.queue.async { self.write(slab, count, at: offset) }
    }

    // MARK: On the writer's thread

    private func write(_ slab: Slab, _ count: Int, at offset: Int64) {
        var failure = self.failure
        if failure == nil {
            let bytes = UnsafeRawBufferPointer(rebasing: slab.memory[..<count])
            self.willWrite(bytes)
            do throws(SystemError) {
                try self.file.write(bytes, at: offset)
            } catch {
                failure = error
            }
        }
        let hash = self.prefix.hash
        let waiters = self.lock.withLock { _ in
            if let failure {
                self.state.failure = self.state.failure ?? failure
            } else {
                self.state.written = hash
            }
            let (isOver, end) = (self.state.failure != nil, self.state.written.end)
            let done = self.state.waiters.filter { isOver || $0.end <= end }
            self.state.waiters.removeAll { isOver || $0.end <= end }
            return done.map(\.continuation)
        }
        for waiter in waiters { waiter.resume() }
        guard failure == nil, let hasher else { return self.release(hasFailed: failure != nil) }
        hasher.queue.async {
            hasher.update(UnsafeRawBufferPointer(rebasing: slab.memory[..<count]))
            self.release(hasFailed: false)
        }
    }

    /// One slab less is under way: written, and hashed if that is wanted.
    private func release(hasFailed: Bool) {
        let hasRoom = self.lock.withLock { _ in
            self.state.inFlight -= 1
            defer { self.state.wantsRoom = false }
            return self.state.wantsRoom || hasFailed
        }
        if hasRoom { self.room() }
    }
}
