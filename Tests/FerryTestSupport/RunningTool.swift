import Glibc
import Synchronization

/// A program that a test has started; its process group is killed when this is released.
public final class RunningTool: Sendable {
    /// One of the two streams that a program writes.
    public enum Stream: Sendable {
        /// Descriptor 1.
        case stdout
        /// Descriptor 2.
        case stderr
    }

    /// What the program has said so far and how it ended.
    struct Output: Sendable {
        var stdout: [UInt8] = []
        var stderr: [UInt8] = []
        var openStreams = 2
        var ending: Ending?

        /// Everything, once the program has ended and nobody can write any more.
        var result: ToolResult? {
            guard let ending = self.ending, self.openStreams == 0 else { return nil }
            return ToolResult(ending: ending, stdoutBytes: self.stdout, stderrBytes: self.stderr)
        }

        func text(of stream: Stream) -> String {
            String(decoding: stream == .stdout ? self.stdout : self.stderr, as: UTF8.self)
        }

        /// The lines that are complete; all of them once the program has ended.
        func lines(of stream: Stream) -> [String] {
            var lines = self.text(of: stream).split(separator: "\n", omittingEmptySubsequences: false)
            let last = lines.popLast()
            if self.result != nil, let last, !last.isEmpty { lines.append(last) }
            return lines.map(String.init)
        }
    }

    /// The process id, also the id of its process group.
    public let pid: Int32
    let output = Watched(Output())
    private let input: Mutex<Int32?>
    private let name: String

    init(command: [String], environment: [String], input: ToolRunner.Input) throws {
        let stdout = try makePipe()
        let stderr = try makePipe()
        let stdin: (read: Int32, write: Int32?)
        switch input {
        case .none:
            stdin = (makeDescriptor { open("/dev/null", O_RDONLY) }, nil)
        case .bytes, .keptOpen:
            let pipe = try makePipe()
            stdin = (pipe.read, pipe.write)
        }
        defer { for end in [stdin.read, stdout.write, stderr.write] { close(end) } }
        self.name = command.joined(separator: " ")
        do {
            self.pid = try spawn(command, environment, [stdin.read, stdout.write, stderr.write])
        } catch {
            for end in [stdout.read, stderr.read] { close(end) }
            if let end = stdin.write { close(end) }
            throw error
        }
        self.input = Mutex(stdin.write)
        try self.collect(stdout.read, .stdout)
        try self.collect(stderr.read, .stderr)
        try self.reap()
        if case .bytes(let bytes) = input, let end = stdin.write {
            self.input.withLock { $0 = nil }
            try startThread {
                // A program need not read all of its input.
                try? bytes.withUnsafeBytes { try writeAll(end, $0) }
                close(end)
            }
        }
    }

    deinit {
        self.closeInput()
        self.kill()
    }

    /// Closes the program's standard input; repeating it does nothing.
    public func closeInput() {
        self.input.withLock { descriptor in
            if let end = descriptor { close(end) }
            descriptor = nil
        }
    }

    /// Sends a signal to the program alone; nothing happens if it has ended.
    public func kill(_ signal: Int32) {
        if self.output.value.ending == nil { _ = Glibc.kill(self.pid, signal) }
    }

    /// Kills the program's whole process group, leftovers included; repeating it does nothing.
    public func kill() {
        _ = Glibc.kill(-self.pid, SIGKILL)
    }

    /// What the program has written so far.
    public func text(of stream: Stream) -> String {
        self.output.value.text(of: stream)
    }

    /// Whether the program has ended.
    public var hasEnded: Bool {
        self.output.value.ending != nil
    }

    /// Waits for a complete line that fulfils a condition, and returns the first such.
    ///
    /// - Throws: ``TestSupportError`` with all output if the program ends before, or the time is over.
    public func waitForLine(
        in stream: Stream = .stdout,
        timeout: Duration = .seconds(120),
        matching condition: @escaping @Sendable (String) -> Bool = { _ in true }
    ) async throws -> String {
        let line = try await self.waiting {
            try await self.output.wait(for: "a line of \(self.name)", timeout: timeout) {
                output -> String?? in
                if let line = output.lines(of: stream).first(where: condition) { return .some(line) }
                return output.result == nil ? nil : .some(nil)
            }
        }
        guard let line else { throw self.failure("ended before the line came") }
        return line
    }

    /// Waits for the end of the program and of its output.
    ///
    /// - Throws: ``TestSupportError`` when the time is over; the process group is killed then.
    public func waitForExit(timeout: Duration = .seconds(180)) async throws -> ToolResult {
        do {
            return try await self.waiting {
                try await self.output.wait(for: "the end of \(self.name)", timeout: timeout) { $0.result }
            }
        } catch {
            self.kill()
            throw error
        }
    }

    private func waiting<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as TestSupportError {
            throw self.failure(error.description)
        }
    }

    private func failure(_ reason: String) -> TestSupportError {
        let output = self.output.value
        let state = output.ending.map { "ended: \($0)" } ?? "still runs"
        return TestSupportError(
            """
            \(self.name): \(reason) (\(state))
            stdout: \(output.text(of: .stdout))
            stderr: \(output.text(of: .stderr))
            """
        )
    }

    /// Reads a stream to its end on a thread, so that a full pipe never stops the program.
    private func collect(_ descriptor: Int32, _ stream: Stream) throws {
        let output = self.output
        let isStdout = stream == .stdout
        try startThread {
            defer { close(descriptor) }
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = read(descriptor, &buffer, buffer.count)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { break }
                let bytes = Array(buffer[..<count])
                output.update { state in
                    if isStdout { state.stdout += bytes } else { state.stderr += bytes }
                }
            }
            output.update { $0.openStreams -= 1 }
        }
    }

    private func reap() throws {
        let output = self.output
        let pid = self.pid
        try startThread {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
            let signal = status & 0x7f
            let ending: Ending = signal == 0 ? .exited((status >> 8) & 0xff) : .signalled(signal)
            output.update { $0.ending = ending }
        }
    }
}

/// Starts a program with these descriptors as 0, 1 and 2, in a process group of its own.
private func spawn(_ command: [String], _ environment: [String], _ descriptors: [Int32]) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawnattr_init(&attributes)
    defer {
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
    }
    for (target, descriptor) in descriptors.enumerated() {
        posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(target))
    }
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    sigdelset(&all, SIGKILL)
    sigdelset(&all, SIGSTOP)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
        &attributes,
        Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)
    )
    var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
    var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
    defer { for pointer in arguments + variables { free(pointer) } }
    var pid: pid_t = 0
    let error = descriptorLock.withLock { _ in
        posix_spawn(&pid, command[0], &actions, &attributes, &arguments, &variables)
    }
    guard error == 0 else { throw TestSupportError.system("start \(command[0])", error) }
    return pid
}
