import Glibc

/// Runs a program with a known environment and time limit.
public struct ToolRunner: Sendable {
    /// What the program reads.
    public enum Input: Sendable {
        /// `/dev/null`.
        case none
        /// These bytes.
        case bytes([UInt8])
        /// A pipe that stays open until ``RunningTool/closeInput()`` or the end of the test process.
        case keptOpen

        /// A text.
        public static func text(_ text: String) -> Input {
            .bytes(Array(text.utf8))
        }
    }

    /// The program's absolute path.
    public let path: String
    /// The whole environment; nil passes on the test's own.
    public var environment: [String: String]?
    /// Where the program starts; nil is the test's own folder.
    public var workingFolder: String?

    /// Names a program.
    public init(path: String, environment: [String: String]? = nil, workingFolder: String? = nil) {
        self.path = path
        self.environment = environment
        self.workingFolder = workingFolder
    }

    /// Names a built product, such as `ferry`, found beside the test binary.
    ///
    /// - Throws: ``TestSupportError`` if it was not built.
    public static func product(_ name: String, in folder: TemporaryFolder? = nil) throws -> ToolRunner {
        let path = "\(try Fixtures.productFolder())/\(name)"
        guard access(path, X_OK) == 0 else { throw TestSupportError("\(path) is missing: swift build") }
        return ToolRunner(path: path, environment: folder?.environment, workingFolder: folder?.path)
    }

    /// Names a program of the machine by its name.
    ///
    /// - Throws: ``TestSupportError`` naming the package to install.
    public static func program(_ name: String, package: String? = nil) throws -> ToolRunner {
        ToolRunner(path: try findProgram(name, package: package ?? name))
    }

    /// The same program with more variables.
    public func with(_ variables: [String: String]) -> ToolRunner {
        var copy = self
        copy.environment = (self.environment ?? Self.ownEnvironment).merging(variables) { $1 }
        return copy
    }

    /// Runs the program to its end.
    ///
    /// - Throws: ``TestSupportError`` if it cannot be started, or if after the time limit it runs or somebody
    ///   holds its output open; its process group is killed then.
    public func run(
        _ arguments: [String],
        input: Input = .none,
        timeLimit: Duration = .seconds(180)
    ) async throws -> ToolResult {
        let running = try self.start(arguments, input: input)
        return try await running.waitForExit(timeout: timeLimit)
    }

    /// Starts the program in a process group of its own.
    public func start(_ arguments: [String], input: Input = .none) throws -> RunningTool {
        var command = [self.path] + arguments
        if let workingFolder { command = ["/usr/bin/env", "-C", workingFolder] + command }
        let environment = (self.environment ?? Self.ownEnvironment).map { "\($0)=\($1)" }
        return try RunningTool(command: command, environment: environment.sorted(), input: input)
    }

    /// Runs the program and throws unless it succeeds; blocks the calling thread.
    @discardableResult
    func runBlocking(_ arguments: [String], timeLimit: Duration = .seconds(180)) throws -> ToolResult {
        let running = try self.start(arguments)
        let result = running.output.waitBlocking(timeout: timeLimit) { $0.result }
        guard let result, result.ending == .exited(0) else {
            running.kill()
            throw TestSupportError(
                "\(self.path) \(arguments) failed: \(running.output.value.text(of: .stderr))"
            )
        }
        return result
    }

    private static var ownEnvironment: [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let line = entry.pointee {
            let parts = String(cString: line).split(
                separator: "=",
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
            entry += 1
        }
        return variables
    }
}

/// How a program ended.
public enum Ending: Sendable, Equatable {
    /// With this exit status.
    case exited(Int32)
    /// By this signal.
    case signalled(Int32)
}

/// What a program that ended has left.
public struct ToolResult: Sendable {
    /// How it ended.
    public let ending: Ending
    /// Its standard output.
    public let stdoutBytes: [UInt8]
    /// Its standard error.
    public let stderrBytes: [UInt8]

    /// The exit status; nil if a signal ended it.
    public var status: Int32? {
        if case .exited(let status) = self.ending { status } else { nil }
    }

    /// The standard output as text.
    public var stdout: String {
        String(decoding: self.stdoutBytes, as: UTF8.self)
    }

    /// The standard error as text.
    public var stderr: String {
        String(decoding: self.stderrBytes, as: UTF8.self)
    }
}
