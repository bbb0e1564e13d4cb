import FerryCore
import FerryFiles
import FerryHTTP
import Synchronization

/// Takes a body into a partial file: skips what is there already, refuses what is too much, asks for
/// checkpoints, and pauses while too much is not yet durable or no memory is free.
final class DownloadSink: BodySink {
    /// A checkpoint is asked for when this much is written and not durable.
    static let checkpointBytes: Int64 = 24 * 1_024 * 1_024
    /// The body pauses when this much is not durable.
    ///
    /// A power cut costs this and what is under way in the sockets' buffers, whose usual bounds are 6 and 4 MiB
    /// (tcp_rmem and tcp_wmem in tcp(7)): together less than the 64 MiB that we promise.
    static let pauseBytes: Int64 = 48 * 1_024 * 1_024

    /// Why the sink ended the exchange.
    enum Failure: Error, Sendable {
        /// A write failed.
        case system(SystemError)
        /// More bytes came than the head had promised.
        case tooLong
        /// More bytes came than the user allows.
        case tooLarge
        /// What came again is not what was there: another version of the object.
        case differs
    }

    private struct State {
        var skip: Int64
        var durable: PrefixHash
        var askedAt: Int64
        /// Bytes after those skipped that are there already, and that what comes must equal.
        var overlap: ArraySlice<UInt8>
        var isPaused = false
        var failure: Failure?
    }

    private let writer: SegmentWriter
    private let limit: Int64?
    private let sizeLimit: Int64?
    private let running: RunningJob
    private let checkpointWanted: @Sendable () -> Void
    private let state: Mutex<State>

    /// Makes a sink for one body.
    ///
    /// The body's first `skip` bytes are there already; those of `overlap` that follow are compared; the rest
    /// goes to the writer, before whose beginning everything is durable. No byte is written at or after `limit`,
    /// which the head has promised, nor `sizeLimit`, which the user has set. `checkpointWanted` is called on the
    /// loop's thread and must return at once.
    init(
        writer: SegmentWriter,
        skip: Int64,
        overlap: [UInt8] = [],
        limit: Int64?,
        sizeLimit: Int64? = nil,
        running: RunningJob,
        checkpointWanted: @escaping @Sendable () -> Void
    ) {
        let durable = writer.written
        self.writer = writer
        self.state = Mutex(
            State(skip: skip, durable: durable, askedAt: durable.end, overlap: overlap[...])
        )
        self.limit = limit
        self.sizeLimit = sizeLimit
        self.running = running
        self.checkpointWanted = checkpointWanted
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        let taken = self.writer.takenEnd
        guard let known = self.admit(bytes, at: taken) else {
            return self.failure == nil ? .pause : .stop
        }
        let fresh = bytes.dropFirst(known.skip + known.overlap)
        switch self.writer.append(UnsafeRawBufferPointer(rebasing: fresh)) {
        case .full: return .pause
        case .failed: return .stop
        case .taken: break
        }
        self.running.addReceived(Int64(bytes.count))
        self.running.done = taken + Int64(fresh.count)
        let written = self.writer.written.end
        let wantsCheckpoint = self.state.withLock { state in
            state.skip -= Int64(known.skip)
            state.overlap = state.overlap.dropFirst(known.overlap)
            guard written - max(state.durable.end, state.askedAt) >= Self.checkpointBytes else {
                return false
            }
            state.askedAt = written
            return true
        }
        if wantsCheckpoint { self.checkpointWanted() }
        return .taken
    }

    /// Why the sink stopped, nil if it did not.
    var failure: Failure? {
        if let error = self.writer.failure { return .system(error) }
        return self.state.withLock { $0.failure }
    }

    /// One past the last byte taken.
    var takenEnd: Int64 { self.writer.takenEnd }

    /// What the kernel has by now.
    var written: PrefixHash { self.writer.written }

    /// What survives a power cut by now.
    var durable: PrefixHash { self.state.withLock { $0.durable } }

    /// Writes all that was taken, unless a write failed before, and tells what the kernel has.
    func flush() async -> PrefixHash { await self.writer.flush() }

    /// Says that a sync has failed; see ``SegmentWriter/withdrawClaim()``.
    func syncFailed() { self.writer.withdrawClaim() }

    /// Says what is durable; true if the body now has to be resumed.
    func setDurable(_ durable: PrefixHash) -> Bool {
        self.running.durable = durable.end
        let taken = self.writer.takenEnd
        return self.state.withLock { state in
            state.durable = durable
            guard state.isPaused, taken - durable.end < Self.pauseBytes else { return false }
            state.isPaused = false
            return true
        }
    }

    /// How many of the next bytes are there already; nil if none may be taken now, or ever.
    private func admit(_ bytes: UnsafeRawBufferPointer, at taken: Int64) -> (skip: Int, overlap: Int)? {
        var wantsCheckpoint = false
        defer { if wantsCheckpoint { self.checkpointWanted() } }
        return self.state.withLock { state -> (skip: Int, overlap: Int)? in
            guard state.failure == nil else { return nil }
            guard taken - state.durable.end < Self.pauseBytes else {
                state.isPaused = true
                wantsCheckpoint = true
                return nil
            }
            let skip = Int(min(state.skip, Int64(bytes.count)))
            let overlap = min(state.overlap.count, bytes.count - skip)
            let end = taken + Int64(bytes.count - skip - overlap)
            if !bytes[skip..<skip + overlap].elementsEqual(state.overlap.prefix(overlap)) {
                state.failure = .differs
            } else if let limit, end > limit {
                state.failure = .tooLong
            } else if let sizeLimit, end > sizeLimit {
                state.failure = .tooLarge
            }
            return state.failure == nil ? (skip, overlap) : nil
        }
    }
}

/// Keeps the beginning of a body that is no file, such as a server's error message, and drops the rest.
final class MessageSink: BodySink {
    /// How much is kept, in bytes (the job's `message` shows it).
    static let keptBytes = 2_048
    /// A longer body is cut off: its connection is not worth the bytes.
    static let limitBytes = 256 * 1_024

    private struct State {
        var kept: [UInt8] = []
        var seen = 0
    }
    private let state = Mutex(State())

    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        self.state.withLock { state in
            state.seen += bytes.count
            state.kept += bytes.prefix(max(0, Self.keptBytes - state.kept.count))
            return state.seen > Self.limitBytes ? .stop : .taken
        }
    }

    /// What was kept, as text.
    var text: String { self.state.withLock { String(decoding: $0.kept, as: UTF8.self) } }
}
