import FerryCore
import FerryFiles
import FerryHTTP
import Glibc
import Synchronization

/// The body of a request: a range of a file, read at offsets, so that it can be sent any number of times.
///
/// The network's thread takes what is in the page cache (preadv2(2) with RWF_NOWAIT). What is not, a thread of the
/// pool brings there; meanwhile the body pauses, so that a slow disk holds up nobody else.
///
/// The last byte leaves only while the file is still the one that was accepted: no server ever has a whole body
/// that is a mix of two versions.
final class FileSource: RequestSource {
    /// Why it gave no more bytes.
    enum Failure: Sendable {
        case system(SystemError)
        /// The file is another one now; a sentence.
        case changed(String)
    }

    private struct State {
        var failure: Failure?
        var isGateOpen: Bool
        var hasAsked = false
        /// Positions that were brought into the page cache last.
        var warm: Range<Int64> = 0..<0
        var isWarming = false
    }

    /// How much is read ahead, in bytes; the kernel's own read-ahead goes on from there.
    private static let window: Int64 = 1 << 20

    private let file: OpenFile
    private let range: Range<Int64>
    private let identity: SourceIdentity
    private let running: RunningJob
    private let showsSent: Bool
    private let reading: BlockingPool
    private let gateReached: (@Sendable () -> Void)?
    private let canGoOn: @Sendable () -> Void
    private let state: Mutex<State>

    /// Makes a source.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - range: Its bytes that are the body.
    ///   - identity: What the file was when it was accepted.
    ///   - running: Counts the bytes that leave.
    ///   - showsSent: Whether progress is what was sent, for nothing is acknowledged on the way.
    ///   - reading: Waits for the disk.
    ///   - gateReached: Called once when all but the last byte have left; that one waits for ``openGate()``.
    ///   - canGoOn: Called when the exchange may be resumed after a pause for the disk.
    init(
        file: OpenFile,
        range: Range<Int64>,
        identity: SourceIdentity,
        running: RunningJob,
        showsSent: Bool,
        reading: BlockingPool,
        gateReached: (@Sendable () -> Void)? = nil,
        canGoOn: @escaping @Sendable () -> Void
    ) {
        self.file = file
        self.range = range
        self.identity = identity
        self.running = running
        self.showsSent = showsSent
        self.reading = reading
        self.gateReached = gateReached
        self.canGoOn = canGoOn
        self.state = Mutex(State(isGateOpen: gateReached == nil))
    }

    var length: Int64 { self.range.upperBound - self.range.lowerBound }

    /// Why no more bytes came, if so.
    var failure: Failure? { self.state.withLock { $0.failure } }

    /// Lets the last byte leave.
    func openGate() {
        self.state.withLock { $0.isGateOpen = true }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) -> SourceAnswer {
        let isOpen = self.state.withLock { $0.isGateOpen }
        let end = isOpen ? self.length : self.length - 1
        guard position < end else {
            let isFirst = self.state.withLock { state in
                defer { state.hasAsked = true }
                return !state.hasAsked
            }
            if isFirst { self.gateReached?() }
            return .pause
        }
        guard self.failure == nil else { return .failed }
        let room = UnsafeMutableRawBufferPointer(
            rebasing: buffer[..<Int(min(Int64(buffer.count), end - position))]
        )
        let count: Int
        do throws(SystemError) {
            guard let read = try self.take(room, at: position) else { return .pause }
            count = read
            if position + Int64(count) == self.length, let change = try self.change() {
                return self.fail(.changed(change))
            }
        } catch {
            return self.fail(self.reason(for: error))
        }
        self.running.phase = .transferring
        self.running.addReceived(Int64(count))
        if self.showsSent { self.running.done = self.range.lowerBound + position + Int64(count) }
        return .bytes(count)
    }

    /// Reads what can be had at once; nil if the disk has to be waited for, which is then under way.
    private func take(_ room: UnsafeMutableRawBufferPointer, at position: Int64) throws(SystemError) -> Int? {
        let offset = self.range.lowerBound + position
        if let count = try self.file.readCached(into: room, at: offset) { return count }
        let warm = self.state.withLock { state -> Range<Int64> in
            if !state.isWarming, !state.warm.contains(position) {
                state.isWarming = true
                self.warm(position..<min(position + Self.window, self.length))
            }
            return state.isWarming ? 0..<0 : state.warm
        }
        guard warm.contains(position) else { return nil }
        // It was read just now, so that this hardly waits: the file system cannot tell, or memory is short.
        let count = min(room.count, Int(warm.upperBound - position))
        try self.file.read(into: UnsafeMutableRawBufferPointer(rebasing: room[..<count]), at: offset)
        return count
    }

    private func warm(_ positions: Range<Int64>) {
        let start = self.range.lowerBound
        self.reading.start {
            var failure: Failure?
            do throws(SystemError) {
                try self.file.warm(start + positions.lowerBound..<start + positions.upperBound)
            } catch {
                failure = self.reason(for: error)
            }
            self.state.withLock { [failure] state in
                state.isWarming = false
                state.warm = positions
                state.failure = state.failure ?? failure
            }
            self.canGoOn()
        }
    }

    /// Why a read failed: first of all, that the file is another one now.
    private func reason(for error: SystemError) -> Failure {
        if let change = try? self.change() { return .changed(change) }
        return .system(error)
    }

    private func change() throws(SystemError) -> String? {
        self.identity.change(to: try self.file.source())
    }

    private func fail(_ failure: Failure) -> SourceAnswer {
        self.state.withLock { $0.failure = failure }
        return .failed
    }
}

extension OpenFile {
    /// Tells the kernel to read ahead (posix_fadvise(2)).
    func expectSequentialReading() {
        _ = posix_fadvise(self.descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)  // advice only
    }

    /// What the file is now.
    func source() throws(SystemError) -> SourceIdentity {
        let identity = try self.identity()
        return SourceIdentity(
            path: self.path,
            device: identity.device,
            inode: identity.inode,
            size: identity.size,
            modifiedNanoseconds: identity.modifiedNanoseconds
        )
    }
}
