import CFerryLinux
public import FerryCore
import Glibc

/// The folder that holds a queue's state, and the lock that makes one process its owner.
///
/// The lock (flock(2) on the folder) dies with the process, so a crashed owner never blocks the next one.
public final class StateFolder: Sendable {
    /// The absolute path.
    public let path: String
    private let descriptor: Int32

    /// Creates the folder if need be (mode 0700), checks it, and takes the lock.
    ///
    /// - Throws: ``FerryError`` `.busy` if another process owns the queue; `.database` if the folder cannot
    ///   hold a queue: not writable, another user's, on a network file system.
    public init(_ path: String) throws(FerryError) {
        try Self.create(path)
        let descriptor = ferry_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else {
            throw Self.unusable("cannot open the state folder \(path): \(Self.reason)")
        }
        do throws(FerryError) {
            try Self.check(descriptor, path)
        } catch {
            close(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    /// Takes the lock of a folder that exists, and leaves it as it is: to look at what is in it.
    ///
    /// - Throws: ``FerryError`` `.busy` if another process owns the queue, `.database` if it cannot be opened.
    public init(locking path: String) throws(FerryError) {
        let descriptor = ferry_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else {
            throw Self.unusable("cannot open the state folder \(path): \(Self.reason)")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let isTaken = errno == EWOULDBLOCK
            let reason = Self.reason
            close(descriptor)
            guard isTaken else { throw Self.unusable("cannot lock the state folder \(path): \(reason)") }
            throw FerryError(
                .busy,
                "a service owns the queue in \(path); `ferry doctor` asks it, and --repair needs it stopped",
                exitStatus: .noService
            )
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        close(self.descriptor)
    }

    /// Names a folder's next owner: a lock that a daemon takes before it asks for the queue, and keeps.
    ///
    /// Services on demand leave the queue to it; else each command that the hand-over disturbs would start the next
    /// one, which has to be asked in its turn.
    public final class Heir: Sendable {
        private let descriptor: Int32

        /// Takes the lock of the folder at a path; nil if another process has it, or nobody can.
        ///
        /// It makes a few failures of taking over less likely, and nothing depends on it: what stands in its way is
        /// told when the folder itself is taken.
        public init?(_ path: String) {
            self.descriptor = ferry_openat(
                AT_FDCWD,
                "\(path)/\(Self.name)",
                O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                0o600
            )
            guard self.descriptor >= 0 else { return nil }
            guard flock(self.descriptor, LOCK_EX | LOCK_NB) == 0 else {
                close(self.descriptor)
                return nil
            }
        }

        deinit {
            close(self.descriptor)
        }

        /// Whether a process has that lock.
        public static func exists(_ path: String) -> Bool {
            let descriptor = ferry_openat(
                AT_FDCWD,
                "\(path)/\(Self.name)",
                O_RDONLY | O_CLOEXEC | O_NOFOLLOW,
                0
            )
            guard descriptor >= 0 else { return false }
            defer { close(descriptor) }
            return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
        }

        fileprivate static let name = "daemon.lock"
    }

    private static func check(_ descriptor: Int32, _ path: String) throws(FerryError) {
        var info = stat()
        guard fstat(descriptor, &info) == 0 else {
            throw Self.unusable("cannot look at the state folder \(path): \(Self.reason)")
        }
        guard info.st_uid == geteuid() else {
            throw Self.unusable(
                "the state folder \(path) belongs to another user (uid \(info.st_uid)); "
                    + "name your own with --state-dir"
            )
        }
        if let name = Self.networkFileSystem(ferry_filesystem_type(descriptor)) {
            throw Self.unusable(
                "the state folder \(path) is on a network file system (\(name)), which cannot hold a job "
                    + "database safely; name a local folder with --state-dir"
            )
        }
        guard info.st_mode & 0o077 == 0 || Self.isEmptyOrQueue(path) else {
            throw Self.unusable(
                "the folder \(path) has files that are no queue's and is open to others, as a state folder must not "
                    + "be; name a new or empty one with --state-dir"
            )
        }
        if info.st_mode & 0o077 != 0, fchmod(descriptor, 0o700) != 0 {
            throw Self.unusable("cannot make the state folder \(path) private: \(Self.reason)")
        }
        guard faccessat(AT_FDCWD, path, W_OK | X_OK, 0) == 0 else {
            throw Self.unusable("cannot write in the state folder \(path): \(Self.reason)")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else {
                throw Self.unusable("cannot lock the state folder \(path): \(Self.reason)")
            }
            throw FerryError(.busy, "another service owns the queue in \(path)", exitStatus: .noService)
        }
    }

    /// Whether a folder may be made private: it holds a queue, or nothing that somebody else may need.
    private static func isEmptyOrQueue(_ path: String) -> Bool {
        var info = stat()
        if lstat("\(path)/jobs.db", &info) == 0 { return true }
        guard let entries = opendir(path) else { return true }  // what comes next tells why
        defer { closedir(entries) }
        while let entry = readdir(entries) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if ![".", "..", "ferryd.log", "control.sock", Heir.name].contains(name) { return false }
        }
        return true
    }

    /// The name of a network file system by its type number (statfs(2)), nil for others.
    ///
    /// SQLite's WAL mode needs shared memory that these do not give (sqlite.org/wal.html).
    public static func networkFileSystem(_ type: Int64) -> String? {
        let names: [Int64: String] = [
            0x6969: "nfs", 0xFF53_4D42: "cifs", 0xFE53_4D42: "smb2", 0x517B: "smb", 0x0102_1997: "9p",
            0x6573_5546: "fuse", 0x00C3_6400: "ceph", 0x5346_414F: "afs", 0x7375_7245: "coda", 0x564C: "ncp",
            0x7461_636F: "ocfs2", 0x0116_1970: "gfs2", 0x0BD0_0BD0: "lustre", 0x4750_4653: "gpfs",
        ]
        return names[type]
    }

    /// mkdir -p, each new folder with mode 0700 and its name durable: all that is accepted lies below it.
    private static func create(_ path: String) throws(FerryError) {
        var prefix = ""
        for component in path.split(separator: "/") {
            let parent = prefix.isEmpty ? "/" : prefix
            prefix += "/" + component
            if mkdir(prefix, 0o700) == 0 {
                do throws(SystemError) {
                    try Folder(parent).sync()
                } catch {
                    throw Self.unusable("cannot create the state folder \(path): \(error.description)")
                }
                continue
            }
            if errno == EEXIST { continue }
            var info = stat()
            if stat(prefix, &info) == 0 { continue }  // EROFS or EACCES for a folder that is there
            throw Self.unusable("cannot create the state folder \(path): \(Self.reason)")
        }
    }

    private static var reason: String { SystemError.text(errno) }

    private static func unusable(_ message: String) -> FerryError {
        FerryError(.database, message, exitStatus: .database)
    }
}
