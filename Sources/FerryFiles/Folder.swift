import CFerryLinux
import Glibc

/// An open folder: files in it are reached relative to it, so a renamed or replaced path cannot lead elsewhere.
///
/// Names are single path components; links are never followed (O_NOFOLLOW).
public final class Folder: Sendable {
    /// The path as given; for messages.
    public let path: String
    private let descriptor: Int32
    private let calls: FileCalls

    /// Opens an existing folder, one of those that `calls` allows.
    public init(_ path: String, calls: FileCalls = .real) throws(SystemError) {
        let descriptor = ferry_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw SystemError(errno: errno, action: "open the folder", path: path) }
        if let allowed = calls.allowedFolders, !allowed.admits(descriptor) {
            close(descriptor)
            throw allowed.refusal(of: path)
        }
        self.path = path
        self.descriptor = descriptor
        self.calls = calls
    }

    deinit {
        close(self.descriptor)
    }

    /// The path of a file in it.
    public func path(of name: String) -> String {
        self.path.hasSuffix("/") ? self.path + name : "\(self.path)/\(name)"
    }

    /// The path of a file in it by now: another one than ``path(of:)`` if the folder was moved since it was opened.
    public func currentPath(of name: String) -> String {
        var opened = stat()
        var named = stat()
        if fstat(self.descriptor, &opened) == 0, stat(self.path, &named) == 0,
            opened.st_dev == named.st_dev, opened.st_ino == named.st_ino
        {
            return self.path(of: name)
        }
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let count = readlink("/proc/self/fd/\(self.descriptor)", &buffer, buffer.count - 1)
        let moved = String(decoding: buffer.prefix(max(0, count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard moved.hasPrefix("/") else { return self.path(of: name) }
        return moved == "/" ? "/\(name)" : "\(moved)/\(name)"
    }

    /// Creates a file that must not exist, with exactly this mode.
    public func create(_ name: String, mode: UInt32) throws(SystemError) -> OpenFile {
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let file = try self.open(name, flags: flags, action: "create")
        guard fchmod(file.descriptor, mode) == 0 else {
            throw SystemError(errno: errno, action: "set the mode of", path: file.path)
        }
        return file
    }

    /// Opens an existing regular file for reading, and for writing unless it is to be read only.
    public func open(_ name: String, onlyForReading: Bool = false) throws(SystemError) -> OpenFile {
        let access = onlyForReading ? O_RDONLY : O_RDWR
        let file = try self.open(name, flags: access | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, action: "open")
        guard try file.identity().isRegular else {
            throw SystemError(errno: EINVAL, action: "use (it is not a regular file)", path: file.path)
        }
        return file
    }

    /// Looks at a name without following a link; nil if there is nothing.
    public func identity(of name: String) throws(SystemError) -> OpenFile.Identity? {
        var info = stat()
        if fstatat(self.descriptor, name, &info, AT_SYMLINK_NOFOLLOW) == 0 { return OpenFile.Identity(info) }
        guard errno == ENOENT else {
            throw SystemError(errno: errno, action: "look at", path: self.path(of: name))
        }
        return nil
    }

    /// Gives a file its final name in one step.
    ///
    /// A file of that name is replaced if so wanted; else it is an error, EEXIST.
    public func rename(_ from: String, to name: String, replacing: Bool) throws(SystemError) {
        if replacing {
            guard self.calls.rename(self.descriptor, from, name) != 0 else { return }
        } else {
            guard self.calls.renameNoReplace(self.descriptor, from, name) != 0 else { return }
            if errno == EINVAL || errno == ENOSYS { return try self.link(from, to: name) }
        }
        throw SystemError(errno: errno, action: "rename to", path: self.path(of: name))
    }

    /// Gives a file the same name in another folder; one that has that name there is never replaced.
    ///
    /// - Throws: ``SystemError``, EEXIST, or EXDEV if the other folder is on another file system.
    public func move(_ name: String, to other: Folder) throws(SystemError) {
        guard ferry_rename_noreplace(self.descriptor, name, other.descriptor, name) != 0 else { return }
        if errno == EINVAL || errno == ENOSYS {
            guard linkat(self.descriptor, name, other.descriptor, name, 0) == 0 else {
                throw SystemError(errno: errno, action: "move to", path: other.path(of: name))
            }
            return try self.remove(name)
        }
        throw SystemError(errno: errno, action: "move to", path: other.path(of: name))
    }

    /// Gives a file a second name, in a folder of the same file system; a name that is taken is an error.
    public func link(_ from: String, to folder: Folder, as name: String) throws(SystemError) {
        guard linkat(self.descriptor, from, folder.descriptor, name, 0) == 0 else {
            throw SystemError(errno: errno, action: "link", path: folder.path(of: name))
        }
    }

    /// Removes a name; a name that is not there is fine.
    public func remove(_ name: String) throws(SystemError) {
        guard unlinkat(self.descriptor, name, 0) != 0, errno != ENOENT else { return }
        throw SystemError(errno: errno, action: "remove", path: self.path(of: name))
    }

    /// Checks that files can be made in it.
    public func checkWritable() throws(SystemError) {
        guard faccessat(self.descriptor, ".", W_OK | X_OK, AT_EACCESS) != 0 else { return }
        throw SystemError(errno: errno, action: "write in the folder", path: self.path)
    }

    /// Makes the names in it durable (fsync(2) of the folder).
    public func sync() throws(SystemError) {
        guard self.calls.fsync(self.descriptor) == 0 else {
            throw SystemError(errno: errno, action: "sync the folder", path: self.path)
        }
    }

    /// For file systems without RENAME_NOREPLACE: a second name, then the first one goes (renameat2(2)).
    private func link(_ from: String, to name: String) throws(SystemError) {
        guard linkat(self.descriptor, from, self.descriptor, name, 0) == 0 else {
            throw SystemError(errno: errno, action: "rename to", path: self.path(of: name))
        }
        try self.remove(from)
    }

    private func open(_ name: String, flags: Int32, action: String) throws(SystemError) -> OpenFile {
        let descriptor = ferry_openat(self.descriptor, name, flags, 0o600)
        guard descriptor >= 0 else {
            throw SystemError(errno: errno, action: action, path: self.path(of: name))
        }
        return OpenFile(descriptor: descriptor, path: self.path(of: name), calls: self.calls)
    }
}
