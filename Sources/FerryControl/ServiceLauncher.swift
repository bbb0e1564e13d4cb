import CFerryLinux
public import FerryCore
import Glibc
import Synchronization

/// Starts an on-demand service and waits until it is ready.
///
/// The program is found by the place of the running one and never by PATH, so that a command and its service
/// are of one version.
public struct ServiceLauncher: Sendable, Equatable {
    /// How a start ended, short of an error.
    public enum Outcome: Sendable, Equatable {
        /// The service listens.
        case ready
        /// Another service owns the queue; it listens, or will soon.
        case busy
    }

    /// The paths tried, in order.
    public let candidates: [String]
    /// How long a starting service may be silent.
    let patience: Duration

    /// The service that belongs to the running program.
    public static var standard: ServiceLauncher {
        ServiceLauncher(candidates: self.candidates(executable: self.runningProgram ?? "/usr/bin/ferry"))
    }

    /// Looks for the service at these absolute paths.
    public init(candidates: [String]) {
        self.init(candidates: candidates, patience: .seconds(10))
    }

    init(candidates: [String], patience: Duration) {
        self.candidates = candidates
        self.patience = patience
    }

    /// Where the service of a program lies: beside it, else in `../libexec/ferry`.
    public static func candidates(executable: String) -> [String] {
        let folder = executable.split(separator: "/").dropLast().map(String.init)
        func path(_ parts: [String]) -> String { "/" + parts.joined(separator: "/") }
        return [path(folder + ["ferryd"]), path(folder.dropLast() + ["libexec", "ferry", "ferryd"])]
    }

    /// Starts `ferryd --on-demand` for a queue and reads its report.
    ///
    /// - Throws: `no-service` if the program is missing, cannot be run, ends or is silent; else the error that
    ///   the service reports, with its exit status.
    public func start(_ location: QueueLocation) throws(FerryError) -> Outcome {
        guard let program = self.candidates.first(where: { access($0, X_OK) == 0 }) else {
            throw .noService(
                "the service's program is missing; looked for " + self.candidates.joined(separator: " and ")
            )
        }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw .noService("cannot make a pipe to start \(program): \(SystemFailure.words(errno))")
        }
        defer { close(ends[0]) }
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)  // cannot fail on a descriptor just made
        _ = fcntl(ends[1], F_SETFD, FD_CLOEXEC)
        let failure = Self.spawn(program, location, status: ends[1])
        close(ends[1])
        guard failure == 0 else {
            throw .noService("cannot run \(program): \(SystemFailure.words(failure))")
        }
        return try self.report(from: ends[0], location)
    }

    /// Reads the report; its end without a line means that the service died.
    private func report(from status: Int32, _ location: QueueLocation) throws(FerryError) -> Outcome {
        let log = "see \(location.stateDirectory)/ferryd.log"
        let deadline = ContinuousClock.now + self.patience
        var text: [UInt8] = []
        while text.last != UInt8(ascii: "\n") {
            guard UnixSocket.wait(status, for: POLLIN, until: deadline) else {
                throw .noService("ferryd was not ready within \(self.patience); \(log)")
            }
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = read(status, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            text += buffer[..<count]
        }
        Self.reap()
        switch try? ControlJSON.decode(StartupReport.self, from: text) {
        case .ready: return .ready
        case .failed(let error) where error.code == .busy: return .busy
        case .failed(let error): throw error
        case nil: throw .noService("ferryd ended before it was ready; \(log)")
        }
    }

    private static func spawn(_ program: String, _ location: QueueLocation, status: Int32) -> Int32 {
        let arguments = [
            "ferryd", "--on-demand", "--status-fd", "3", "--state-dir", location.stateDirectory, "--socket",
            location.socketPath,
        ]
        var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        pointers.append(nil)
        var process: pid_t = 0
        let failure = ferry_spawn_service(program, pointers, status, &process)
        if failure == 0 { self.started.withLock { $0.append(process) } }
        return failure
    }

    /// Services that this process started and that were not seen to end.
    private static let started = Mutex<[pid_t]>([])

    /// Takes leave of those that have ended, which would stay zombies as long as this process lives.
    static func reap() {
        self.started.withLock { started in started.removeAll { waitpid($0, nil, WNOHANG) != 0 } }
    }

    private static var runningProgram: String? {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

extension FerryError {
    /// The service cannot be reached, started, or is silent.
    static func noService(_ message: String) -> FerryError {
        FerryError(.noService, message, exitStatus: .noService)
    }
}
