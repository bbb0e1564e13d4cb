import FerryCore
import FerryFiles
import FerryHTTP
import Synchronization

/// Takes a body into a partial file: skips what is there already, refuses what is too much, asks for
/// checkpoints, and pauses while too much is not yet durable.
final class DownloadSink: BodySink {
    /// A checkpoint is asked for when this much is written and not durable.
    static let checkpointBytes: Int64 = 32 * 1_024 * 1_024
    /// The body pauses when this much is not durable: what a power cut can cost at most.
    static let pauseBytes: Int64 = 64 * 1_024 * 1_024
    /// A slower transfer than a slab in this time writes what it has, so that a crash costs little.
    static let flushInterval = Duration.milliseconds(100)

    /// Why the sink ended the exchange.
    enum Failure: Error, Sendable {
        /// A write failed.
        case system(SystemError)
        /// More bytes came than the head had promised.
        case tooLong
    }

    private struct State {
        var writer: SlabWriter
        var skip: Int64
        var durable: Int64
        var askedAt: Int64
        var isPaused = false
        var flushedAt: Duration
        var failure: Failure?
    }

    private let state: Mutex<State>
    private let limit: Int64?
    private let running: RunningJob
    private let monotonic: @Sendable () -> Duration
    private let checkpointWanted: @Sendable () -> Void

    /// Makes a sink for one body.
    ///
    /// - Parameters:
    ///   - file: The partial.
    ///   - offset: Where the first byte after those skipped goes; everything before it is durable.
    ///   - skip: Bytes at the beginning of the body that are there already.
    ///   - limit: One past the last offset that may be written, nil if unknown.
    ///   - checkpointWanted: Called on the loop's thread; must return at once.
    init(
        file: OpenFile,
        offset: Int64,
        skip: Int64,
        limit: Int64?,
        running: RunningJob,
        time: EngineTime,
        checkpointWanted: @escaping @Sendable () -> Void
    ) {
        self.state = Mutex(
            State(
                writer: SlabWriter(file: file, offset: offset),
                skip: skip,
                durable: offset,
                askedAt: offset,
                flushedAt: time.monotonic()
            )
        )
        self.limit = limit
        self.running = running
        self.monotonic = time.monotonic
        self.checkpointWanted = checkpointWanted
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        let (answer, wantsCheckpoint) = self.state.withLock { state in
            let answer = self.take(bytes, &state)
            let written = state.writer.writtenEnd
            guard written - max(state.durable, state.askedAt) >= Self.checkpointBytes else {
                return (answer, false)
            }
            state.askedAt = written
            return (answer, true)
        }
        if wantsCheckpoint { self.checkpointWanted() }
        return answer
    }

    /// Why the sink stopped, nil if it did not.
    var failure: Failure? { self.state.withLock { $0.failure } }

    /// One past the last byte taken.
    var takenEnd: Int64 { self.state.withLock { $0.writer.takenEnd } }

    /// Writes what is in the slab and tells how far the file is written.
    func flush() throws -> Int64 {
        try self.state.withLock { state in
            try state.writer.flush()
            state.flushedAt = self.monotonic()
            return state.writer.writtenEnd
        }
    }

    /// Says that everything before `offset` is durable; true if the body now has to be resumed.
    func setDurable(_ offset: Int64) -> Bool {
        self.running.durable = offset
        return self.state.withLock { state in
            state.durable = offset
            guard state.isPaused, state.writer.takenEnd - offset < Self.pauseBytes else { return false }
            state.isPaused = false
            return true
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ state: inout State) -> SinkAnswer {
        guard state.failure == nil else { return .stop }
        if state.writer.takenEnd - state.durable >= Self.pauseBytes {
            state.isPaused = true
            state.askedAt = state.durable  // make sure that a checkpoint is under way
            return .pause
        }
        let skipped = Int(min(state.skip, Int64(bytes.count)))
        let fresh = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(skipped))
        if let limit, state.writer.takenEnd + Int64(fresh.count) > limit {
            state.failure = .tooLong
            return .stop
        }
        do throws(SystemError) {
            let before = state.writer.writtenEnd
            try state.writer.append(fresh)
            let now = self.monotonic()
            if state.writer.writtenEnd != before {
                state.flushedAt = now
            } else if now - state.flushedAt >= Self.flushInterval {
                try state.writer.flush()
                state.flushedAt = now
            }
        } catch {
            state.failure = .system(error)
            return .stop
        }
        state.skip -= Int64(skipped)
        self.running.addReceived(Int64(bytes.count))
        self.running.done = state.writer.takenEnd
        return .taken
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
