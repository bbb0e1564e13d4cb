import FerryControl
import FerryCore
import FerryFiles
import FerryStore
import Glibc

extension StateCheck {
    /// Looks at owners and modes of the state folder, what is in it, and the socket.
    mutating func checkPermissions() throws {
        let before = self.findings.count
        try self.checkMode(self.folder, allowed: self.location.isSystem ? 0o750 : 0o700)
        let own = ["board", "ferryd.log", "spool"]
        for name in (try? Folder.names(in: self.folder)) ?? []
        where own.contains(name) || name.hasPrefix("jobs.db") {
            try self.checkMode("\(self.folder)/\(name)", allowed: name == "spool" ? 0o700 : 0o600)
        }
        try self.checkMode(self.location.socketPath, allowed: self.location.isSystem ? 0o660 : 0o600)
        if self.findings.count == before { self.add("permissions", .ok, "nobody else can read the queue") }
    }

    /// Looks at one file; one that is not there is fine.
    private mutating func checkMode(_ path: String, allowed: mode_t) throws {
        var info = stat()
        guard lstat(path, &info) == 0 else { return }
        let kind = info.st_mode & S_IFMT
        guard kind != S_IFLNK else {
            self.add("permissions", .note, "\(path) is a symbolic link")
            return
        }
        guard info.st_uid == geteuid() else {
            self.add(
                "permissions",
                .problem,
                "\(path) belongs to the user with number \(info.st_uid)",
                advice: "only its owner can use this queue"
            )
            return
        }
        let mode = info.st_mode & 0o777
        guard mode & ~allowed != 0 else { return }
        try self.add(
            "permissions",
            "\(path) has mode \(Self.octal(mode)), and others must have no part in it",
            repaired: "\(path) has mode \(Self.octal(mode & allowed)) now, no longer \(Self.octal(mode))",
            by: {
                guard chmod(path, mode & allowed) == 0 else {
                    throw SystemError(errno: errno, action: "set the mode of", path: path)
                }
            }
        )
    }

    private static func octal(_ mode: mode_t) -> String {
        "0" + String(mode, radix: 8)
    }

    /// Looks at the board of running transfers, which only has to be readable: it is made anew at each start.
    mutating func checkBoard() throws {
        let path = "\(self.folder)/board"
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            guard errno != ENOENT else { return }
            self.add(
                "board",
                .problem,
                "\(path) cannot be read: \(SystemError.text(errno))",
                advice: "without it a crash costs the bytes that were not synced"
            )
            return
        }
        defer { close(descriptor) }
        var magic = [UInt8](repeating: 0, count: 7)
        guard read(descriptor, &magic, magic.count) == magic.count, magic.elementsEqual("FYBOARD".utf8) else {
            self.add("board", .note, "\(path) holds nothing usable; the next service makes it anew")
            return
        }
        self.add("board", .ok, "readable")
    }

    /// Looks whether the socket's path is a leftover; the caller owns the queue, so nobody may be listening.
    mutating func checkSocket() {
        let path = self.location.socketPath
        var info = stat()
        guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFSOCK else { return }
        guard self.repair else {
            self.add("socket", .note, "\(path) is left of a service that ended; the next one replaces it")
            return
        }
        unlink(path)  // the next service does the same
        self.findings.append(
            Finding("socket", .ok, "\(path), left of a service, was removed", repaired: true)
        )
    }
}
