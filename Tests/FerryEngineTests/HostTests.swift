import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// A host is one budget over all jobs: its pauses, its outages, and who goes first after them.
@Suite(.timeLimit(.minutes(5))) struct HostTests {
    private static let object = TestObject(size: 10_000, seed: 8)
    private static let honest: @Sendable (RecordedRequest) -> Reply = { .object(object, for: $0) }

    /// Refuses the first `count` requests, whatever they are for.
    private func server(refusing count: Int, _ headers: String..., then gate: Gate? = nil) throws
        -> ScriptedServer
    {
        try ScriptedServer { request, _ in
            if request.index < count { return Reply(503, headers: headers) }
            return gate.map { Self.honest(request).with(.hold($0)) } ?? Self.honest(request)
        }
    }

    private func pause(of id: JobID, _ scope: EngineScope) async throws -> Engine.HostPause? {
        try await scope.engine.job(id)?.hostPause
    }

    /// Lets time pass as the engine wants it until all jobs are completed.
    private func complete(_ ids: [JobID], _ scope: EngineScope) async throws {
        let clock = scope.clock
        let ticker = Task {
            while !Task.isCancelled {
                try await clock.waitForSleepers(1)
                guard let next = clock.wakeTimes.first else { continue }
                clock.advance(by: max(.zero, clock.now.duration(to: next)))
            }
        }
        defer { ticker.cancel() }
        for id in ids where try await scope.job(id).state != .completed {
            _ = try await scope.next(id, .completed)
        }
    }

    struct Wish: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let headers: [String]
        let seconds: Int64
    }

    @Test(arguments: [
        Wish(testDescription: "seconds", headers: ["Retry-After: 30"], seconds: 30),
        Wish(
            testDescription: "a date",
            headers: ["Date: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: Sun, 06 Nov 1994 08:50:37 GMT"],
            seconds: 60
        ),
        Wish(
            testDescription: "a date that has passed",
            headers: ["Date: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: Sun, 06 Nov 1994 08:00:00 GMT"],
            seconds: 1
        ),
        Wish(testDescription: "nothing", headers: ["Retry-After: 0"], seconds: 1),
        Wish(testDescription: "a day", headers: ["Retry-After: 86400"], seconds: 21_600),
        Wish(testDescription: "for ever", headers: ["Retry-After: 9999999999"], seconds: 21_600),
    ])
    func `a pause holds for all jobs of the host`(_ wish: Wish) async throws {
        let server = try ScriptedServer { request, _ in
            request.index < 2 ? Reply(429, headers: wish.headers) : Self.honest(request)
        }
        try await withEngine { scope in
            let first = try await scope.add(server.url("1"))
            let told = try await scope.next(first, .waiting)
            let due = scope.now + .seconds(wish.seconds)
            #expect(told.waitReason == .host && told.nextTry == due)
            let others = [try await scope.add(server.url("2")), try await scope.add(server.url("3"))]
            for id in others {
                #expect(try await scope.job(id).state == .queued)
                let pause = try await self.pause(of: id, scope)
                #expect(pause?.until == due && pause?.message.contains("asked for a pause") == true)
            }
            let stored = try await scope.store.read { try $0.host("localhost:\(server.port)") }
            #expect(stored?.pausedUntil == due && stored?.backoffLevel == 1)
            #expect(server.requests.count == 1)
            // It is asked again, and asks for the same again.
            try await scope.passWait(of: told)
            let again = try await scope.next(first, .waiting)
            #expect(try #require(again.nextTry) >= due + .seconds(wish.seconds))
            #expect(server.requests.count == 2)
            try await self.complete([first] + others, scope)
            #expect(server.requests.count == 5)
            let forgotten = try await scope.store.read { try $0.host("localhost:\(server.port)") }
            #expect(forgotten?.pausedUntil == nil && forgotten?.backoffLevel == 0)
        }
    }

    @Test func `rubbish is no pause`() async throws {
        let server = try self.server(refusing: 1, "Retry-After: soon")
        try await withEngine { scope in
            let id = try await scope.add(server.url("1"))
            #expect(try await scope.next(id, .waiting).waitReason == .retry)
            let other = try await scope.add(server.url("2"))
            #expect(try await scope.next(other, .completed).state == .completed)
        }
    }

    @Test func `after a pause one goes first, and the others follow its answer`() async throws {
        let gate = Gate()
        let server = try self.server(refusing: 5, "Retry-After: 120", then: gate)
        try await withEngine { scope in
            var ids: [JobID] = []
            let requests = (1...5).map { scope.request(server.url("\($0)")) }
            ids = try await scope.engine.add(requests, goOn: false).compactMap { $0.job?.id }
            try await scope.engine.runAdded()
            var told: [JobRecord] = []
            for id in ids { told.append(try await scope.next(id, .waiting)) }
            #expect(told.allSatisfy { $0.waitReason == .host && $0.nextTry == scope.now + .seconds(120) })
            scope.clock.advance(by: .milliseconds(119_999))
            #expect(server.requests.count == 5)
            try await scope.passWait(of: told[0])
            _ = try await server.waitForRequests(6)
            for id in ids.dropFirst() { #expect(try await scope.next(id, .queued).state == .queued) }
            #expect(try await scope.engine.counts()[.running] == 1)
            let pause = try await self.pause(of: ids[4], scope)
            #expect(pause?.until == nil && pause?.message.contains("another job tries first") == true)
            scope.clock.advance(by: .seconds(60))
            #expect(server.requests.count == 6)
            gate.open()
            // The next one waits for its turn; no time passes by itself here.
            _ = try await scope.next(ids[0], .completed)
            try await self.complete(ids, scope)
            #expect(server.requests.count == 10)
        }
    }

    @Test(arguments: [false, true]) func `a pause survives the service`(probed: Bool) async throws {
        let server = try self.server(refusing: 1, "Retry-After: 600")
        try await withEngine { scope in
            let first = try await scope.add(server.url("1"))
            let told = try await scope.next(first, .waiting)
            let second = try await scope.add(server.url("2"))
            scope.clock.advance(by: .seconds(200))
            try await scope.restart()
            #expect(try await self.pause(of: second, scope)?.until == told.nextTry)
            #expect(try await scope.job(first).nextTry == told.nextTry)
            if probed {
                // Its time passes while no service lives.
                scope.clock.advance(by: .seconds(1_000))
                try await scope.restart()
            } else {
                try await scope.passWait(of: told)
            }
            try await self.complete([first, second], scope)
            #expect(server.requests.count == 3)
        }
    }

    @Test(arguments: [31_536_000, -31_536_000], [false, true])
    func `a clock that is set changes no wait`(seconds: Int, tells: Bool) async throws {
        let server = try self.server(refusing: 1, "Retry-After: 600")
        try await withEngine { scope in
            let jump = Duration.seconds(seconds)
            let first = try await scope.add(server.url("1"))
            let told = try await scope.next(first, .waiting)
            let second = try await scope.add(server.url("2"))
            scope.clock.advance(by: .seconds(100))
            scope.setClock(ahead: jump)
            if tells { try await scope.engine.clockMayHaveBeenSet() }
            // Whatever happens next, the engine looks at the clock first.
            let third = try await scope.add(server.url("3"))
            let due = try #require(told.nextTry) + jump
            #expect(try await scope.job(first).nextTry == due)
            #expect(try await scope.job(first).progressAt == told.createdAt + jump)
            for id in [second, third] { #expect(try await self.pause(of: id, scope)?.until == due) }
            #expect(due - scope.now == .seconds(500))
            scope.clock.advance(by: .seconds(499))
            #expect(server.requests.count == 1)
            try await scope.passWait(of: scope.job(first))
            try await self.complete([first, second, third], scope)
            #expect(server.requests.count == 4)
        }
    }

    @Test func `a time that a person named is that of the new clock`() async throws {
        let server = try self.server(refusing: 0)
        try await withEngine { scope in
            let time = scope.now + .seconds(86_400)
            let id = try await scope.add(server.url("1")) { $0.notBefore = time }
            #expect(try await scope.job(id).nextTry == time)
            scope.setClock(ahead: .seconds(80_000))
            try await scope.engine.clockMayHaveBeenSet()
            #expect(try await scope.job(id).nextTry == time)
            scope.setClock(ahead: .seconds(10_000))
            try await scope.engine.clockMayHaveBeenSet()
            #expect(try await scope.next(id, .completed).state == .completed)
        }
    }

    @Test func `a clock that ran ahead while no service lived makes no wait longer than any can be`()
        async throws
    {
        let server = try self.server(refusing: 1, "Retry-After: 600")
        try await withEngine { scope in
            let first = try await scope.add(server.url("1"))
            let told = try await scope.next(first, .waiting)
            let second = try await scope.add(server.url("2"))
            try await scope.engine.stop()
            scope.setClock(ahead: .seconds(-31_536_000))
            try await scope.restart()
            let due = scope.now + .seconds(21_600)
            #expect(try await scope.job(first).nextTry == due)
            #expect(told.nextTry != due)
            #expect(try await self.pause(of: second, scope)?.until == due)
        }
    }

    @Test func `a host that does not answer is tried by one job at a time`() async throws {
        let server = try self.server(refusing: 0)
        let url = server.url("")
        server.stop()
        try await withEngine { scope in
            let requests = (1...5).map { scope.request("\(url)\($0)") }
            let ids = try await scope.engine.add(requests, goOn: false).compactMap { $0.job?.id }
            try await scope.engine.runAdded()
            var waiting: [JobRecord] = []
            for id in ids { waiting.append(try await scope.next(id, .waiting)) }
            #expect(waiting.allSatisfy { $0.waitReason == .retry && $0.attempts == 1 })
            let late = try await scope.add("\(url)6")
            let pause = try #require(try await self.pause(of: late, scope))
            #expect(pause.message.contains("does not answer"))
            // Each time that the pause is over one job goes, and its failure makes a longer one.
            for probes in 1...4 {
                let until = try #require(try await self.pause(of: late, scope)?.until)
                try await scope.passTime(to: until)
                while try await self.attempts(ids + [late], scope) < 5 + probes { await Task.yield() }
                while try await self.pause(of: late, scope)?.until == nil,
                    try await scope.job(late).state == .queued
                {
                    await Task.yield()
                }
                #expect(try await self.attempts(ids + [late], scope) == 5 + probes)
                guard try await scope.job(late).state == .queued else { break }
            }
        }
    }

    private func attempts(_ ids: [JobID], _ scope: EngineScope) async throws -> Int {
        var sum = 0
        for id in ids { sum += try await scope.job(id).attempts }
        return sum
    }

    @Test func `a job that a redirect leads to a paused host waits for it`() async throws {
        let target = try self.server(refusing: 1, "Retry-After: 300")
        let director = try ScriptedServer { request, _ in .redirect(to: target.url(request.path)) }
        try await withEngine { scope in
            let first = try await scope.add(director.url("1"))
            let told = try await scope.next(first, .waiting)
            #expect(told.nextTry == scope.now + .seconds(300))
            let direct = try await scope.add(target.url("2"))
            #expect(try await self.pause(of: direct, scope)?.until == told.nextTry)
            let second = try await scope.add(director.url("3"))
            let waiting = try await scope.next(second, .waiting)
            #expect(waiting.waitReason == .host && waiting.nextTry == told.nextTry)
            #expect(target.requests.count == 1 && director.requests.count == 2)
            try await scope.passWait(of: told)
            try await self.complete([first, direct, second], scope)
        }
    }

    @Test func `a lower limit in the configuration makes jobs give way`() async throws {
        let server = try ScriptedServer { request, _ in
            .object(TestObject(size: 1_000_000, seed: 41), for: request).with(.stall(after: 300_000))
        }
        try await withEngine { scope in
            var ids: [JobID] = []
            for number in 1...4 { ids.append(try await scope.add(server.url("\(number)"))) }
            for id in ids { try await scope.waitForBytes(300_000, of: id) }
            var configuration = EngineConfiguration()
            configuration.perHost = 2
            try await scope.engine.reconfigure(configuration)
            while try await scope.engine.counts()[.running] != 2 { await Task.yield() }
            for id in ids.suffix(2) { #expect(try await scope.job(id).forgivenAttempts == 1) }
        }
    }
}
