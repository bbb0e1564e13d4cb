import FerryTestSupport
import FoundationEssentials
import Glibc

/// A queue of its own, and the built tools that work on it.
struct CrashScope {
    let folder: TemporaryFolder
    private let command: ToolRunner
    let service: ToolRunner

    /// The queue's state folder.
    var stateFolder: String { self.folder.file("queue") }

    /// Where the jobs of a test write.
    var target: String { self.folder.file("target") }

    /// Finds whoever serves the queue.
    var probe: ServiceProbe { ServiceProbe(stateFolder: self.stateFolder) }

    /// The names in the target folder, hidden ones included.
    var targetNames: [String] {
        get throws { try self.folder.names(in: "target") }
    }

    /// The size of a download's first partial, in bytes; 0 if there is none.
    func sizeOfPartial(_ job: Int, of name: String) throws -> Int64 {
        var info = stat()
        guard stat("\(self.target)/.\(name).\(job).ferry-part", &info) == 0 else {
            guard errno == ENOENT else { throw TestSupportError("stat: error \(errno)") }
            return 0
        }
        return Int64(info.st_size)
    }

    /// Looks at a partial until it has a size: nothing tells of a write.
    func waitForPartial(_ job: Int, of name: String, size: Int64) async throws {
        let end = ContinuousClock.now + .seconds(180)
        while try self.sizeOfPartial(job, of: name) < size {
            guard ContinuousClock.now < end else {
                throw TestSupportError("the partial has \(try self.sizeOfPartial(job, of: name)) bytes")
            }
            await Task.yield()
        }
    }

    init(_ folder: TemporaryFolder) throws {
        self.folder = folder
        self.command = try ToolRunner.product("ferry", in: folder)
        self.service = try ToolRunner.product("ferryd", in: folder)
        try folder.makeFolder("target")
    }

    // MARK: Commands

    /// Runs a command to its end; it starts a service on demand if none runs.
    func ferry(_ arguments: String...) async throws -> ToolResult {
        try await self.ferry(arguments)
    }

    /// Runs a command to its end; it starts a service on demand if none runs.
    func ferry(_ arguments: [String]) async throws -> ToolResult {
        try await self.command.run(["--state-dir", self.stateFolder] + arguments)
    }

    /// Starts `ferry get --json` of one URL into the target folder.
    func startGet(_ url: String, _ options: String...) throws -> RunningTool {
        let arguments = ["--state-dir", self.stateFolder, "get", "--json", "-d", self.target]
        return try self.command.start(arguments + options + [url])
    }

    /// Queues one URL, and gives what the command has printed.
    func add(_ url: String, _ options: String...) async throws -> String {
        let arguments = ["--state-dir", self.stateFolder, "add", "-d", self.target] + options + [url]
        let result = try await self.command.run(arguments)
        guard result.status == 0 else { throw TestSupportError("ferry add: \(result.stderr)") }
        return result.stdout
    }

    /// What `ferry show --json` says of a job.
    func show(_ job: Int64) async throws -> JobView {
        let result = try await self.ferry("show", "--json", "\(job)")
        guard let view = JobView(json: result.stdout) else {
            throw TestSupportError("ferry show: \(result.stdout)\(result.stderr)")
        }
        return view
    }

    /// Asks for a job until it is as wanted: nothing tells of a change without making the job run.
    func show(_ job: Int64, until isWanted: (JobView) -> Bool) async throws -> JobView {
        let end = ContinuousClock.now + .seconds(40)
        while true {
            let view = try await self.show(job)
            if isWanted(view) { return view }
            guard ContinuousClock.now < end else { throw TestSupportError("the job stays \(view)") }
        }
    }

    /// The attempts of `ferry log --json`, the first one first.
    func attempts(of job: Int64) async throws -> [AttemptView] {
        let result = try await self.ferry("log", "--json", "\(job)")
        guard let log = try? JobView.decoder.decode(JobLog.self, from: Data(result.stdoutBytes)) else {
            throw TestSupportError("ferry log: \(result.stdout)\(result.stderr)")
        }
        return log.attempts.sorted { $0.attempt < $1.attempt }
    }

    /// The jobs of `ferry list --json`.
    func list() async throws -> [JobView] {
        let result = try await self.ferry("list", "--json")
        guard let list = try? JobView.decoder.decode(JobList.self, from: Data(result.stdoutBytes)) else {
            throw TestSupportError("ferry list: \(result.stdout)\(result.stderr)")
        }
        return list.jobs
    }

    // MARK: Services

    /// Starts a daemon that kills itself at a gap; nil lives on.
    func startDaemon(dyingAt point: String? = nil) throws -> RunningTool {
        try self.service.with(point.map { ["FERRY_CRASH_POINT": $0] } ?? [:])
            .start(["--state-dir", self.stateFolder])
    }

    /// Starts a daemon that kills itself at a gap, and waits until it serves.
    func readyDaemon(dyingAt point: String? = nil) async throws -> RunningTool {
        let daemon = try self.startDaemon(dyingAt: point)
        _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=ready") }
        return daemon
    }

    /// Starts a daemon under strace, and waits until it serves.
    ///
    /// Fast, it does not stop calls that are not traced; strace injects no signals then. Throws what strace says
    /// if it is missing or cannot trace here.
    func tracedDaemon(_ options: [String], into log: String, isFast: Bool = true) async throws -> RunningTool
    {
        let tracer = try ToolRunner.program("strace")
        // The leak checker of the address sanitizer cannot work under a tracer.
        let environment = self.service.environment.map {
            $0.merging(["ASAN_OPTIONS": "detect_leaks=0"]) { $1 }
        }
        let runner = ToolRunner(path: tracer.path, environment: environment)
        let daemon = try runner.start(
            ["-f", "-y", "-qq"] + (isFast ? ["--seccomp-bpf"] : []) + [
                "-s", "0", "-o", log, "-e", "signal=none",
            ] + options
                + ["--", self.service.path, "--state-dir", self.stateFolder]
        )
        do {
            _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=ready") }
        } catch {
            throw TestSupportError("strace cannot run ferryd here; these tests need ptrace: \(error)")
        }
        return daemon
    }
}

/// Runs a test with a queue of its own.
func withCrashScope<Result>(_ body: (CrashScope) async throws -> Result) async throws -> Result {
    try await withTemporaryFolder { folder in
        try await body(try CrashScope(folder))
    }
}

/// What the tests want to know of a job.
struct JobView: Decodable, Sendable, Equatable {
    let id: Int64
    let state: String
    let reason: String?
    let path: String?
    let attempt: Int
    let bytesDurable: Int64

    fileprivate static var decoder: JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return decoder
    }

    /// Reads the document of one job; nil if the text is none.
    init?(json: String) {
        guard let view = try? Self.decoder.decode(Self.self, from: Data(json.utf8)) else { return nil }
        self = view
    }
}

/// A line of progress that `ferry get --json` prints.
struct ProgressView: Decodable, Sendable {
    let bytesDone: Int64
    let bytesDurable: Int64

    /// Reads a line; nil if it tells something else.
    init?(line: String) {
        guard line.contains(#""type":"progress""#) else { return nil }
        guard let view = try? JobView.decoder.decode(Self.self, from: Data(line.utf8)) else { return nil }
        self = view
    }
}

/// What the log says of an attempt.
struct AttemptView: Decodable, Sendable {
    let attempt: Int
    /// How it ended, in one word; nil while it runs.
    let outcome: String?
}

private struct JobLog: Decodable {
    let attempts: [AttemptView]
}

private struct JobList: Decodable {
    let jobs: [JobView]
}
