import FerryCore
import Glibc
import Synchronization

/// The socket file and the descriptor that listens on it.
final class ServerListener: Sendable {
    /// For poll(2) and accept(2) until ``close()``.
    let descriptor: Int32
    private let path: String
    private let device: dev_t
    private let inode: ino_t
    private let isOpen = Mutex(true)

    /// Binds the path, in a folder that is made if it is missing, and listens.
    init(_ location: QueueLocation) throws(FerryError) {
        self.path = location.socketPath
        try Self.makeFolder(of: location.socketPath, mode: location.isSystem ? 0o750 : 0o700)
        try Self.removeStale(location.socketPath)
        let descriptor = UnixSocket.make()
        guard descriptor >= 0 else { throw Self.error(location.socketPath, errno) }
        let mode: mode_t = location.isSystem ? 0o660 : 0o600
        var status = stat()
        // The mode of the descriptor, less the umask, becomes that of the file, so nobody else can ever connect;
        // afterwards it can only be widened (unix_bind in the kernel's net/unix/af_unix.c).
        var failure = fchmod(descriptor, mode) == 0 ? 0 : errno
        if failure == 0 { failure = UnixSocket.bind(descriptor, to: location.socketPath) }
        if failure == 0, chmod(location.socketPath, mode) != 0 || lstat(location.socketPath, &status) != 0 {
            failure = errno
        }
        if failure == 0, listen(descriptor, 128) != 0 { failure = errno }
        guard failure == 0 else {
            Glibc.close(descriptor)
            throw Self.error(location.socketPath, failure)
        }
        self.descriptor = descriptor
        self.device = status.st_dev
        self.inode = status.st_ino
    }

    deinit {
        self.close()
    }

    /// Removes the file if it is still ours and stops listening; may be repeated.
    func close() {
        self.isOpen.withLock { isOpen in
            guard isOpen else { return }
            isOpen = false
            var status = stat()
            if lstat(self.path, &status) == 0, status.st_dev == self.device, status.st_ino == self.inode {
                unlink(self.path)
            }
            Glibc.close(self.descriptor)
        }
    }

    private static func makeFolder(of path: String, mode: mode_t) throws(FerryError) {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return }
        let folder = String(path[..<slash])
        guard mkdir(folder, mode) == 0 || errno == EEXIST else {
            throw FerryError(
                .localIO,
                "cannot make the folder \(folder) for the control socket: \(SystemFailure.words(errno))",
                exitStatus: .noService
            )
        }
    }

    /// Removes a socket file whose service has died; leaves everything else alone.
    private static func removeStale(_ path: String) throws(FerryError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw self.error(path, errno)
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw FerryError(
                .localIO,
                "\(path) should be the control socket but is something else; remove it or choose another folder",
                exitStatus: .noService
            )
        }
        let probe = UnixSocket.make()
        guard probe >= 0 else { throw self.error(path, errno) }
        defer { Glibc.close(probe) }
        switch UnixSocket.connect(probe, to: path) {
        case ECONNREFUSED:
            guard unlink(path) == 0 || errno == ENOENT else { throw self.error(path, errno) }
        case ENOENT:
            return
        case 0, EAGAIN:
            throw FerryError(.busy, "another service answers at \(path)", exitStatus: .noService)
        case let number:
            throw self.error(path, number)
        }
    }

    private static func error(_ path: String, _ number: Int32) -> FerryError {
        FerryError(
            .localIO,
            "cannot listen on the control socket \(path): \(SystemFailure.words(number))",
            exitStatus: .noService
        )
    }
}
