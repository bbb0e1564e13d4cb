import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// Jobs that have to be done by some time.
@Suite(.timeLimit(.minutes(5))) struct DeadlineTests {
    private static let object = TestObject(size: 1_000_000, seed: 9)

    private static let bad: @Sendable (RecordedRequest) -> Reply = { _ in
        Reply(502, headers: ["Retry-After: 50"])
    }
    private static let slow: @Sendable (RecordedRequest) -> Reply = {
        .object(Self.object, for: $0).with(.stall(after: 300_000))
    }

    /// Lets time pass up to a moment, once the engine sleeps until then.
    private func pass(to time: Timestamp, _ scope: EngineScope) async throws {
        let end = scope.clock.now.advanced(by: time - scope.now)
        while !scope.clock.wakeTimes.contains(end) { await Task.yield() }
        scope.clock.advance(by: time - scope.now)
    }

    @Test(arguments: [false, true]) func `a waiting job gives up`(restarts: Bool) async throws {
        let server = try script([Self.bad])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.deadlineMs = 70_000 }
            let end = scope.now + .seconds(70)
            try await scope.passWait(of: scope.next(id, .waiting))
            _ = try await scope.next(id, .waiting)
            #expect(try await scope.engine.job(id)?.deadline == end)
            if restarts { try await scope.restart() }
            try await self.pass(to: end, scope)
            let job = try await scope.next(id, .failed)
            #expect(job.failureReason == .gaveUp)
            #expect(job.message?.contains("its deadline has passed; before that: localhost") == true)
            #expect(job.message?.contains("502") == true, "the last cause is kept")
            #expect(job.advice?.contains("ferry set \(id) --deadline") == true)
            #expect(job.finishedAt == end && server.requests.count == 2)
        }
    }

    @Test func `a running job gives up, and keeps what it has`() async throws {
        let server = try script([Self.slow, { .object(Self.object, for: $0) }])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.deadlineMs = 3_600_000 }
            try await scope.waitForBytes(300_000, of: id)
            try await self.pass(to: scope.now + .seconds(3_600), scope)
            let job = try await scope.next(id, .failed)
            #expect(job.failureReason == .gaveUp && job.message == "its deadline has passed")
            #expect(job.bytesDurable == 300_000)
            // A person's wish gives it all of its time again.
            try await scope.steer(.retry, id)
            #expect(try await scope.next(id, .completed).state == .completed)
            #expect(server.ranges == [nil, 300_000])
        }
    }

    @Test func `a queued job gives up where nothing runs it`() async throws {
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add("http://localhost:1/file") { $0.deadlineMs = 60_000 }
            try await self.pass(to: scope.now + .seconds(60), scope)
            #expect(try await scope.next(id, .failed).failureReason == .gaveUp)
        }
    }

    @Test func `one that passes while no service lives is seen at the start`() async throws {
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add("http://localhost:1/file") { $0.deadlineMs = 60_000 }
            try await scope.engine.stop()
            scope.clock.advance(by: .seconds(100))
            try await scope.restart()
            #expect(try await scope.next(id, .failed).failureReason == .gaveUp)
        }
    }

    @Test func `a paused job does not run out`() async throws {
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add("http://localhost:1/file") { $0.deadlineMs = 60_000 }
            try await scope.steer(.pause, id)
            try await self.pass(to: scope.now + .seconds(60), scope)
            scope.clock.advance(by: .seconds(1_000))
            #expect(try await scope.job(id).state == .paused)
            try await scope.steer(.resume, id)
            #expect(try await scope.next(id, .queued).state == .queued)
            try await self.pass(to: scope.now + .seconds(60), scope)
            #expect(try await scope.next(id, .failed).failureReason == .gaveUp)
        }
    }

    @Test func `a pause that ends in time leaves the deadline as it is`() async throws {
        try await withEngine(mode: .attached) { scope in
            let end = scope.now + .seconds(60)
            let id = try await scope.add("http://localhost:1/file") { $0.deadlineMs = 60_000 }
            try await scope.steer(.pause, id)
            scope.clock.advance(by: .seconds(20))
            try await scope.steer(.resume, id)
            try await self.pass(to: end, scope)
            #expect(try await scope.next(id, .failed).finishedAt == end)
        }
    }

    @Test func `it can be changed, and taken away`() async throws {
        try await withEngine(mode: .attached) { scope in
            let ids = [
                try await scope.add("http://localhost:1/a") { $0.deadlineMs = 60_000 },
                try await scope.add("http://localhost:1/b") { $0.deadlineMs = 60_000 },
                try await scope.add("http://localhost:1/c"),
            ]
            var changes = JobChanges()
            changes.deadlineMs = 100_000
            try await scope.set(changes, ids[0])
            changes.deadlineMs = 0
            try await scope.set(changes, ids[1])
            changes.deadlineMs = 30_000
            try await scope.set(changes, ids[2])
            let start = scope.now
            try await self.pass(to: start + .seconds(30), scope)
            #expect(try await scope.next(ids[2], .failed).finishedAt == start + .seconds(30))
            try await self.pass(to: start + .seconds(60), scope)
            try await self.pass(to: start + .seconds(100), scope)
            #expect(try await scope.next(ids[0], .failed).finishedAt == start + .seconds(100))
            #expect(try await scope.job(ids[1]).state == .queued)
        }
    }

    @Test(arguments: [31_536_000, -31_536_000])
    func `a clock that is set changes none`(seconds: Int) async throws {
        try await withEngine(mode: .attached) { scope in
            let end = scope.clock.now.advanced(by: .seconds(60))
            let id = try await scope.add("http://localhost:1/file") { $0.deadlineMs = 60_000 }
            scope.setClock(ahead: .seconds(seconds))
            try await scope.engine.clockMayHaveBeenSet()
            #expect(try await scope.job(id).state == .queued)
            try await scope.restart()
            while !scope.clock.wakeTimes.contains(end) { await Task.yield() }
            scope.clock.advance(by: .seconds(60))
            #expect(try await scope.next(id, .failed).failureReason == .gaveUp)
        }
    }
}
