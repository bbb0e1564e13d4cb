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

    private let lock = Mutex(())
    /// Guarded by ``lock``: a mutex that held it could not lend it out together with the borrowed bytes.
    private nonisolated(unsafe) var state: State
    private let limit: Int64?
    private let running: RunningJob
    private let monotonic: @Sendable () -> Duration
    private let checkpointWanted: @Sendable () -> Void

    /// Makes a sink for one body.
    ///
    /// The body's first `skip` bytes are there already; what follows goes to `offset`, before which everything
    /// is durable. No byte is written at or after `limit`, if that is known. `checkpointWanted` is called on
    /// the loop's thread and must return at once.
    init(
        file: OpenFile,
        offset: Int64,
        skip: Int64,
        limit: Int64?,
        running: RunningJob,
        time: EngineTime,
        checkpointWanted: @escaping @Sendable () -> Void
    ) {
        self.state = State(
            writer: SlabWriter(file: file, offset: offset),
            skip: skip,
            durable: offset,
            askedAt: offset,
            flushedAt: time.monotonic()
        )
        self.limit = limit
        self.running = running
        self.monotonic = time.monotonic
        self.checkpointWanted = checkpointWanted
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        let (answer, wantsCheckpoint) = self.lock.withLock { _ in
            let answer = self.take(bytes)
            let written = self.state.writer.writtenEnd
            guard written - max(self.state.durable, self.state.askedAt) >= Self.checkpointBytes else {
                return (answer, false)
            }
            self.state.askedAt = written
            return (answer, true)
        }
        if wantsCheckpoint { self.checkpointWanted() }
        return answer
    }

    /// Why the sink stopped, nil if it did not.
    var failure: Failure? { self.lock.withLock { _ in self.state.failure } }

    /// One past the last byte taken.
    var takenEnd: Int64 { self.lock.withLock { _ in self.state.writer.takenEnd } }

    /// Writes what is in the slab, unless a write failed before, and tells how far the file is written.
    ///
    /// A write that fails shows in ``failure``; what the returned offset says is written all the same.
    func flush() -> Int64 {
        self.lock.withLock { _ in
            guard self.state.failure == nil else { return self.state.writer.writtenEnd }
            do throws(SystemError) {
                try self.state.writer.flush()
            } catch {
                self.state.failure = .system(error)
            }
            self.state.flushedAt = self.monotonic()
            return self.state.writer.writtenEnd
        }
    }

    /// Says that everything before `offset` is durable; true if the body now has to be resumed.
    func setDurable(_ offset: Int64) -> Bool {
        self.running.durable = offset
        return self.lock.withLock { _ in
            self.state.durable = offset
            guard self.state.isPaused, self.state.writer.takenEnd - offset < Self.pauseBytes else {
                return false
            }
            self.state.isPaused = false
            return true
        }
    }

    /// Called with the lock held.
    private func take(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        guard self.state.failure == nil else { return .stop }
        if self.state.writer.takenEnd - self.state.durable >= Self.pauseBytes {
            self.state.isPaused = true
            self.state.askedAt = self.state.durable  // make sure that a checkpoint is under way
            return .pause
        }
        let skipped = Int(min(self.state.skip, Int64(bytes.count)))
        let fresh = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(skipped))
        if let limit, self.state.writer.takenEnd + Int64(fresh.count) > limit {
            self.state.failure = .tooLong
            return .stop
        }
        do throws(SystemError) {
            let before = self.state.writer.writtenEnd
            try self.state.writer.append(fresh)
            let now = self.monotonic()
            if self.state.writer.writtenEnd != before {
                self.state.flushedAt = now
            } else if now - self.state.flushedAt >= Self.flushInterval {
                try self.state.writer.flush()
                self.state.flushedAt = now
            }
        } catch {
            self.state.failure = .system(error)
            return .stop
        }
        self.state.skip -= Int64(skipped)
        self.running.addReceived(Int64(bytes.count))
        self.running.done = self.state.writer.takenEnd
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
