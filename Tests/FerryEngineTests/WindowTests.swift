import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// Jobs that run at certain hours only; every test begins at 08:00 UTC.
@Suite(.timeLimit(.minutes(5))) struct WindowTests {
    private static let object = TestObject(size: 1_000_000, seed: 41)

    /// Stalls the first answers after 300,000 bytes each.
    private func server(stalls: Int = 1) throws -> ScriptedServer {
        try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request)
            return number < stalls ? reply.with(.stall(after: 300_000)) : reply
        }
    }

    private static func window(_ hours: String) throws -> RunWindow {
        try #require(RunWindow(hours, clock: LocalClock(offset: 0)))
    }

    private static func at(_ text: String) throws -> Timestamp {
        try #require(Timestamp(rfc3339: text))
    }

    @Test func `a job waits for its window, and begins when it opens`() async throws {
        let server = try script([{ .object(Self.object, for: $0) }])
        let window = try Self.window("09:00-10:00")
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.window = window }
            let job = try await scope.job(id)
            #expect(job.state == .waiting && job.waitReason == .schedule)
            #expect(try job.nextTry == Self.at("2027-01-15T09:00:00Z"))
            #expect(job.message == "outside its window 09:00-10:00")
            #expect(server.requests.isEmpty)
            #expect(try await scope.events(of: id, "added").map(\.state) == [.queued])
            try await scope.restart()
            #expect(try await scope.job(id) == job)
            try await scope.passWait(of: job)
            #expect(try await scope.next(id, .completed).attempts == 1)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `a job that runs stops when its window closes, and goes on when it opens`() async throws {
        let server = try self.server()
        let window = try Self.window("22:00-08:30")
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.window = window }
            try await scope.waitForBytes(300_000, of: id)
            try await scope.passTime(to: Self.at("2027-01-15T08:30:00Z"))
            let job = try await scope.next(id, .waiting)
            #expect(job.waitReason == .schedule && job.message == "outside its window 22:00-08:30")
            #expect(try job.nextTry == Self.at("2027-01-15T22:00:00Z"))
            #expect(job.attempts == 1 && job.forgivenAttempts == 1, "it costs no attempt")
            #expect(job.bytesDurable == 300_000)
            try await scope.passWait(of: job)
            let end = try await scope.next(id, .completed)
            #expect(server.ranges == [nil, 300_000])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try end.progressAt.map { try $0 >= Self.at("2027-01-15T22:00:00Z") } == true)
        }
    }

    @Test func `a job that is ready and has no place waits when its window closes`() async throws {
        let window = try Self.window("22:00-08:30")
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add("http://127.0.0.1:1/file.bin") { $0.window = window }
            #expect(try await scope.job(id).state == .queued)
            try await scope.passTime(to: Self.at("2027-01-15T08:30:00Z"))
            #expect(try await scope.next(id, .waiting).waitReason == .schedule)
        }
    }

    @Test(arguments: [true, false])
    func `a person who does not want to wait gets one run until the end of the next window`(isRetry: Bool)
        async throws
    {
        let server = try self.server(stalls: 2)
        let window = try Self.window("09:00-10:00")
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.window = window }
            _ = try await scope.next(id, .waiting)
            #expect(try await scope.steer(isRetry ? .retry : .resume, id).error == nil)
            try await scope.waitForBytes(300_000, of: id)
            try await scope.restart()
            try await scope.waitForBytes(600_000, of: id)
            try await scope.passTime(to: Self.at("2027-01-15T10:00:00Z"))
            let job = try await scope.next(id, .waiting)
            #expect(try job.nextTry == Self.at("2027-01-16T09:00:00Z"))
            #expect(server.ranges == [nil, 300_000])
        }
    }

    @Test func `a window is set, changed and taken away`() async throws {
        let server = try self.server()
        let (closed, open) = (try Self.window("09:00-10:00"), try Self.window("07:00-10:00"))
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.waitForBytes(300_000, of: id)
            #expect(try await scope.set(JobChanges(window: .set(open)), id).state == .running)
            #expect(try await scope.set(JobChanges(window: .set(closed)), id).state == .waiting)
            let job = try await scope.job(id)
            #expect(try job.nextTry == Self.at("2027-01-15T09:00:00Z") && job.forgivenAttempts == 1)
            #expect(try await scope.set(JobChanges(window: .remove), id).error == nil)
            #expect(try await scope.next(id, .completed).state == .completed)
            #expect(server.ranges == [nil, 300_000])
            #expect(try await scope.events(of: id, "set").map(\.message) == ["window", "window", "window"])
        }
    }

    @Test func `a time inside the closed hours waits for the window too`() async throws {
        let server = try script([{ .object(Self.object, for: $0) }])
        let window = try Self.window("22:00-06:00")
        let time = try Self.at("2027-01-15T12:00:00Z")
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) {
                $0.window = window
                $0.notBefore = time
            }
            var job = try await scope.next(id, .waiting)
            #expect(job.nextTry == time)
            try await scope.passWait(of: job)
            job = try await scope.next(id, .waiting)
            #expect(try job.nextTry == Self.at("2027-01-15T22:00:00Z"))
            try await scope.passWait(of: job)
            #expect(try await scope.next(id, .completed).state == .completed)
        }
    }

    @Test func `a pause does not forget the window`() async throws {
        let window = try Self.window("22:00-06:00")
        try await withEngine { scope in
            let id = try await scope.add("http://127.0.0.1:1/file.bin") { $0.window = window }
            #expect(try await scope.steer(.pause, id).state == .paused)
            #expect(try await scope.steer(.resume, id).state == .waiting)
            #expect(try await scope.job(id).waitReason == .schedule)
        }
    }
}

extension JobChanges {
    init(window: Amendment<RunWindow>) {
        self.init()
        self.window = window
    }

    init(after: [JobID]) {
        self.init()
        self.after = after
    }

    init(renew: Amendment<String>) {
        self.init()
        self.renew = renew
    }
}
