import CFerryLinux
import Glibc

/// The folders that the machine's queue may write in (`--allow-dir`), with all that lies below them.
///
/// What counts is where an open folder really is, not the path that led to it: a link inside an allowed folder
/// leads nowhere else.
public struct AllowedFolders: Sendable, Equatable {
    /// The folders, absolute; one that is missing allows nothing until it is there.
    public let paths: [String]

    /// Allows these folders.
    public init(_ paths: [String]) {
        self.paths = paths
    }

    /// Whether an open folder is one of these, or lies below one.
    func admits(_ descriptor: Int32) -> Bool {
        guard let path = Self.path(of: descriptor) else { return false }
        return self.paths.contains { root in Self.canonical(root).map { Self.holds($0, path) } ?? false }
    }

    /// The error for a folder elsewhere.
    func refusal(of path: String) -> SystemError {
        let list = self.paths.isEmpty ? "none" : self.paths.joined(separator: ", ")
        return SystemError(
            errno: EPERM,
            action: "use (it is in none of the folders that --allow-dir names: \(list))",
            path: path
        )
    }

    /// Makes a folder and those above it that are missing, below what is allowed; their names are durable then.
    ///
    /// No link is followed below the folder that is there already.
    ///
    /// - Parameters:
    ///   - path: Absolute.
    ///   - mode: Of each folder made; the group bit for new files is inherited where that is possible.
    /// - Throws: ``SystemError``; what was made stays.
    public func make(_ path: String, mode: UInt32) throws(SystemError) {
        var components = path.split(separator: "/").map(String.init)
        var missing: [String] = []
        var descriptor = Self.open(AT_FDCWD, "/" + components.joined(separator: "/"))
        while descriptor < 0, errno == ENOENT, let last = components.popLast(), last != ".." {
            missing.insert(last, at: 0)
            descriptor = Self.open(AT_FDCWD, "/" + components.joined(separator: "/"))
        }
        guard descriptor >= 0 else { throw SystemError(errno: errno, action: "open the folder", path: path) }
        defer { close(descriptor) }
        guard self.admits(descriptor) else { throw self.refusal(of: path) }
        for name in missing {
            let next = Self.makeOne(name, in: descriptor, mode: mode)
            guard next >= 0 else { throw SystemError(errno: errno, action: "make the folder", path: path) }
            close(descriptor)
            descriptor = next
        }
    }

    /// Makes and opens a folder; -1 and `errno` on an error.
    private static func makeOne(_ name: String, in parent: Int32, mode: mode_t) -> Int32 {
        let isNew = mkdirat(parent, name, 0o700) == 0
        guard isNew || errno == EEXIST else { return -1 }
        let descriptor = Self.open(parent, name, O_NOFOLLOW)
        guard descriptor >= 0, isNew else { return descriptor }
        var info = stat()
        guard fstat(descriptor, &info) == 0, fsync(parent) == 0 else {
            close(descriptor)
            return -1
        }
        // RestrictSUIDSGID= of systemd.exec(5) forbids even to keep the inherited bit.
        let inherited = info.st_mode & S_ISGID
        if fchmod(descriptor, mode | inherited) != 0 { _ = fchmod(descriptor, mode) }
        return descriptor
    }

    private static func open(_ folder: Int32, _ name: String, _ flags: Int32 = 0) -> Int32 {
        ferry_openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags, 0)
    }

    /// Whether a path is the folder or lies below it, byte for byte; both are canonical.
    static func holds(_ folder: [UInt8], _ path: [UInt8]) -> Bool {
        let slash = UInt8(ascii: "/")
        return path == folder || path.starts(with: folder == [slash] ? folder : folder + [slash])
    }

    /// Where an open folder is now (proc_pid_fd(5)).
    private static func path(of descriptor: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = buffer.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { start in
                readlink(
                    "/proc/self/fd/\(descriptor)",
                    start.assumingMemoryBound(to: CChar.self),
                    bytes.count
                )
            } ?? -1
        }
        // A path that fills the buffer may have been cut (readlink(2)).
        return count > 0 && count < buffer.count ? Array(buffer[..<count]) : nil
    }

    private static func canonical(_ path: String) -> [UInt8]? {
        guard let pointer = realpath(path, nil) else { return nil }
        defer { free(pointer) }
        return Array(UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)))
    }
}
