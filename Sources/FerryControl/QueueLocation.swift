public import FerryCore
import Glibc

/// Which queue a command or a service means: its state folder and its socket.
public struct QueueLocation: Sendable, Equatable {
    /// The folder of the database, the lock and the log; absolute.
    public let stateDirectory: String
    /// The control socket; absolute, short enough for a socket.
    public let socketPath: String
    /// Whether it is the machine's queue, whose socket is for a group too.
    public let isSystem: Bool

    /// Names a place.
    ///
    /// - Throws: `usage` if the socket's path is too long.
    public init(stateDirectory: String, socketPath: String, isSystem: Bool = false) throws(FerryError) {
        let length = socketPath.utf8.count
        guard length <= UnixSocket.maximumPathLength else {
            throw .usage(
                "the path of the control socket, \(socketPath), has \(length) bytes, and a socket's path can have "
                    + "\(UnixSocket.maximumPathLength) at most; choose a state folder with a shorter path "
                    + "(--state-dir or FERRY_STATE_DIR)"
            )
        }
        self.stateDirectory = stateDirectory
        self.socketPath = socketPath
        self.isSystem = isSystem
    }

    /// Finds the queue that options and environment name.
    ///
    /// The state folder is `--state-dir`, else `FERRY_STATE_DIR`, else `$XDG_STATE_HOME/ferry`, else
    /// `~/.local/state/ferry`; a folder that was named has its socket inside, else the socket is in
    /// `$XDG_RUNTIME_DIR/ferry` if there is such a variable. Without it, as in a job of cron, a service that a
    /// session or the user's systemd has started is still found by its socket. Empty variables count as not set, and so do relative
    /// XDG ones (XDG Base Directory Specification).
    ///
    /// - Parameters:
    ///   - stateDirectory: `--state-dir`; made absolute against `currentDirectory`.
    ///   - system: `--system`; wins over the environment.
    ///   - environment: The variables of the process.
    ///   - currentDirectory: Absolute.
    ///   - runtimeDirectory: Looked at where there is no `XDG_RUNTIME_DIR`; nil is `/run/user` (pam_systemd(8)).
    /// - Returns: The place; nothing was made there.
    /// - Throws: `usage` if both options are given, a value is empty, no home is known, or the socket's path is
    ///   too long.
    public static func resolve(
        stateDirectory: String?,
        system: Bool,
        environment: [String: String],
        currentDirectory: String,
        runtimeDirectory: String? = nil
    ) throws(FerryError) -> QueueLocation {
        if system {
            guard stateDirectory == nil else { throw .usage("--system and --state-dir exclude each other") }
            return try QueueLocation(
                stateDirectory: "/var/lib/ferry",
                socketPath: "/run/ferry/control.sock",
                isSystem: true
            )
        }
        if stateDirectory == "" { throw .usage("--state-dir needs the path of a folder") }
        if let named = stateDirectory ?? self.value("FERRY_STATE_DIR", environment) {
            let folder = self.clean(named.hasPrefix("/") ? named : currentDirectory + "/" + named)
            return try QueueLocation(stateDirectory: folder, socketPath: self.join(folder, "control.sock"))
        }
        let folder: String
        if let state = self.absolute("XDG_STATE_HOME", environment) {
            folder = self.join(self.clean(state), "ferry")
        } else {
            folder = self.join(self.clean(try self.home(environment)), ".local/state/ferry")
        }
        guard let runtime = self.absolute("XDG_RUNTIME_DIR", environment) else {
            let usual = self.join(runtimeDirectory ?? "/run/user/\(getuid())", "ferry/control.sock")
            if self.isOwnSocket(usual) { return try QueueLocation(stateDirectory: folder, socketPath: usual) }
            return try QueueLocation(stateDirectory: folder, socketPath: self.join(folder, "control.sock"))
        }
        let socket = self.join(self.clean(runtime), "ferry/control.sock")
        return try QueueLocation(stateDirectory: folder, socketPath: socket)
    }

    private static func isOwnSocket(_ path: String) -> Bool {
        var info = stat()
        return lstat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFSOCK && info.st_uid == getuid()
    }

    private static func value(_ name: String, _ environment: [String: String]) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func absolute(_ name: String, _ environment: [String: String]) -> String? {
        self.value(name, environment).flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    private static func home(_ environment: [String: String]) throws(FerryError) -> String {
        if let home = self.absolute("HOME", environment) { return home }
        if let entry = getpwuid(getuid()), let home = entry.pointee.pw_dir {
            let path = String(cString: home)
            if path.hasPrefix("/") { return path }
        }
        throw .usage(
            "there is no home folder to keep the queue in; set HOME or FERRY_STATE_DIR, or use --state-dir"
        )
    }

    /// Without doubled and trailing slashes and `.`; `..` stays, since a link may stand before it.
    private static func clean(_ path: String) -> String {
        "/" + path.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }

    private static func join(_ folder: String, _ name: String) -> String {
        folder == "/" ? "/" + name : folder + "/" + name
    }
}
