import FerryTestSupport
import Glibc
import Testing

/// A service that stays, as systemd or a person starts it.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DaemonTests {
    private static let object = TestObject(size: 500_000, seed: 71)

    /// Starts `ferry daemon` and waits until it serves.
    private static func startDaemon(_ desk: Desk) async throws -> RunningTool {
        let daemon = try desk.start("daemon")
        _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=ready") }
        #expect(try desk.service.pid() == daemon.pid)
        return daemon
    }

    @Test func `a daemon carries out what is added, and ends when it is told to`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
            try await desk.success("add", "-d", desk.target(), server.url("before"))
            let daemon = try await Self.startDaemon(desk)
            _ = try await desk.job(1) { $0["state"] == .string("completed") }
            let added = try await desk.ferry("add", "-d", desk.target(), server.url("after"))
            #expect(added.status == 0 && added.stdout == "2\n" && added.stderr.isEmpty, "\(added.stderr)")
            _ = try await desk.job(2) { $0["state"] == .string("completed") }
            for name in ["before", "after"] {
                #expect(try Self.object.matches("\(desk.target())/\(name)") == nil)
            }

            let second = try await desk.ferry("daemon")
            #expect(second.status == 10 && second.stderr.contains("a daemon serves this queue already"))
            daemon.kill(SIGTERM)
            #expect(try await daemon.waitForExit().status == 0)
            #expect(try desk.service.pid() == nil)
        }
    }

    @Test func `a command that is left leaves the work to the daemon`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request).with(.stall(after: 200_000, until: gate))
            }
            let daemon = try await Self.startDaemon(desk)
            let get = try desk.start("get", "-d", try desk.target(), server.url("file"))
            _ = try await get.waitForLine(in: .stderr) { $0.contains("started") }
            get.kill(SIGINT)
            let left = try await get.waitForExit()
            #expect(left.ending == .signalled(SIGINT))
            #expect(left.stderr.contains("ferry: left; the daemon goes on with the queue"), "\(left.stderr)")
            gate.open()
            try await desk.success("wait", "1")
            #expect(server.requests.count == 1)
            #expect(try Self.object.matches("\(desk.target())/file") == nil)
            daemon.kill(SIGTERM)
            #expect(try await daemon.waitForExit().status == 0)
        }
    }

    @Test func `a daemon takes over from a service on demand without losing a byte`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try ScriptedServer { request, number in
                let reply = Reply.object(Self.object, for: request)
                return number == 0 ? reply.with(.stall(after: 200_000, until: gate)) : reply
            }
            let get = try desk.start("get", "--json", "-d", try desk.target(), server.url("file"))
            _ = try await get.waitForLine { line in
                (try? JSON(line: line + "\n"))?["bytes_done"] == .number(200_000)
            }
            let daemon = try await Self.startDaemon(desk)
            let result = try await get.waitForExit()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(server.requests.map(\.rangeStart) == [nil, 200_000])
            #expect(try Self.object.matches("\(desk.target())/file") == nil)
            daemon.kill(SIGTERM)
            #expect(try await daemon.waitForExit().status == 0)
        }
    }

    @Test func `a daemon that is killed leaves its queue to the next`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try ScriptedServer { request, number in
                let reply = Reply.object(Self.object, for: request)
                return number == 0 ? reply.with(.stall(after: 200_000, until: gate)) : reply
            }
            let first = try await Self.startDaemon(desk)
            try await desk.success("add", "-d", desk.target(), server.url("file"))
            _ = try await desk.job { $0["bytes_durable"] == .number(200_000) }
            first.kill(SIGKILL)
            _ = try await first.waitForExit()
            let second = try await Self.startDaemon(desk)
            let job = try await desk.job { $0["state"] == .string("completed") }
            #expect(job["attempt"] == .number(2))
            #expect(server.requests.map(\.rangeStart) == [nil, 200_000])
            #expect(try Self.object.matches("\(desk.target())/file") == nil)
            second.kill(SIGTERM)
            #expect(try await second.waitForExit().status == 0)
        }
    }
}
