import CFerryLinux
public import FerryCore
import Glibc

extension ServiceClient {
    /// What to do where no service listens.
    public enum Start: Sendable {
        /// Start one on demand, on behalf of a command that error messages name.
        case ifNeeded(command: String)
        /// Fail.
        case never
    }

    /// Connects to the service of a queue and exchanges greetings.
    ///
    /// A service that is on its way out is waited for and followed by the next one.
    ///
    /// - Parameters:
    ///   - location: The queue.
    ///   - start: What to do where no service listens; the machine's service is never started from here.
    ///   - launcher: How to start one.
    /// - Returns: A connection that is ready for requests.
    /// - Throws: `no-service` if none is reached within 10 s, or 60 s while one has the queue, `version` if it
    ///   speaks another protocol, and what a service that could not start reports.
    public static func connect(
        _ location: QueueLocation,
        start: Start,
        launcher: ServiceLauncher = .standard
    ) throws(FerryError) -> ServiceClient {
        try Connector(location: location, start: start, launcher: launcher, patience: .seconds(10)).connect()
    }
}

extension ServiceClient {
    /// Connects to the service of a queue if one listens; never starts one.
    ///
    /// - Returns: A connection that is ready for requests; nil if there is no service.
    /// - Throws: What ``connect(_:start:launcher:)`` throws otherwise.
    public static func connectIfThere(_ location: QueueLocation) throws(FerryError) -> ServiceClient? {
        let connector = Connector(
            location: location,
            start: .never,
            launcher: .standard,
            patience: .seconds(10)
        )
        return try connector.connectIfThere()
    }
}

/// The loop that ``ServiceClient/connect(_:start:launcher:)`` runs.
struct Connector {
    let location: QueueLocation
    let start: ServiceClient.Start
    let launcher: ServiceLauncher
    /// How long to wait for a service in all, and for its greeting.
    let patience: Duration
    /// Whom the greeting names.
    var protocolVersion = controlProtocolVersion

    /// How one try to connect ended, short of an error.
    private enum Attempt {
        case connected(ServiceClient)
        /// Nobody listens.
        case absent
        /// Somebody listens who does not greet: it stops, or its queue is full.
        case leaving
    }

    /// One try; nobody there, or somebody who leaves, is nil.
    func connectIfThere() throws(FerryError) -> ServiceClient? {
        if case .connected(let client) = try self.attempt() { return client }
        return nil
    }

    func connect() throws(FerryError) -> ServiceClient {
        var deadline = ContinuousClock.now + self.patience
        var pause = Duration.milliseconds(2)
        var starts = 0
        var isOwned = false
        while true {
            switch try self.attempt() {
            case .connected(let client):
                return client
            case .leaving:
                break
            case .absent:
                guard case .ifNeeded(let command) = self.start, !self.location.isSystem else {
                    throw self.absence
                }
                guard starts < 5 else {
                    throw .noService("the service started for \(command) ends again at once; see \(self.log)")
                }
                guard try self.launcher.start(self.location) == .ready else {
                    // Somebody has the queue and does not listen yet: a large database takes its time to open.
                    if !isOwned { deadline = .now + self.patience * Self.patienceWithOwner }
                    isOwned = true
                    break
                }
                isOwned = false
                starts += 1
                deadline = .now + self.patience
                continue
            }
            guard ContinuousClock.now < deadline else {
                throw .noService(
                    "the service at \(self.location.socketPath) cannot be reached; see \(self.log)"
                )
            }
            _ = poll(nil, 0, Int32(pause / .milliseconds(1)))
            pause = min(pause * 2, .milliseconds(isOwned ? 400 : 100))
        }
    }

    /// How many times the patience a service is waited for that has the queue and does not listen.
    private static let patienceWithOwner = 6

    private var log: String { "\(self.location.stateDirectory)/ferryd.log" }

    private var absence: FerryError {
        if self.location.isSystem {
            return .noService(
                "the machine's service is not running; 'systemctl start ferryd' starts it, and "
                    + "'ferry service install --system' installs it"
            )
        }
        return .noService("no service is running for the queue in \(self.location.stateDirectory)")
    }

    private func attempt() throws(FerryError) -> Attempt {
        let descriptor = UnixSocket.make()
        guard descriptor >= 0 else { throw .noService("cannot make a socket: \(SystemFailure.words(errno))") }
        var isKept = false
        defer { if !isKept { close(descriptor) } }
        switch UnixSocket.connect(descriptor, to: self.location.socketPath) {
        case 0: break
        case ENOENT, ECONNREFUSED: return .absent
        case EAGAIN: return .leaving
        case EACCES where self.location.isSystem:
            throw .noService(
                "the machine's queue is for root and the members of group ferry; as root, 'usermod -aG ferry USER' "
                    + "makes one, who then has to log in anew"
            )
        case let number:
            let words = SystemFailure.words(number)
            throw .noService("cannot connect to the service at \(self.location.socketPath): \(words)")
        }
        try self.checkPeer(descriptor)
        try self.greet(descriptor)
        var input = LineBuffer(limit: nil)
        guard let line = try self.firstLine(descriptor, &input) else { return .leaving }
        if let error = line.error?.error {
            if error.code == .stopping { return .leaving }
            throw error
        }
        guard let hello = line.hello else {
            throw .noService("\(self.location.socketPath) is not a Ferry service")
        }
        try self.check(hello)
        isKept = true
        return .connected(
            ServiceClient(descriptor: descriptor, hello: hello, input: input, patience: self.patience)
        )
    }

    /// A request can hold secrets, so the service must be ours or root's; the machine's is guarded by its folder.
    private func checkPeer(_ descriptor: Int32) throws(FerryError) {
        var peer: (pid: pid_t, uid: uid_t, gid: gid_t) = (0, 0, 0)
        guard !self.location.isSystem, getuid() != 0,
            ferry_peer_credentials(descriptor, &peer.pid, &peer.uid, &peer.gid) == 0
        else { return }
        guard peer.uid == getuid() || peer.uid == 0 else {
            throw .noService(
                "the service at \(self.location.socketPath) belongs to another user (\(peer.uid))"
            )
        }
    }

    private func greet(_ descriptor: Int32) throws(FerryError) {
        let hello = Hello(protocolVersion: self.protocolVersion, version: ferryVersion, pid: getpid())
        guard let line = try? ControlJSON.encode(hello) + [UInt8(ascii: "\n")] else {
            throw .noService("the greeting cannot be written as JSON")
        }
        // A failure here means that the service has gone; reading what it said tells more. One line always fits
        // the empty buffer of a new socket.
        _ = UnixSocket.send(descriptor, line[...])
    }

    /// The service's first line, nil if it closes instead.
    private func firstLine(_ descriptor: Int32, _ input: inout LineBuffer) throws(FerryError) -> ServiceLine?
    {
        let deadline = ContinuousClock.now + self.patience
        while true {
            if case .line(let bytes) = input.next() {
                if let line = try? ControlJSON.decode(ServiceLine.self, from: bytes) { return line }
                throw .noService("\(self.location.socketPath) is not a Ferry service")
            }
            guard UnixSocket.wait(descriptor, for: POLLIN, until: deadline) else {
                throw .noService("the service at \(self.location.socketPath) does not answer")
            }
            switch UnixSocket.receive(descriptor, into: { input.append($0) }) {
            case .success(0): return nil
            case .success: continue
            case .failure(let failure) where failure.isWouldBlock: continue
            case .failure: return nil
            }
        }
    }

    private func check(_ hello: Hello) throws(FerryError) {
        guard hello.protocolVersion == self.protocolVersion else {
            throw FerryError.versions(
                service: hello,
                command: Hello(protocolVersion: self.protocolVersion, version: ferryVersion, pid: getpid())
            )
        }
        guard let theirs = hello.stateDir, Self.differ(theirs, self.location.stateDirectory) else { return }
        throw .noService(
            "the service at \(self.location.socketPath) keeps the queue in \(theirs), not in "
                + "\(self.location.stateDirectory); choose one with --state-dir"
        )
    }

    /// Whether two paths are known to name different folders.
    private static func differ(_ left: String, _ right: String) -> Bool {
        var (one, other) = (stat(), stat())
        guard left != right, stat(left, &one) == 0 else { return false }
        return stat(right, &other) != 0 || one.st_dev != other.st_dev || one.st_ino != other.st_ino
    }
}

extension FerryError {
    /// Service and command do not speak the same protocol.
    static func versions(service: Hello, command: Hello) -> FerryError {
        FerryError(
            .version,
            "the running service is Ferry \(service.version) (protocol \(service.protocolVersion)) and this command "
                + "is Ferry \(command.version) (protocol \(command.protocolVersion)); stop the service "
                + "(process \(service.pid)) or use the command that belongs to it",
            exitStatus: .versionMismatch
        )
    }
}
