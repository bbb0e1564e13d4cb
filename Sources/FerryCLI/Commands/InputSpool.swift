import CFerryLinux
import FerryControl
import FerryCore
import Glibc

/// Copies standard input into the queue's spool folder, so that it can be sent again as often as need be.
///
/// The file is locked (flock(2)) as long as this object lives: it is nobody's left-over before the queue knows it.
final class InputSpool {
    /// The file.
    let path: String
    private let descriptor: Int32
    private var isKept = false

    /// What the copy ended by, if not by the input's end.
    enum Stop: Error {
        case signal(Int32)
        case failure(FerryError)
    }

    /// Makes the file, mode 0600, in the spool folder, which is made with mode 0700.
    init(_ location: QueueLocation) throws(FerryError) {
        let folder = "\(location.stateDirectory)/\(SpoolName.folder)"
        if mkdir(folder, 0o700) == 0 {
            Self.sync(location.stateDirectory)
        } else if errno != EEXIST {
            throw Self.failure("make the folder \(folder)", errno)
        }
        var random = SystemRandomNumberGenerator()
        let bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
        self.path = "\(folder)/\(SpoolName.input(random: bytes))"
        self.descriptor = ferry_openat(
            AT_FDCWD,
            self.path,
            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
            0o600
        )
        guard self.descriptor >= 0 else { throw Self.failure("create \(self.path)", errno) }
        _ = flock(self.descriptor, LOCK_EX | LOCK_NB)  // the name is new, so nobody else has it
    }

    deinit {
        if !self.isKept { unlink(self.path) }
        close(self.descriptor)
    }

    /// Leaves the file to the queue.
    func keep() { self.isKept = true }

    /// Copies until the input ends, and makes the copy durable.
    ///
    /// `signals` end it; the terminal's own end of input, Ctrl-D, is an end like any other.
    func fill(from input: Int32, _ signals: Signals) throws(Stop) {
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while true {
            var entries = [
                pollfd(fd: input, events: Int16(POLLIN), revents: 0),
                pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            _ = poll(&entries, nfds_t(entries.count), -1)  // an interrupted wait is just a short one
            while let signal = signals.next() {
                if signal != SIGWINCH, signal != SIGUSR1 { throw .signal(signal) }
            }
            guard entries[0].revents != 0 else { continue }
            let count = read(input, &buffer, buffer.count)
            if count < 0 {
                if errno == EINTR || errno == EAGAIN { continue }
                throw .failure(Self.failure("read standard input", errno))
            }
            guard count > 0 else { break }
            do throws(FerryError) { try self.write(buffer[..<count]) } catch { throw .failure(error) }
        }
        guard fsync(self.descriptor) == 0 else { throw .failure(Self.failure("sync \(self.path)", errno)) }
        let slash = self.path.lastIndex(of: "/") ?? self.path.startIndex
        Self.sync(String(self.path[..<slash]))
    }

    private func write(_ bytes: ArraySlice<UInt8>) throws(FerryError) {
        var start = bytes.startIndex
        while start < bytes.endIndex {
            let count = bytes[start...].withUnsafeBytes {
                Glibc.write(self.descriptor, $0.baseAddress, $0.count)
            }
            if count >= 0 {
                start += count
            } else if errno != EINTR {
                throw Self.failure("copy standard input to \(self.path)", errno)
            }
        }
    }

    /// Makes the names in a folder durable; where that fails, so do the service's own syncs, and tell.
    private static func sync(_ folder: String) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        close(descriptor)
    }

    private static func failure(_ action: String, _ problem: Int32) -> FerryError {
        let reason = String(cString: strerror(problem))
        return FerryError(
            .localIO,
            "cannot \(action.shown): \(reason); nothing was queued",
            exitStatus: .failed
        )
    }
}
