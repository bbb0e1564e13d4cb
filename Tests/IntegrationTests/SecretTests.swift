import FerryTestSupport
import Glibc
import Testing

/// Secrets go to their origin, and nowhere else.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SecretTests {
    private static let object = TestObject(size: 200_000, seed: 61)
    private static let secrets = [
        "s3cr3t-bearer", "s3cr3t-key", "s3cr3t-query", "s3cr3t-password", "czNjcjN0LXVzZXI6",
    ]

    /// The header fields that a user gives.
    private static let fields = [
        "-H", "Authorization: Bearer s3cr3t-bearer", "-H", "X-Api-Key: s3cr3t-key", "-H", "Accept: image/png",
    ]

    /// Which of the secrets a text holds.
    private static func found(in bytes: [UInt8]) -> [String] {
        Self.secrets.filter { bytes.firstRange(of: Array($0.utf8)) != nil }
    }

    /// Which of the secrets the files of a folder hold, each with its file.
    private static func found(in desk: Desk, _ names: [String]) -> [String] {
        names.flatMap { name in
            // A service that ends meanwhile takes some of them along.
            Self.found(in: (try? desk.folder.read("queue/\(name)")) ?? []).map { "\(name): \($0)" }
        }
    }

    /// The files in the state folder, without the socket.
    private static func stateFiles(_ desk: Desk) throws -> [String] {
        try desk.folder.names(in: "queue").filter { !$0.hasSuffix(".sock") }
    }

    @Test func `what is secret is shown nowhere, and forgotten when the job is final`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            let server = try ScriptedServer { request, _ in
                request.path == "/file"
                    ? .object(Self.object, for: request).with(.stall(after: 90_000, until: gate)) : Reply(404)
            }
            let url = server.url("file?token=s3cr3t-query&expires=5")
            let withUser = server.url("user").replacing(
                "http://",
                with: "http://s3cr3t-user:s3cr3t-password@"
            )
            let arguments = ["get", "--verbose", "-d", try desk.target()] + Self.fields + [url]
            let get = try desk.tool.start(desk.arguments(arguments))
            _ = try await server.waitForRequests(1)
            _ = try await get.waitForLine(in: .stderr) { $0.contains("started") }
            let request = try #require(server.requests.first)
            #expect(request.header("Authorization") == "Bearer s3cr3t-bearer")
            #expect(request.header("X-Api-Key") == "s3cr3t-key")
            #expect(request.target == "/file?token=s3cr3t-query&expires=5")

            // The process list, once arguments are read.
            let service = try #require(try desk.service.pid())
            for pid in [get.pid, service] {
                let line = try await ToolRunner.program("cat", package: "coreutils").run([
                    "/proc/\(pid)/cmdline"
                ])
                #expect(Self.found(in: line.stdoutBytes).isEmpty && !line.stdout.contains("localhost"))
                #expect(
                    line.stdout.hasPrefix(pid == service ? "ferryd" : "\(desk.tool.path)"),
                    "\(line.stdout)"
                )
            }

            var said: [UInt8] = []
            func note(_ result: ToolResult) { said += result.stdoutBytes + result.stderrBytes }
            let commands = [
                ["list"], ["list", "--json"], ["show", "1"], ["show", "1", "--json"], ["log", "1"],
            ]
            for command in commands { note(try await desk.ferry(command)) }
            gate.open()
            note(try await get.waitForExit())
            note(try await desk.ferry("get", "-d", desk.target(), withUser))
            #expect(
                server.requests(for: "/user").first?.header("Authorization")
                    == "Basic czNjcjN0LXVzZXI6czNjcjN0LXBhc3N3b3Jk"
            )
            note(
                try await desk.ferry(
                    ["get", "-d", desk.target()] + Self.fields + [
                        "ftp://s3cr3t-user:s3cr3t-password@x/?a=s3cr3t-query"
                    ]
                )
            )
            for command in commands + [
                ["log", "1", "--json"], ["show", "2", "--json"], ["log", "2", "--json"],
            ] {
                note(try await desk.ferry(command))
            }
            #expect(Self.found(in: said).isEmpty, "\(String(decoding: said, as: UTF8.self))")
            #expect(try await desk.job()["state"] == .string("completed"))

            // The failed job may be retried and keeps its own; the completed one's secrets are gone.
            try await desk.success("cancel", "2")
            try desk.stopService()
            #expect(try Self.found(in: desk, Self.stateFiles(desk)).isEmpty)
            #expect(try Self.object.matches("\(desk.target())/file") == nil)
        }
    }

    @Test func `a job that is not final keeps its secrets in the database alone, closed to others`()
        async throws
    {
        try await withDesk { desk in
            let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
            let url = server.url("file?token=s3cr3t-query")
            #expect(try await desk.ferry(["add", "-d", desk.target()] + Self.fields + [url]).status == 0)
            try desk.stopService()
            let others = try Self.stateFiles(desk).filter { !$0.hasPrefix("jobs.db") }
            #expect(Self.found(in: desk, others).isEmpty)
            for (name, mode) in [("queue", 0o700), ("queue/jobs.db", 0o600), ("queue/ferryd.log", 0o600)] {
                var info = stat()
                #expect(stat(desk.folder.file(name), &info) == 0)
                #expect(Int(info.st_mode & 0o7777) == mode, "\(name)")
            }
            // They survive the service: another one sends them.
            try await desk.success("run", "--until-empty")
            #expect(server.requests.first?.header("X-Api-Key") == "s3cr3t-key")
            #expect(server.requests.first?.target == "/file?token=s3cr3t-query")
            try desk.stopService()
            #expect(try Self.found(in: desk, Self.stateFiles(desk)).isEmpty)
        }
    }

    @Test func `what ends an abandoned upload is shown nowhere, and forgotten when the server has done it`()
        async throws
    {
        let server = try UploadServer(
            .tus(extensions: "creation,termination"),
            override: { request, number in
                switch request.method {
                case "PATCH": Reply(503, headers: ["Retry-After: 3", "Connection: close"])
                case "DELETE" where number == 0: Reply(503)
                default: nil
                }
            }
        )
        try await withDesk { desk in
            try Self.object.write(to: desk.folder.file("a.bin"))
            let add = ["add", "--protocol", "tus"] + Self.fields + ["--upload", "a.bin"]
            #expect(try await desk.ferry(add + ["\(server.url)?token=s3cr3t-query"]).status == 0)
            let run = try desk.start("run")
            _ = try await desk.job { $0["state"].text == "waiting" }
            try await desk.success("cancel", "1")
            var said: [UInt8] = []
            for command in [["show", "1", "--json"], ["log", "1", "--json"], ["doctor", "--json"]] {
                let result = try await desk.ferry(command)
                said += result.stdoutBytes + result.stderrBytes
            }
            run.kill()
            _ = try await run.waitForExit()
            try desk.stopService()
            #expect(Self.found(in: said).isEmpty, "\(String(decoding: said, as: UTF8.self))")
            // The server has put it off: the next service asks again, with the same fields.
            #expect(!Self.found(in: desk, ["jobs.db"]).isEmpty)
            // Not before the pause is over that the server has asked for.
            let end = ContinuousClock.now + .seconds(60)
            repeat {
                try await desk.success("run", "--until-empty")
                try desk.stopService()
            } while try !Self.found(in: desk, Self.stateFiles(desk)).isEmpty && ContinuousClock.now < end
            let ends = server.server.requests.filter { $0.method == "DELETE" }
            #expect(ends.count > 1 && ends.allSatisfy { $0.header("X-Api-Key") == "s3cr3t-key" })
            #expect(try Self.found(in: desk, Self.stateFiles(desk)).isEmpty)
        }
    }

    @Test func `another origin gets none of the user's secrets, not even after a way back`() async throws {
        try await withDesk { desk in
            let other = Watched("")
            let home = try ScriptedServer { request, _ in
                switch request.path {
                case "/start": .redirect(302, to: "/same")
                case "/same": .redirect(307, to: "\(other.value)/hop")
                default: .object(Self.object, for: request)
                }
            }
            let back = home.url("back")
            let foreign = try ScriptedServer { request, _ in .redirect(302, to: back) }
            let address = String(foreign.url("").dropLast())
            other.update { $0 = address }
            _ = try desk.target()
            let done = try await desk.ferry(["get", "-o", "files/x"] + Self.fields + [home.url("start")])
            #expect(done.status == 0, "\(done.stderr)")
            #expect(home.requests.map(\.path) == ["/start", "/same", "/back"])
            #expect(home.requests.map { $0.header("X-Api-Key") != nil } == [true, true, false])
            #expect(home.requests.map { $0.header("Authorization") != nil } == [true, true, false])
            let hop = try #require(foreign.requests.first)
            #expect(hop.header("Authorization") == nil && hop.header("X-Api-Key") == nil)
            #expect(hop.header("Referer") == nil && hop.header("Cookie") == nil)
            #expect(hop.header("Accept") == "image/png")
        }
    }
}
