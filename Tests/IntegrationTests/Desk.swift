import FerryTestSupport
import Glibc
import Testing

/// A user's place of work: the built tools, a queue of its own and a folder for files.
struct Desk: Sendable {
    /// The test's folder; commands start in it.
    let folder: TemporaryFolder
    /// The queue's state folder.
    let stateFolder: String
    /// The tool `ferry` with the environment of the folder.
    var tool: ToolRunner

    init(_ folder: TemporaryFolder) throws {
        self.folder = folder
        self.stateFolder = folder.file("queue")
        // Back-off is short, so that a second try costs no test its time.
        self.tool = try ToolRunner.product("ferry", in: folder).with(["FERRY_RETRY_BASE": "20ms"])
    }

    /// The queue's service.
    var service: ServiceProbe { ServiceProbe(stateFolder: self.stateFolder) }

    /// The arguments of a command on the desk's queue.
    func arguments(_ arguments: [String]) -> [String] {
        guard let name = arguments.first else { return [] }
        return [name, "--state-dir", self.stateFolder] + arguments.dropFirst()
    }

    /// Runs a command to its end.
    func ferry(_ arguments: String...) async throws -> ToolResult {
        try await self.ferry(arguments)
    }

    /// Runs a command to its end.
    func ferry(_ arguments: [String]) async throws -> ToolResult {
        try await self.tool.run(self.arguments(arguments))
    }

    /// Starts a command.
    func start(_ arguments: String...) throws -> RunningTool {
        try self.tool.start(self.arguments(arguments))
    }

    /// Runs a command that must succeed, and gives what it prints.
    @discardableResult
    func success(
        _ arguments: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> String {
        let result = try await self.ferry(arguments)
        #expect(result.status == 0, "\(arguments): \(result.stderr)", sourceLocation: sourceLocation)
        return result.stdout
    }

    /// The one document that a command prints with `--json`.
    func json(_ arguments: String...) async throws -> JSON {
        let result = try await self.ferry(arguments + ["--json"])
        return try JSON(line: result.stdout)
    }

    /// A job as `show --json` tells it.
    func job(_ id: Int = 1) async throws -> JSON {
        try await self.json("show", "\(id)")
    }

    /// Asks for a job until it fulfils a condition.
    func job(_ id: Int = 1, until condition: (JSON) -> Bool) async throws -> JSON {
        let end = ContinuousClock.now + .seconds(90)
        while true {
            let shown = try await self.ferry("show", "\(id)", "--json")
            if shown.status == 0 {
                let job = try JSON(line: shown.stdout)
                if condition(job) { return job }
            }
            guard ContinuousClock.now < end else {
                throw TestSupportError("job \(id) does not come to be as it should: \(shown)")
            }
        }
    }

    /// Runs a shell script in which `$ferry` is the tool and `$queue` its state folder.
    func shell(_ script: String, _ arguments: String...) async throws -> ToolResult {
        var shell = ToolRunner(path: "/bin/bash", environment: self.tool.environment)
        shell.workingFolder = self.folder.path
        return try await shell.with(["ferry": self.tool.path, "queue": self.stateFolder])
            .run(["-c", script, "test"] + arguments)
    }

    /// Ends the service as `kill` does, and returns when it has gone.
    func stopService() throws {
        try self.service.kill(SIGTERM)
    }

    /// The folder for files, made on first use.
    func target() throws -> String { try self.folder.makeFolder("files") }

    /// The names in the folder for files, partials included.
    func files() throws -> [String] {
        _ = try self.target()
        return try self.folder.names(in: "files")
    }
}

/// Runs a test at a desk of its own; its service is gone at the end.
func withDesk<Result>(_ body: (Desk) async throws -> Result) async throws -> Result {
    try await withTemporaryFolder { folder in
        let desk = try Desk(folder)
        do {
            let result = try await body(desk)
            try? desk.stopService()  // one that has ended meanwhile is as good
            return result
        } catch {
            try? desk.stopService()
            throw error
        }
    }
}

extension ToolResult {
    /// The lines of standard error.
    var errorLines: [String] {
        self.stderr.split(separator: "\n").map(String.init)
    }

    /// The lines of standard output.
    var lines: [String] {
        self.stdout.split(separator: "\n").map(String.init)
    }
}

/// Checks that a command refused with one sentence, told nothing else, and ended with a status.
///
/// Hints may follow on lines of their own.
func expectRefusal(
    _ result: ToolResult,
    status: Int32,
    says parts: [String],
    _ context: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let shown = "\(context) \(result.ending) \(result.stderr)"
    #expect(result.status == status, "\(shown)", sourceLocation: sourceLocation)
    #expect(result.stdout.isEmpty, "\(context) \(result.stdout)", sourceLocation: sourceLocation)
    let lines = result.errorLines
    #expect(lines.first?.hasPrefix("ferry: ") == true, "\(shown)", sourceLocation: sourceLocation)
    #expect(lines.count { $0.hasPrefix("ferry: ") } == 1, "\(shown)", sourceLocation: sourceLocation)
    #expect(lines.count <= 3, "\(shown)", sourceLocation: sourceLocation)
    #expect(lines.first?.hasSuffix(".") == false, "\(shown)", sourceLocation: sourceLocation)
    for part in parts {
        #expect(result.stderr.contains(part), "\(part): \(shown)", sourceLocation: sourceLocation)
    }
}
