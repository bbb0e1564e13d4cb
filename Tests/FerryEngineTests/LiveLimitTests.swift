import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// Limits that are set while jobs run, and commands about many jobs.
@Suite(.timeLimit(.minutes(5))) struct LiveLimitTests {
    private static let object = TestObject(size: 1_000_000, seed: 41)

    /// Stalls every answer after 300,000 bytes.
    private func server(quirks: Quirks = []) throws -> ScriptedServer {
        try ScriptedServer { request, _ in
            .object(Self.object, for: request, quirks: quirks).with(.stall(after: 300_000))
        }
    }

    private func waitForRunning(_ count: Int, _ scope: EngineScope) async throws {
        while try await scope.engine.counts()[.running] != Int64(count) { await Task.yield() }
    }

    @Test func `a limit holds at once, and after a restart`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            var ids: [JobID] = []
            for number in 1...5 { ids.append(try await scope.add(server.url("f\(number)"))) }
            for id in ids { try await scope.waitForBytes(300_000, of: id) }
            try await scope.set(JobChanges(priority: 5), ids[4])
            try await scope.engine.change([Engine.LimitChange(host: nil, running: 2)])
            try await self.waitForRunning(2, scope)
            for (id, state) in zip(ids, [.running, .queued, .queued, .queued, .running] as [JobState]) {
                #expect(try await scope.job(id).state == state)
            }
            #expect(try await scope.job(ids[1]).forgivenAttempts == 1)
            #expect(try await scope.job(ids[1]).bytesDurable == 300_000)
            try await scope.restart()
            #expect(try await scope.engine.configuration.running == 2)
            try await self.waitForRunning(2, scope)
            try await scope.engine.change([Engine.LimitChange(host: nil, running: nil)])
            #expect(try await scope.engine.configuration.running == 16)
            try await self.waitForRunning(5, scope)
        }
    }

    @Test func `a job that could not go on ends in its own time`() async throws {
        let server = try self.server(quirks: [.rangesIgnored, .noTag, .noLastModified])
        try await withEngine { scope in
            let ids = [try await scope.add(server.url("a")), try await scope.add(server.url("b"))]
            for id in ids { try await scope.waitForBytes(300_000, of: id) }
            try await scope.engine.change([Engine.LimitChange(host: nil, running: 1)])
            #expect(try await scope.engine.counts()[.running] == 2)
            #expect(try await scope.engine.progress().count == 2)
        }
    }

    @Test func `a host's limit wins over the configuration's`() async throws {
        var configuration = EngineConfiguration()
        configuration.perHost = 6
        configuration.hosts["a:443"] = HostSettings()
        configuration.hosts["a:443"]?.perHost = 4
        let live = LiveConfiguration(configuration)
        var limits = LiveLimits()
        limits.hosts = ["a": 2, "a:80": 3, "b:443": 1]
        live.set(limits)
        let hosts = ["a:443": 2, "a:80": 3, "a:81": 2, "b:443": 1, "b:80": 6]
        for (host, expected) in hosts { #expect(live.value.perHost(of: host) == expected, "\(host)") }
        live.set(LiveLimits())
        #expect(live.value.perHost(of: "a:443") == 4)
    }

    @Test(arguments: [0, -1, 1_001])
    func `a limit that cannot be`(number: Int) async throws {
        try await withEngine { scope in
            let changes = [
                Engine.LimitChange(host: nil, running: 3), Engine.LimitChange(host: nil, running: number),
            ]
            let error = await #expect(throws: FerryError.self) { try await scope.engine.change(changes) }
            #expect(error?.exitStatus == .usage)
            let running = try await scope.engine.configuration.running
            #expect(running == 16)
        }
    }

    // MARK: Many jobs

    @Test func `many jobs are steered in batches, and none begins meanwhile`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let count = Engine.steeringBatch * 2 + 10
            let requests = (1...count).map { scope.request(server.url("f\($0)")) }
            _ = try await scope.engine.add(requests, goOn: false)
            try await scope.engine.runAdded()
            try await self.waitForRunning(6, scope)
            let open = try await scope.engine.select(JobFilter(states: [.queued, .running]))
            #expect(open.count == count)
            var answers = try await scope.engine.steer(.pause, open)
            #expect(
                answers.map(\.id) == open && answers.allSatisfy { $0.state == .paused && $0.error == nil }
            )
            #expect(try await scope.engine.counts()[.paused] == Int64(count))
            #expect(server.requests.count <= 6)  // some were stopped before they had asked
            answers = try await scope.engine.steer(.cancel(keepPartial: false), open)
            #expect(answers.allSatisfy { $0.state == .cancelled && $0.error == nil })
            #expect(try scope.names.isEmpty)
            answers = try await scope.engine.steer(.remove, open)
            #expect(answers.allSatisfy { $0.state == nil && $0.error == nil })
            #expect(try await scope.engine.jobs(JobFilter()).isEmpty)
            #expect(try await scope.store.read { try $0.cleanups() }.isEmpty)
        }
    }

    @Test func `jobs are listed in pages`() async throws {
        try await withEngine(mode: .attached) { scope in
            let requests = (1...1_234).map { scope.request("http://localhost:1/\($0)") }
            _ = try await scope.engine.add(requests, goOn: false)
            let all = try await scope.engine.jobs(JobFilter()).map(\.job.id.rawValue)
            #expect(all == Array(1...1_234))
            let some = try await scope.engine.jobs(JobFilter(limit: 700)).map(\.job.id.rawValue)
            #expect(some == Array(535...1_234))
        }
    }
}
