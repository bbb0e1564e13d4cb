import FerryTestSupport
import Glibc
import Testing

/// Commands that are left, and services that die, in the middle of a transfer.
@Suite(.serialized, .timeLimit(.minutes(5))) struct InterruptionTests {
    private static let object = TestObject(size: 900_000, seed: 31)

    /// A server whose first answer stops after so many bytes until the gate opens.
    private static func server(_ gate: Gate, after: Int64 = 350_000, _ quirks: Quirks = []) throws
        -> ScriptedServer
    {
        try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request, quirks: quirks)
            return number == 0 ? reply.with(.stall(after: after, until: gate)) : reply
        }
    }

    /// Starts `get` and waits until the bytes before the stall have come.
    private static func startAndStall(_ desk: Desk, _ url: String) async throws -> RunningTool {
        let get = try desk.start("get", "--json", "-d", try desk.target(), url)
        _ = try await get.waitForLine { line in
            (try? JSON(line: line + "\n"))?["bytes_done"] == .number(350_000)
        }
        return get
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func `a command that is left leaves its job, and the same command goes on`(signal: Int32) async throws {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try Self.server(gate)
            let get = try await Self.startAndStall(desk, server.url("file"))
            get.kill(signal)
            let left = try await get.waitForExit()
            #expect(left.ending == .signalled(signal))
            #expect(left.stderr.contains("ferry: stopped; what was fetched is kept"), "\(left.stderr)")
            #expect(left.stderr.contains("the same command again goes on"))

            let job = try await desk.job { $0["state"] == .string("queued") }
            #expect(job["bytes_durable"] == .number(350_000) && job["bytes_done"] == .number(350_000))
            #expect(try desk.files() == [".file.1.ferry-part"])

            let path = "\(try desk.target())/file"
            #expect(try await desk.success("get", "-d", desk.target(), server.url("file")) == "\(path)\n")
            let requests = server.requests
            #expect(requests.count == 2 && requests.last?.rangeStart == 350_000)
            #expect(requests.last?.header("If-Range") == Self.object.etag)
            #expect(try Self.object.matches(path) == nil)
            #expect(try desk.files() == ["file"])
        }
    }

    @Test func `a killed command loses no more than one that was left`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try Self.server(gate)
            let get = try await Self.startAndStall(desk, server.url("file"))
            get.kill(SIGKILL)
            _ = try await get.waitForExit()
            let job = try await desk.job { $0["state"] == .string("queued") }
            #expect(job["bytes_durable"] == .number(350_000))
            try await desk.success("run", "--until-empty")
            #expect(server.requests.last?.rangeStart == 350_000)
            #expect(try Self.object.matches("\(desk.target())/file") == nil)
        }
    }

    @Test func `a service that is stopped keeps all bytes, and the command goes on with the next`()
        async throws
    {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try Self.server(gate)
            let get = try await Self.startAndStall(desk, server.url("file"))
            try desk.service.kill(SIGTERM)
            let result = try await get.waitForExit()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(server.requests.last?.rangeStart == 350_000)
            #expect(try Self.object.matches("\(desk.target())/file") == nil)
        }
    }

    @Test func `a service that is killed keeps what was committed`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try Self.server(gate)
            let get = try desk.start("get", "--json", "-d", try desk.target(), server.url("file"))
            _ = try await get.waitForLine { line in
                (try? JSON(line: line + "\n"))?["bytes_durable"] == .number(350_000)
            }
            try desk.service.kill()
            let result = try await get.waitForExit()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(server.requests.last?.rangeStart == 350_000)
            #expect(try Self.object.matches("\(desk.target())/file") == nil)
        }
    }

    @Test func `an object that changed, or cannot be resumed, is fetched anew`() async throws {
        let next = Self.object.changed()
        for quirks in [[], [.ifRangeIgnored], [.rangesIgnored]] as [Quirks] {
            try await withDesk { desk in
                let gate = Gate()
                defer { gate.open() }
                let server = try ScriptedServer { request, number in
                    if number > 0 { return .object(next, for: request, quirks: quirks) }
                    return .object(Self.object, for: request).with(.stall(after: 350_000, until: gate))
                }
                let get = try await Self.startAndStall(desk, server.url("file"))
                get.kill(SIGINT)
                _ = try await get.waitForExit()
                try await desk.success("get", "-d", desk.target(), server.url("file"))
                #expect(server.requests.count >= 2)
                #expect(server.requests[1].rangeStart == 350_000)
                #expect(try next.matches("\(desk.target())/file") == nil)
                #expect(try desk.files() == ["file"])
            }
        }
    }

    @Test func `a body that is cut short is completed, or the job fails and keeps its bytes`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, number in
                let reply = Reply.object(Self.object, for: request)
                if request.path == "/once", number > 0 { return reply }
                return reply.with(.cut(after: 100_000))
            }
            let target = try desk.target()
            try await desk.success("get", "-d", target, server.url("once"))
            #expect(server.requests(for: "/once").map(\.rangeStart) == [nil, 100_000])
            #expect(try Self.object.matches("\(target)/once") == nil)

            let always = try await desk.ferry("get", "--attempts", "3", "-d", target, server.url("always"))
            #expect(always.status == 1 && always.stdout.isEmpty)
            #expect(server.requests(for: "/always").map(\.rangeStart) == [nil, 100_000, 200_000])
            let job = try await desk.job(2)
            #expect(job["state"] == .string("failed") && job["reason"] == .string("gave-up"))
            #expect(job["bytes_durable"] == .number(300_000) && job["attempt"] == .number(3))
            #expect(try desk.files() == [".always.2.ferry-part", "once"])
            try await desk.success("cancel", "2")
            #expect(try desk.files() == ["once"])
        }
    }

    @Test func `output that nobody reads, and a shell's substitution, hold nothing up`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
            // The service must not hold the pipe open.
            let script = "id=$(\"$ferry\" add --state-dir \"$queue\" \"$1\" 2>/dev/null); echo \"got $id\""
            #expect(try await desk.shell(script, server.url("file")).stdout == "got 1\n")

            let broken = try await ToolRunner.program("python3").run(
                [
                    "-c",
                    """
                    import os, subprocess, sys
                    reading, writing = os.pipe()
                    os.close(reading)
                    print(subprocess.run(sys.argv[1:], stdout=writing).returncode)
                    """, desk.tool.path,
                ] + desk.arguments(["list", "--all"])
            )
            #expect(broken.stdout == "\(-SIGPIPE)\n" && broken.stderr.isEmpty, "\(broken.stderr)")
        }
    }
}
