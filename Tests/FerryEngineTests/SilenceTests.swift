import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// A job that finds no connection does not keep others from a place.
@Suite(.timeLimit(.minutes(5))) struct SilenceTests {
    private static func configuration(running: Int) -> EngineConfiguration {
        var configuration = EngineConfiguration()
        configuration.running = running
        return configuration
    }

    private static func server(_ gate: Gate? = nil) throws -> ScriptedServer {
        let object = TestObject(size: 1_000, seed: 91)
        return try ScriptedServer { request, _ in
            let reply = Reply.object(object, for: request)
            return gate.map { reply.with(.hold($0)) } ?? reply
        }
    }

    /// Adds a job and waits until it has asked for a connection.
    private func addSilent(_ url: String, _ scope: EngineScope) async throws -> JobID {
        let id = try await scope.add(url)
        while true {
            if case .asking? = try await scope.engine.running[id]?.contact { return id }
            await Task.yield()
        }
    }

    @Test func `it gives its place to a job of another host, and loses no try`() async throws {
        let hole = try SilentListener(isFull: true)
        let server = try Self.server()
        try await withEngine(configuration: Self.configuration(running: 1)) { scope in
            let silent = try await self.addSilent(hole.url("1"), scope)
            let other = try await scope.add(server.url("2"))
            #expect(try await scope.job(other).state == .queued)
            try await scope.passTime(to: scope.now + ConnectPatience.initial)
            #expect(try await scope.next(other, .completed).attempts == 1)
            // Nobody else wants the place now.
            while try await scope.job(silent).attempts < 2 { await Task.yield() }
            let job = try await scope.job(silent)
            #expect(job.state == .running && job.forgivenAttempts == 1)
            let attempt = try #require(try await scope.store.read { try $0.attempts(silent) }.first)
            #expect(
                attempt.outcome == "interrupted" && attempt.message?.contains("no connection yet") == true
            )
        }
    }

    @Test func `it keeps its place while nobody waits`() async throws {
        let hole = try SilentListener(isFull: true)
        let server = try Self.server()
        try await withEngine(configuration: Self.configuration(running: 2)) { scope in
            let silent = try await self.addSilent(hole.url("1"), scope)
            let other = try await scope.add(server.url("2"))
            _ = try await scope.next(other, .completed)
            scope.clock.advance(by: .seconds(20))
            let late = try await scope.add(server.url("3"))
            _ = try await scope.next(late, .completed)
            #expect(try await scope.job(silent).forgivenAttempts == 0)
        }
    }

    @Test func `it keeps its place if it is more important`() async throws {
        let hole = try SilentListener(isFull: true)
        let server = try Self.server()
        try await withEngine(configuration: Self.configuration(running: 1)) { scope in
            let silent = try await self.addSilent(hole.url("1"), scope)
            try await scope.set(JobChanges(priority: 5), silent)
            let other = try await scope.add(server.url("2"))
            try await scope.passTime(to: scope.now + ConnectPatience.initial)
            try await scope.engine.runAdded()
            #expect(try await scope.job(silent).forgivenAttempts == 0)
            #expect(try await scope.job(other).state == .queued)
            try await scope.set(JobChanges(priority: 5), other)
            #expect(try await scope.next(other, .completed).attempts == 1)
            #expect(try await scope.job(silent).forgivenAttempts == 1)
        }
    }

    @Test func `one whose host has taken the connection keeps its place`() async throws {
        let listener = try SilentListener()
        let server = try Self.server()
        try await withEngine(configuration: Self.configuration(running: 1)) { scope in
            let quiet = try await scope.add(listener.url("1"))
            let other = try await scope.add(server.url("2"))
            let running = try #require(try await scope.engine.running[quiet])
            while true {
                if case .made = running.contact { break }
                await Task.yield()
            }
            scope.clock.advance(by: .seconds(20))
            try await scope.engine.runAdded()
            #expect(try await scope.job(quiet).state == .running)
            #expect(try await scope.job(other).state == .queued)
        }
    }

    @Test func `a host that was silent says so, and is tried again when its turn comes`() async throws {
        let hole = try SilentListener(isFull: true)
        let gate = Gate()
        let server = try Self.server(gate)
        try await withEngine(configuration: Self.configuration(running: 1)) { scope in
            let silent = try await self.addSilent(hole.url("1"), scope)
            let others = [try await scope.add(server.url("2")), try await scope.add(server.url("3"))]
            try await scope.passTime(to: scope.now + ConnectPatience.initial)
            _ = try await scope.next(others[0], .running)
            _ = try await server.waitForRequests(1)
            let pause = try await scope.engine.job(silent)?.hostPause
            #expect(pause?.until == nil && pause?.message.contains("has not answered at once") == true)
            #expect(try await scope.job(silent).state == .queued)
            // With one place a suspect's turn comes after sixteen seconds.
            scope.clock.advance(by: .seconds(16))
            gate.open()
            _ = try await scope.next(others[0], .completed)
            while try await scope.job(silent).attempts < 2 { await Task.yield() }
            #expect(try await scope.job(others[1]).state == .queued)
            while try await scope.job(others[1]).state == .queued {
                if let next = scope.clock.wakeTimes.first {
                    scope.clock.advance(by: max(.zero, scope.clock.now.duration(to: next)))
                }
                await Task.yield()
            }
            _ = try await scope.next(others[1], .completed)
            #expect(try await scope.job(silent).forgivenAttempts == 2)
        }
    }
}
