import FerryCore
import FerryFiles
import FerryHTTP
import Synchronization

/// Takes a body into a partial file: skips what is there already, refuses what is too much, asks for
/// checkpoints, and pauses while too much is not yet durable or no memory is free.
final class DownloadSink: BodySink {
    /// A checkpoint is asked for when this much is written and not durable.
    static let checkpointBytes: Int64 = 32 * 1_024 * 1_024
    /// The body pauses when this much is not durable: what a power cut can cost at most.
    static let pauseBytes: Int64 = 64 * 1_024 * 1_024

    /// Why the sink ended the exchange.
    enum Failure: Error, Sendable {
        /// A write failed.
        case system(SystemError)
        /// More bytes came than the head had promised.
        case tooLong
    }

    private struct State {
        var skip: Int64
        var durable: Int64
        var askedAt: Int64
        var isPaused = false
        var isTooLong = false
    }

    private let writer: SegmentWriter
    private let limit: Int64?
    private let running: RunningJob
    private let checkpointWanted: @Sendable () -> Void
    private let state: Mutex<State>

    /// Makes a sink for one body.
    ///
    /// The body's first `skip` bytes are there already; what follows goes to the writer, before whose beginning
    /// everything is durable. No byte is written at or after `limit`, if that is known. `checkpointWanted` is
    /// called on the loop's thread and must return at once.
    init(
        writer: SegmentWriter,
        skip: Int64,
        limit: Int64?,
        running: RunningJob,
        checkpointWanted: @escaping @Sendable () -> Void
    ) {
        let offset = writer.takenEnd
        self.writer = writer
        self.state = Mutex(State(skip: skip, durable: offset, askedAt: offset))
        self.limit = limit
        self.running = running
        self.checkpointWanted = checkpointWanted
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        let taken = self.writer.takenEnd
        guard let skip = self.admit(bytes.count, at: taken) else {
            return self.failure == nil ? .pause : .stop
        }
        switch self.writer.append(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(skip))) {
        case .full: return .pause
        case .failed: return .stop
        case .taken: break
        }
        self.running.addReceived(Int64(bytes.count))
        self.running.done = taken + Int64(bytes.count - skip)
        let written = self.writer.writtenEnd
        let wantsCheckpoint = self.state.withLock { state in
            state.skip -= Int64(skip)
            guard written - max(state.durable, state.askedAt) >= Self.checkpointBytes else { return false }
            state.askedAt = written
            return true
        }
        if wantsCheckpoint { self.checkpointWanted() }
        return .taken
    }

    /// Why the sink stopped, nil if it did not.
    var failure: Failure? {
        if let error = self.writer.failure { return .system(error) }
        return self.state.withLock { $0.isTooLong } ? .tooLong : nil
    }

    /// One past the last byte taken.
    var takenEnd: Int64 { self.writer.takenEnd }

    /// One past the last byte that the kernel has.
    var writtenEnd: Int64 { self.writer.writtenEnd }

    /// Writes all that was taken, unless a write failed before, and tells how far the file is written.
    func flush() async -> Int64 { await self.writer.flush() }

    /// Says that everything before `offset` is durable; true if the body now has to be resumed.
    func setDurable(_ offset: Int64) -> Bool {
        self.running.durable = offset
        let taken = self.writer.takenEnd
        return self.state.withLock { state in
            state.durable = offset
            guard state.isPaused, taken - offset < Self.pauseBytes else { return false }
            state.isPaused = false
            return true
        }
    }

    /// How many of the next bytes are to be skipped; nil if none may be taken now, or ever.
    private func admit(_ count: Int, at taken: Int64) -> Int? {
        var wantsCheckpoint = false
        defer { if wantsCheckpoint { self.checkpointWanted() } }
        return self.state.withLock { state -> Int? in
            guard taken - state.durable < Self.pauseBytes else {
                state.isPaused = true
                wantsCheckpoint = true
                return nil
            }
            let skip = Int(min(state.skip, Int64(count)))
            if let limit, taken + Int64(count - skip) > limit { state.isTooLong = true }
            return state.isTooLong ? nil : skip
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
