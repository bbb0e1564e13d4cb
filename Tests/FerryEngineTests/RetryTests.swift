import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// When a job is tried again, and when it gives up.
@Suite(.timeLimit(.minutes(5))) struct RetryTests {
    private static let object = TestObject(size: 1_000_000, seed: 6)

    private static func answer(_ status: Int, _ headers: String...) -> @Sendable (RecordedRequest) -> Reply {
        { _ in Reply(status, headers: headers) }
    }

    private static let honest: @Sendable (RecordedRequest) -> Reply = { .object(object, for: $0) }

    @Test(arguments: [429, 503])
    func `a pause that the server asks for is kept and is no try`(status: Int) async throws {
        let pause = Self.answer(status, "Retry-After: 120")
        let server = try script([pause, pause, pause, Self.honest])
        try await withEngine { scope in
            let start = scope.now
            let id = try await scope.add(server.url("file.bin")) { $0.attempts = 1 }
            let waiting = try await scope.next(id, .waiting)
            #expect(waiting.waitReason == .host)
            #expect(waiting.nextTry == start + .seconds(120))
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(scope.now == start + .seconds(360))
        }
    }

    @Test func `a time that comes with another error is the least`() async throws {
        let server = try script([Self.answer(502, "Retry-After: 60"), Self.honest])
        try await withEngine { scope in
            let start = scope.now
            let id = try await scope.add(server.url("file.bin"))
            let waiting = try await scope.next(id, .waiting)
            #expect(waiting.waitReason == .retry)
            #expect(waiting.nextTry == start + .seconds(60))
            #expect(waiting.message?.contains("502") == true)
        }
    }

    @Test func `the time of the next try survives the service`() async throws {
        let server = try script([Self.answer(502, "Retry-After: 600"), Self.honest])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            let waiting = try await scope.next(id, .waiting)
            try await scope.restart()
            #expect(try await scope.job(id) == waiting)
            scope.clock.advance(by: .seconds(599))
            try await scope.restart()
            #expect(try await scope.job(id) == waiting)
            #expect(server.requests.count == 1)
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
        }
    }

    @Test func `doubtful answers are tried eight times`() async throws {
        let server = try script([Self.answer(500)])
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .failed)
            #expect(job.failureReason == .server)
            #expect(server.requests.count == 8)
        }
    }

    @Test func `a person's retry starts the counts anew`() async throws {
        let bad = Self.answer(500)
        let server = try script(Array(repeating: bad, count: 15) + [Self.honest])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            #expect(try await scope.end(of: id).state == .failed)
            #expect(try await scope.steer(.retry, id).error == nil)
            let job = try await scope.end(of: id)
            #expect(job.state == .completed)
            #expect(job.attempts == 16)
        }
    }

    @Test func `the user's limit of tries holds`() async throws {
        let server = try script([Self.answer(502)])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.attempts = 3 }
            let job = try await scope.end(of: id)
            #expect(job.state == .failed)
            #expect(job.failureReason == .gaveUp)
            #expect(job.message?.contains("502") == true, "the last cause is kept")
            #expect(server.requests.count == 3)
            try await scope.steer(.retry, id)
            #expect(try await scope.end(of: id).failureReason == .gaveUp)
            #expect(server.requests.count == 6)
        }
    }

    @Test(arguments: [(false, 14 * 86_400), (true, 3_600)])
    func `it gives up after a long time without progress`(foreground: Bool, limit: Int) async throws {
        let server = try script([Self.answer(502)])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.foreground = foreground }
            try await scope.passWait(of: scope.next(id, .waiting), atLeast: .seconds(limit - 1))
            try await scope.passWait(of: scope.next(id, .waiting), atLeast: .seconds(1))
            let job = try await scope.next(id, .waiting, .failed)
            #expect(job.failureReason == .gaveUp)
            #expect(server.requests.count == 3)
        }
    }

    @Test func `progress starts the counts anew`() async throws {
        let bad = Array(repeating: Self.answer(500), count: 7)
        let some: @Sendable (RecordedRequest) -> Reply = {
            .object(Self.object, for: $0).with(.cut(after: 300_000))
        }
        let server = try script(bad + [some] + bad + [Self.honest])
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed)
            #expect(job.attempts == 16)
            #expect(server.ranges.suffix(8) == Array(repeating: 300_000, count: 8)[...])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test(arguments: [
        (404, FailureReason.notFound), (403, .forbidden), (401, .unauthorized), (451, .notFound),
        (418, .server),
        (501, .unsupported), (413, .tooLarge), (304, .badResponse),
    ])
    func `an answer that time does not change fails the job at once`(_ status: Int, _ reason: FailureReason)
        async throws
    {
        let server = try script([Self.answer(status)])
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.attempts = 1 }
            #expect(job.state == .failed)
            #expect(job.failureReason == reason)
            #expect(try scope.names.isEmpty)
        }
    }

    @Test func `the server's own words are shown`() async throws {
        let server = try ScriptedServer { _, _ in .text(404, "no such \u{1b}release\nmore") }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(
                job.message == "localhost:\(server.port) answered 404 (not found): no such \\u{1B}release"
            )
        }
    }

    @Test func `a link that had worked has expired`() async throws {
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 300_000)) }, Self.answer(403),
        ])
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.failureReason == .linkExpired)
            #expect(job.bytesDurable == 300_000, "what is there is kept")
        }
    }

    @Test func `a refused port is tried again`() async throws {
        let url = "http://127.0.0.1:\(try freePort())/file"
        try await withEngine { scope in
            let id = try await scope.add(url)
            let job = try await scope.next(id, .waiting, .failed)
            #expect(job.state == .waiting)
            #expect(job.waitReason == .retry)
        }
    }

    @Test func `history tells attempts, hops and events`() async throws {
        let server = try script([Self.answer(502), Self.honest])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin?token=secret"))
            _ = try await scope.end(of: id)
            let history = try await scope.engine.history(id)
            #expect(history.attempts.map(\.number) == [1, 2])
            #expect(history.attempts.map(\.outcome) == ["retry", "completed"])
            #expect(history.attempts.map(\.received) == [0, 1_000_000])
            #expect(history.attempts.allSatisfy { $0.endedAt != nil })
            #expect(history.hops.map(\.status) == [502, 200])
            #expect(history.hops.map(\.url) == Array(repeating: server.url("file.bin?token=***"), count: 2))
            #expect(
                history.events.map(\.kind) == [
                    "added", "started", "waiting", "queued", "started", "completed",
                ]
            )
        }
    }
}
