import FerryCore
import FerryFiles
import FerryHTTP
import Glibc
import Synchronization

/// The body of a request: a range of a file, read at offsets, so that it can be sent any number of times.
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
    }

    private let file: OpenFile
    private let range: Range<Int64>
    private let identity: SourceIdentity
    private let running: RunningJob
    private let showsSent: Bool
    private let gateReached: (@Sendable () -> Void)?
    private let state: Mutex<State>

    /// Makes a source.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - range: Its bytes that are the body.
    ///   - identity: What the file was when it was accepted.
    ///   - running: Counts the bytes that leave.
    ///   - showsSent: Whether progress is what was sent, for nothing is acknowledged on the way.
    ///   - gateReached: Called once when all but the last byte have left; that one waits for ``openGate()``.
    init(
        file: OpenFile,
        range: Range<Int64>,
        identity: SourceIdentity,
        running: RunningJob,
        showsSent: Bool,
        gateReached: (@Sendable () -> Void)? = nil
    ) {
        self.file = file
        self.range = range
        self.identity = identity
        self.running = running
        self.showsSent = showsSent
        self.gateReached = gateReached
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
        let count = Int(min(Int64(buffer.count), end - position))
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
        do throws(SystemError) {
            try self.file.read(into: room, at: self.range.lowerBound + position)
            if position + Int64(count) == self.length, let change = try self.change() {
                return self.fail(.changed(change))
            }
        } catch {
            let now = try? self.change()
            return self.fail(now.map { .changed($0) } ?? .system(error))
        }
        self.running.phase = .transferring
        self.running.addReceived(Int64(count))
        if self.showsSent { self.running.done = self.range.lowerBound + position + Int64(count) }
        return .bytes(count)
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
