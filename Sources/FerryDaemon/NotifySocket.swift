import Glibc

/// Tells systemd how the service does: datagrams to `NOTIFY_SOCKET` (sd_notify(3)).
///
/// Nothing is told where there is no such variable, and a message that cannot be sent is dropped: the service
/// does not depend on who watches it.
final class NotifySocket: Sendable {
    private let descriptor: Int32
    private let address: [UInt8]

    /// Takes the value of `NOTIFY_SOCKET`: an absolute path, or `@` and an abstract name; nil tells nobody.
    init(_ name: String?) {
        guard let name, let address = Self.address(name) else {
            self.descriptor = -1
            self.address = []
            return
        }
        self.descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        self.address = address
    }

    deinit {
        if self.descriptor >= 0 { close(self.descriptor) }
    }

    /// Whether anybody is told.
    var isUsed: Bool { self.descriptor >= 0 }

    /// Sends a message; from any thread.
    ///
    /// Messages that matter wait for a reader that is behind; others (`STATUS`, `WATCHDOG`) are dropped then.
    func send(_ message: NotifyMessage) {
        guard self.descriptor >= 0 else { return }
        let flags = Int32(MSG_NOSIGNAL) | (message.mayBeLost ? Int32(MSG_DONTWAIT) : 0)
        let text = Array(message.text.utf8)
        self.address.withUnsafeBytes { address in
            guard let pointer = address.baseAddress else { return }
            // A failure cannot be told to the one who does not listen.
            _ = sendto(
                self.descriptor,
                text,
                text.count,
                flags,
                pointer.assumingMemoryBound(to: sockaddr.self),
                socklen_t(address.count)
            )
        }
    }

    /// The bytes of a `sockaddr_un` (unix(7)); an abstract name begins with NUL and has no end but its length.
    static func address(_ name: String) -> [UInt8]? {
        guard name.hasPrefix("/") || name.hasPrefix("@"), name.utf8.count > 1 else { return nil }
        var path = Array(name.utf8)
        guard path.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else { return nil }
        if path[0] == UInt8(ascii: "@") { path[0] = 0 } else { path.append(0) }
        return withUnsafeBytes(of: sa_family_t(AF_UNIX)) { Array($0) } + path
    }
}

/// What a service tells its manager (sd_notify(3)).
enum NotifyMessage: Sendable, Equatable {
    /// The database is open, the socket listens, signals are in place.
    case ready(status: String)
    /// One line about what it does.
    case status(String)
    /// The configuration is being read again; ``ready(status:)`` follows. Microseconds of CLOCK_MONOTONIC.
    case reloading(atMicroseconds: Int64)
    /// It stops.
    case stopping
    /// It lives.
    case watchdog
    /// The present step, start or stop, takes longer: up to this from now on.
    case extendTimeout(Duration, status: String)

    /// `KEY=value` lines.
    var text: String {
        switch self {
        case .ready(let status): "READY=1\nSTATUS=\(status)"
        case .status(let status): "STATUS=\(status)"
        case .reloading(let time): "RELOADING=1\nMONOTONIC_USEC=\(time)"
        case .stopping: "STOPPING=1\nSTATUS=stopping"
        case .watchdog: "WATCHDOG=1"
        case .extendTimeout(let time, let status):
            "EXTEND_TIMEOUT_USEC=\(time.components.seconds * 1_000_000)\nSTATUS=\(status)"
        }
    }

    /// Whether the next one of its kind says as much.
    var mayBeLost: Bool {
        switch self {
        case .status, .watchdog: true
        case .ready, .reloading, .stopping, .extendTimeout: false
        }
    }
}

/// What systemd has put into the environment of this service, and of no other process.
struct ManagerVariables: Sendable, Equatable {
    /// Where to tell how it goes.
    var notifySocket: String?
    /// How often the watchdog has to be fed at least; nil if there is none, or it watches another process.
    var watchdog: Duration?
    /// Whether standard error is the journal's stream (systemd.exec(5), `JOURNAL_STREAM`).
    var isJournal: Bool

    /// The names that children must not inherit.
    static let names = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]

    /// Reads the variables.
    ///
    /// `standardError` is device and inode of descriptor 2. `WATCHDOG_PID` must be our number, if it is there
    /// (sd_watchdog_enabled(3)).
    init(_ environment: [String: String], pid: Int32, standardError: (device: UInt64, inode: UInt64)?) {
        self.notifySocket = environment["NOTIFY_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
        let isOurs = environment["WATCHDOG_PID"].map { Int32($0) == pid } ?? true
        if isOurs, let time = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), time > 0 {
            self.watchdog = .microseconds(time)
        }
        self.isJournal =
            standardError.map { environment["JOURNAL_STREAM"] == "\($0.device):\($0.inode)" } ?? false
    }

    /// Those of this process, which are then taken out of its environment.
    static func take(_ environment: [String: String]) -> ManagerVariables {
        var info = stat()
        let error = fstat(2, &info) == 0 ? (device: UInt64(info.st_dev), inode: UInt64(info.st_ino)) : nil
        for name in Self.names { unsetenv(name) }
        return ManagerVariables(environment, pid: getpid(), standardError: error)
    }
}
