import FerryCore
import FerryTestSupport
import Glibc
import Testing

/// The service under a manager: what it tells, how it stops, and what it takes over without a restart.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ServiceLifeTests {
    private static let object = TestObject(size: 500_000, seed: 77)

    /// Starts `ferryd` as systemd does, and waits until it is ready.
    private static func start(
        _ desk: Desk,
        _ notify: NotifyListener? = nil,
        _ variables: [String: String] = [:]
    ) async throws -> RunningTool {
        var desk = desk
        desk.tool = desk.tool.with(variables)
        if let notify { desk.tool = desk.tool.with(["NOTIFY_SOCKET": notify.name]) }
        let daemon = try desk.start("daemon")
        _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=ready") }
        return daemon
    }

    /// Stops it, and tells how long that took.
    @discardableResult
    private static func stop(_ daemon: RunningTool) async throws -> Duration {
        let begin = ContinuousClock.now
        daemon.kill(SIGTERM)
        #expect(try await daemon.waitForExit().status == 0)
        return ContinuousClock.now - begin
    }

    private static func configure(_ desk: Desk, _ text: String) throws {
        let folder = try #require(desk.tool.environment?["XDG_CONFIG_HOME"])
        let name = String(folder.dropFirst(desk.folder.path.count + 1))
        try desk.folder.makeFolder("\(name)/ferry")
        try desk.folder.write("\(name)/ferry/config.json5", text)
    }

    // MARK: The manager

    @Test func `the manager is told of each step, and hears of the transfers`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            let server = try ScriptedServer { request, number in
                let reply = Reply.object(Self.object, for: request)
                return number == 0 ? reply.with(.stall(after: 200_000, until: gate)) : reply
            }
            let notify = try NotifyListener(desk.folder.file("notify"))
            let daemon = try await Self.start(desk, notify)
            let ready = try await notify.wait(for: "READY") { $0 == "READY=1\nSTATUS=nothing to do" }
            #expect(ready == 0)
            #expect(try desk.service.pid() == daemon.pid)
            try await desk.success("add", "-d", desk.target(), server.url("one"))
            try await notify.wait(for: "a running job") { $0.hasPrefix("STATUS=1 running") }
            gate.open()
            try await notify.wait(for: "its end", from: 1) { $0 == "STATUS=nothing to do" }

            let before = notify.messages.count
            daemon.kill(SIGHUP)
            let reload = try await notify.wait(for: "RELOADING", from: before) {
                $0.hasPrefix("RELOADING=1\nMONOTONIC_USEC=")
            }
            try await notify.wait(for: "READY again", from: reload) { $0.hasPrefix("READY=1") }
            try await Self.stop(daemon)
            try await notify.wait(for: "STOPPING") { $0.hasPrefix("STOPPING=1") }
            #expect(notify.messages.last == "STOPPING=1\nSTATUS=stopping")
            #expect(!notify.messages.contains("WATCHDOG=1"))
        }
    }

    @Test func `a service on demand tells nothing to the manager of whoever started it`() async throws {
        try await withDesk { desk in
            var desk = desk
            let notify = try NotifyListener(desk.folder.file("notify"))
            desk.tool = desk.tool.with(["NOTIFY_SOCKET": notify.name, "WATCHDOG_USEC": "200000"])
            try await desk.success("list")
            try desk.stopService()
            #expect(notify.messages.isEmpty)
        }
    }

    @Test(arguments: ["loop", "store", "engine"])
    func `a part that hangs is not covered up`(part: String) async throws {
        try await withDesk { desk in
            let notify = try NotifyListener(desk.folder.file("notify"))
            let daemon = try await Self.start(
                desk,
                notify,
                ["WATCHDOG_USEC": "400000", "FERRY_HANG_POINT": "\(part):3"]
            )
            defer { daemon.kill(SIGKILL) }
            _ = try await daemon.waitForLine(in: .stderr) {
                $0.contains("level=warning event=watchdog part=\(part) ")
            }
            let fed = notify.messages.count { $0 == "WATCHDOG=1" }
            #expect(fed == 2)
            // systemd would kill it now, and start the next one.
            let lines = daemon.text(of: .stderr).split(separator: "\n").count
            while daemon.text(of: .stderr).split(separator: "\n").count < lines + 3 { await Task.yield() }
            #expect(notify.messages.count { $0 == "WATCHDOG=1" } == fed)
        }
    }

    // MARK: Stopping

    /// Many jobs that have come half-way, and stand still there.
    private static func withManyRunning(
        _ count: Int,
        _ body: (Desk, RunningTool, ScriptedServer) async throws -> Void
    ) async throws {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try ScriptedServer { request, number in
                let reply = Reply.object(Self.object, for: request)
                return number == 0 ? reply.with(.stall(after: 200_000, until: gate)) : reply
            }
            let daemon = try await Self.start(
                desk,
                nil,
                ["FERRY_LIMITS_RUNNING": "\(count)", "FERRY_LIMITS_PER_HOST": "\(count)"]
            )
            let urls = (1...count).map { server.url("f\($0)") }
            #expect(try await desk.ferry(["add", "-d", desk.target()] + urls).status == 0)
            try await Self.waitForAll(desk, count) { $0["bytes_done"] == .number(200_000) }
            try await body(desk, daemon, server)
        }
    }

    /// Asks for the list until every job fulfils a condition.
    private static func waitForAll(
        _ desk: Desk,
        _ count: Int,
        _ condition: @Sendable (JSON) -> Bool
    ) async throws {
        let end = ContinuousClock.now + .seconds(120)
        while true {
            let jobs = try await desk.json("list")["jobs"].elements
            if jobs.count == count, jobs.allSatisfy(condition) { return }
            guard ContinuousClock.now < end else {
                throw TestSupportError(
                    "the jobs do not come to be as they should: \(jobs.map { $0["state"] })"
                )
            }
        }
    }

    /// The time from the first word of a stop to the last, as the log has it.
    private static func stopTime(_ daemon: RunningTool) throws -> Duration {
        func time(_ event: String) throws -> Timestamp {
            let line = daemon.text(of: .stderr).split(separator: "\n").last { $0.contains(" event=\(event)") }
            let text = try #require(line?.split(separator: " ").first?.dropFirst("time=".count))
            return try #require(Timestamp(rfc3339: String(text)))
        }
        return try time("stopped") - time("stopping")
    }

    /// What must hold after a stop: nothing lost, no attempt spent, no byte fetched twice.
    private static func expectContinuation(_ desk: Desk, _ server: ScriptedServer, count: Int) async throws {
        let jobs = try await desk.json("list", "--limit", "1000")["jobs"].elements
        #expect(jobs.count == count)
        #expect(jobs.allSatisfy { $0["state"] == .string("queued") })
        try desk.stopService()
        let next = try await Self.start(desk, nil, ["FERRY_LIMITS_PER_HOST": "50"])
        try await Self.waitForAll(desk, count) { $0["state"] == .string("completed") }
        let requests = server.requests.dropFirst(count)
        #expect(requests.count == count)
        #expect(requests.allSatisfy { $0.rangeStart == 200_000 }, "\(requests.map(\.rangeStart))")
        try await Self.stop(next)
    }

    @Test func `a stop with many running transfers takes less than five seconds`() async throws {
        let count = 100
        try await Self.withManyRunning(count) { desk, daemon, server in
            try await Self.stop(daemon)
            #expect(try Self.stopTime(daemon) < .seconds(5))
            try await Self.expectContinuation(desk, server, count: count)
        }
    }

    @Test(arguments: [
        // The files' syncs alone: most stay with the progress board, and the database is told.
        "--inject=fdatasync:delay_enter=700000",
        // The database's too: nothing can be told any more.
        "--inject=fdatasync,fsync:delay_enter=6000000",
    ])
    func `a slow disk does not hold up a stop, and costs no byte`(injection: String) async throws {
        let count = 12
        try await Self.withManyRunning(count) { desk, daemon, server in
            let strace = try ToolRunner.program("strace", package: "strace").start(
                ["-f", "-o", "/dev/null", "--trace=fdatasync,fsync", injection, "-p", "\(daemon.pid)"]
            )
            _ = try await strace.waitForLine(in: .stderr) { $0.contains("attached") }
            try await Self.stop(daemon)
            #expect(try Self.stopTime(daemon) < .seconds(5))
            _ = try await strace.waitForExit()
            try await Self.expectContinuation(desk, server, count: count)
        }
    }

    // MARK: Settings

    @Test func `a reload takes the configuration over, and a broken one changes nothing`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request).with(.stall(after: 1_000, until: gate))
            }
            try Self.configure(desk, "{ limits: { running: 1 } }")
            let daemon = try await Self.start(desk, nil, ["FERRY_RETRY_CAP": "1m"])
            try await desk.success("add", "-d", desk.target(), server.url("a"), server.url("b"))
            _ = try await server.waitForRequests(1)

            try Self.configure(desk, "{ limits: { running: 2 }, retry: { cap: '2m' } }")
            let config = try await desk.ferry("config")
            #expect(config.status == 0)
            #expect(
                config.lines.first?.hasSuffix("config.json5  (the service has 1, \(try Self.path(desk)))")
                    == true
            )
            #expect(config.stderr.contains("kill -HUP \(daemon.pid)"), "\(config.stderr)")
            daemon.kill(SIGHUP)
            _ = try await server.waitForRequests(2)
            _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=reloaded") }
            let log = daemon.text(of: .stderr)
            #expect(log.contains("level=info event=setting key=limits.running old=1 new=2"), "\(log)")
            #expect(
                log.contains("level=warning event=setting key=retry.cap message=\"not changed: the variable"),
                "\(log)"
            )

            try Self.configure(desk, "{ limits: { running: 0 } }")
            daemon.kill(SIGHUP)
            let line = try await daemon.waitForLine(in: .stderr) { $0.contains("event=reload-failed") }
            #expect(
                line.contains("level=error") && line.contains("limits.running must be a whole number"),
                "\(line)"
            )
            let broken = try await desk.ferry("config")
            #expect(
                broken.status == 2 && broken.stderr.contains("limits.running must be"),
                "\(broken.stderr)"
            )
            try Self.configure(desk, "{}")
            let json = try await desk.json("config")
            #expect(json["service_pid"] == .number(Double(daemon.pid)))
            #expect(json["settings"].elements.first?["service_value"] == .number(2))
            gate.open()
            try await desk.success("wait", "1", "2")
            try await Self.stop(daemon)
        }
    }

    private static func path(_ desk: Desk) throws -> String {
        try #require(desk.tool.environment?["XDG_CONFIG_HOME"]) + "/ferry/config.json5"
    }

    @Test func `a reload removes history that is too old now`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
            let daemon = try await Self.start(desk)
            try await desk.success("get", "-d", desk.target(), server.url("a"))
            try Self.configure(desk, "{ history: { keep: '1ms' } }")
            daemon.kill(SIGHUP)
            _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=trimmed jobs=1") }
            #expect(try await desk.ferry("show", "1").status == 1)
            #expect(try Self.object.matches("\(desk.target())/a") == nil)
            try await Self.stop(daemon)
        }
    }

    @Test func `SIGUSR1 puts the state into the log`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request).with(.stall(after: 200_000, until: gate))
            }
            let daemon = try await Self.start(desk)
            try await desk.success("add", "-d", desk.target(), server.url("a") + "?token=hush")
            _ = try await desk.job { $0["bytes_done"] == .number(200_000) }
            daemon.kill(SIGUSR1)
            let job = try await daemon.waitForLine(in: .stderr) { $0.contains("event=running") }
            #expect(job.contains("job=1 phase=transferring bytes_done=200000 "), "\(job)")
            #expect(job.contains("bytes_total=500000"), "\(job)")
            let state = try await daemon.waitForLine(in: .stderr) { $0.contains("event=state") }
            for part in [
                "queued=0", "running=1", "connections=1", "rss_bytes=", "descriptors=", "descriptor_limit=",
            ] {
                #expect(state.contains(" \(part)"), "\(state)")
            }
            #expect(!daemon.text(of: .stderr).contains("hush"))
            gate.open()
            try await desk.success("wait", "1")
            try await Self.stop(daemon)
        }
    }

    @Test func `HTTP/2 is spoken where the configuration says so`() async throws {
        try await withDesk { desk in
            let certificates = try TestCertificates.make(in: desk.folder.path)
            let server = try await RealServer(.nginx, in: desk.folder, certificates: certificates)
            defer { server.stop() }
            try Self.object.write(to: "\(server.root)/file")
            let get = ["get", "--cacert", certificates.authorityPath, "-d", try desk.target()]
            #expect(try await desk.ferry(get + [server.secureURL("/file")]).status == 0)
            try desk.stopService()
            try Self.configure(desk, "{ hosts: { localhost: { http2: true } } }")
            #expect(try await desk.ferry(get + [server.secureURL("/file") + "?again"]).status == 0)
            #expect(try await desk.job(1)["http_version"] == .string("1.1"))
            #expect(try await desk.job(2)["http_version"] == .string("2"))
            #expect(try Self.object.matches("\(desk.target())/file (2)") == nil)
        }
    }

    @Test func `the configuration is shown without a service, and none is started`() async throws {
        try await withDesk { desk in
            try Self.configure(
                desk,
                "// mine\n{ limits: { running: 3 }, hosts: { 'Example.org': { per_host: 1 } } }"
            )
            let config = try await desk.ferry("config")
            #expect(config.status == 0 && config.stderr.isEmpty, "\(config.stderr)")
            #expect(config.lines.first?.hasPrefix("limits.running                3 ") == true)
            #expect(config.lines.first?.hasSuffix("  \(try Self.path(desk))") == true)
            #expect(config.stdout.contains("\nretry.base                    \"20ms\"  FERRY_RETRY_BASE\n"))
            #expect(config.lines.last?.hasPrefix("hosts.example.org.per_host    1 ") == true)
            #expect(try desk.service.pid() == nil)
            #expect(try await desk.ferry("config", "limits.running").status == 2)
        }
    }
}
