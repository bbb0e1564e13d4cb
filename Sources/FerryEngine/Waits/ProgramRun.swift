import CFerryLinux
import Dispatch
import FerryFiles
import Glibc

/// One run of a user's program: no arguments, no shell, its input in memory, its output kept, its time limited.
///
/// The program starts in `/` with an empty signal mask and no descriptors but the first three, in a session of
/// its own. At the limit, and when the task that waits for it is cancelled, it is killed with all of its group; so it
/// is when this process ends, be it by SIGKILL.
struct ProgramRun: Sendable {
    /// How a program ended.
    enum End: Sendable, Equatable {
        /// By itself, with this status.
        case exited(Int32, output: [UInt8], errors: [UInt8])
        /// By a signal that was not ours.
        case signalled(Int32, errors: [UInt8])
        /// It was killed at the limit.
        case overtime(errors: [UInt8])
        /// It was killed because it printed more than may be.
        case tooMuch
        /// It was killed because nobody waits for it any more.
        case stopped
        /// It could not be started; the error's number.
        case notStarted(Int32)
    }

    /// The program's absolute path.
    let path: String
    /// What it reads on standard input.
    let input: [UInt8]
    /// All of its environment.
    let environment: [String: String]
    /// How long it may take.
    let limit: Duration
    /// The most that it may print, in bytes.
    let outputLimit: Int

    /// The end of standard error that is kept, in bytes.
    private static let errorBytes = 4_096

    /// Runs the program, on a thread of its own, until it has ended.
    func run() async -> End {
        let stop = StopBell()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                DispatchQueue(label: "ferry.program").async {
                    continuation.resume(returning: self.work(until: stop))
                }
            }
        } onCancel: {
            stop.ring()
        }
    }

    private func work(until stop: StopBell) -> End {
        do {
            let (output, errors) = (try ProgramOutput(), try ProgramOutput())
            let warden = GroupGuard()
            let process = try self.spawn(output.writer, errors.writer)
            warden.watch(process)
            defer { warden.dismiss() }
            output.closeWriter()
            errors.closeWriter()
            return self.watch(process, output, errors, stop)
        } catch {
            return .notStarted(error.errno)
        }
    }

    private func spawn(_ output: Int32, _ errors: Int32) throws(SystemError) -> pid_t {
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(self.path), nil]
        var variables: [UnsafeMutablePointer<CChar>?] = self.environment.map { strdup("\($0)=\($1)") } + [nil]
        defer {
            for pointer in arguments + variables { free(pointer) }
        }
        var process: pid_t = 0
        let failure = self.input.withUnsafeBytes { input in
            // An empty buffer has no address; that of the arguments is as good where nothing is read.
            withUnsafeMutablePointer(to: &process) { process in
                arguments.withUnsafeMutableBufferPointer { argv in
                    variables.withUnsafeMutableBufferPointer { envp -> Int32 in
                        guard let argv = argv.baseAddress, let envp = envp.baseAddress else { return EINVAL }
                        return ferry_spawn_program(
                            self.path,
                            argv,
                            envp,
                            input.baseAddress ?? UnsafeRawPointer(argv),
                            input.count,
                            output,
                            errors,
                            process
                        )
                    }
                }
            }
        }
        guard failure == 0 else { throw SystemError(errno: failure, action: "run", path: self.path) }
        return process
    }

    /// Waits for the end of the program, of its time, or of whoever waits.
    private func watch(
        _ process: pid_t,
        _ output: ProgramOutput,
        _ errors: ProgramOutput,
        _ stop: StopBell
    ) -> End {
        let ending = ferry_pidfd(process)
        defer { if ending >= 0 { close(ending) } }
        let deadline = ContinuousClock.now + self.limit
        while true {
            var ready = [stop.descriptor, ending, output.reader, errors.reader].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            let left = (deadline - ContinuousClock.now).milliseconds
            // Without a descriptor for its end it is looked for now and then.
            _ = poll(&ready, nfds_t(ready.count), Int32(clamping: max(0, ending < 0 ? min(left, 50) : left)))
            output.read()
            errors.read()
            errors.keepLast(Self.errorBytes)
            if output.bytes.count > self.outputLimit { return self.kill(process, .tooMuch) }
            if ready[0].revents != 0 { return self.kill(process, .stopped) }
            var status: Int32 = 0
            let ended = waitpid(process, &status, WNOHANG)
            if ended == process {
                output.read()
                errors.read()
                errors.keepLast(Self.errorBytes)
                guard output.bytes.count <= self.outputLimit else { return .tooMuch }
                let signal = status & 0x7f  // wait(2): WTERMSIG, and WEXITSTATUS below
                return signal == 0
                    ? .exited(status >> 8 & 0xff, output: output.bytes, errors: errors.bytes)
                    : .signalled(signal, errors: errors.bytes)
            }
            if ended < 0, errno != EINTR { return .notStarted(errno) }
            if ContinuousClock.now >= deadline { return self.kill(process, .overtime(errors: errors.bytes)) }
        }
    }

    /// Kills a program that has not been waited for, so that its number is still its own.
    private func kill(_ process: pid_t, _ end: End) -> End {
        _ = Glibc.kill(-process, SIGKILL)  // it leads a group of its own
        while waitpid(process, nil, 0) < 0, errno == EINTR {}
        return end
    }
}

/// A pipe that a program writes into, and what has come out of it.
private final class ProgramOutput {
    /// Closed ends are -1, which poll(2) leaves out.
    private(set) var reader: Int32
    private(set) var writer: Int32
    private(set) var bytes: [UInt8] = []

    init() throws(SystemError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemError(errno: errno, action: "make", path: "a pipe") }
        // None of these can fail on descriptors just made.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        (self.reader, self.writer) = (ends[0], ends[1])
    }

    deinit {
        self.closeReader()
        self.closeWriter()
    }

    /// Takes what is there.
    func read() {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while self.reader >= 0 {
            let count = Glibc.read(self.reader, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            guard count > 0 else { return self.closeReader() }
            self.bytes += buffer[..<count]
            // More than this nobody wants, and the next look comes soon.
            if count < buffer.count || self.bytes.count > 1 << 20 { return }
        }
    }

    func keepLast(_ count: Int) {
        if self.bytes.count > count { self.bytes.removeFirst(self.bytes.count - count) }
    }

    func closeReader() {
        if self.reader >= 0 { close(self.reader) }
        self.reader = -1
    }

    func closeWriter() {
        if self.writer >= 0 { close(self.writer) }
        self.writer = -1
    }
}

/// Wakes a thread that waits in poll(2); may be rung from any thread.
private final class StopBell: Sendable {
    /// Readable once it was rung; -1 if there are no descriptors left, which never is.
    let descriptor = ferry_eventfd()

    func ring() {
        if self.descriptor >= 0 { ferry_eventfd_signal(self.descriptor) }
    }

    deinit {
        if self.descriptor >= 0 { close(self.descriptor) }
    }
}
