import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// What can be set while the engine works, and how it stops.
@Suite(.timeLimit(.minutes(3))) struct SettingsTests {
    @Test(arguments: [
        ("a:443", 6, false), ("b:443", 2, false), ("b:8443", 3, true), ("c:443", 6, true),
        ("[::1]:443", 4, false),
        ("[::1]:80", 5, false), ("b", 2, false),
    ])
    func `a host's own settings win, those with a port most`(_ host: String, _ perHost: Int, _ http2: Bool) {
        func settings(_ change: (inout HostSettings) -> Void) -> HostSettings {
            var settings = HostSettings()
            change(&settings)
            return settings
        }
        var configuration = EngineConfiguration()
        configuration.hosts = [
            "b": settings { $0.perHost = 2 },
            "b:8443": settings {
                $0.perHost = 3
                $0.http2 = true
            },
            "c": settings { $0.http2 = true },
            "[::1]": settings { $0.perHost = 4 },
            "[::1]:80": settings { $0.perHost = 5 },
        ]
        #expect(configuration.perHost(of: host) == perHost)
        #expect(configuration.allowsHTTP2(host) == http2)
    }

    @Test func `limits change while jobs run`() async throws {
        let gate = Gate()
        let server = try ScriptedServer { request, _ in
            Reply(200, body: .bytes(Array(request.path.utf8))).with(.hold(gate))
        }
        var configuration = EngineConfiguration()
        configuration.running = 1
        try await withEngine(configuration: configuration) { scope in
            let engine = try scope.engine
            var ids: [JobID] = []
            for number in 1...6 { ids.append(try await scope.add(server.url("f\(number)"))) }
            _ = try await server.waitForRequests(1)
            #expect(try await engine.counts()[.running] == 1)

            configuration.running = 6
            var host = HostSettings()
            host.perHost = 2
            configuration.hosts["localhost"] = host
            await engine.reconfigure(configuration)
            _ = try await server.waitForRequests(2)
            #expect(try await engine.counts()[.running] == 2)

            configuration.hosts = [:]
            try await engine.change([Engine.LimitChange(host: nil, running: 4)])
            await engine.reconfigure(configuration)
            _ = try await server.waitForRequests(4)
            #expect(try await engine.counts()[.running] == 4)
            #expect(await engine.configuration.running == 4)

            // Fewer than run already: those that lose nothing by it go back to the queue.
            try await engine.change([Engine.LimitChange(host: nil, running: 1)])
            while try await engine.counts()[.running] != 1 { await Task.yield() }
            try await engine.change([Engine.LimitChange(host: nil, running: nil)])
            #expect(await engine.configuration.running == 6)
            gate.open()
            for id in ids { #expect(try await scope.end(of: id).state == .completed) }
        }
    }

    @Test(arguments: [Duration.zero, .seconds(60)])
    func `a stop spends no attempt, whether there was time to sync or not`(limit: Duration) async throws {
        let gate = Gate()
        defer { gate.open() }
        let object = TestObject(size: 400_000, seed: 5)
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return number == 0 ? reply.with(.stall(after: 100_000, until: gate)) : reply
        }
        try await withEngine { scope in
            var ids: [JobID] = []
            for number in 1...3 { ids.append(try await scope.add(server.url("f\(number)"))) }
            for id in ids { try await scope.waitForBytes(100_000, of: id) }
            await (try scope.engine).stop(syncingFor: limit)
            for id in ids {
                let job = try await scope.job(id)
                #expect(job.state == .queued)
                #expect(job.attempts == 1 && job.forgivenAttempts == 1)
                #expect(job.bytesDurable == (limit == .zero ? 0 : 100_000))
            }
            try await scope.restart()
            for id in ids {
                #expect(try await scope.end(of: id).state == .completed)
            }
        }
    }

    @Test func `history goes when it is old enough`() async throws {
        let server = try ScriptedServer { request, _ in Reply(200, body: .bytes([1, 2, 3])) }
        var configuration = EngineConfiguration()
        configuration.historyKeep = .seconds(3_600)
        try await withEngine(configuration: configuration) { scope in
            let engine = try scope.engine
            let first = try await scope.fetch(server.url("a")).id
            scope.clock.advance(by: .seconds(1_800))
            let second = try await scope.fetch(server.url("b")).id
            #expect(try await engine.trimHistory() == 0)
            scope.clock.advance(by: .seconds(1_801))
            #expect(try await engine.trimHistory() == 1)
            #expect(try await engine.job(first) == nil)
            #expect(try await engine.job(second) != nil)
        }
    }
}
