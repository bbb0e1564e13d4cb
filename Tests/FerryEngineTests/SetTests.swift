import FerryCore
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

/// What a person changes of a job, and that nothing is put together that does not belong together.
@Suite(.timeLimit(.minutes(5))) struct SetTests {
    private static let object = TestObject(size: 1_000_000, seed: 31)

    /// Stalls the first answer of each path after 300,000 bytes.
    private func server(_ object: TestObject = Self.object) throws -> ScriptedServer {
        try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return number == 0 ? reply.with(.stall(after: 300_000)) : reply
        }
    }

    /// A job that runs and has taken 300,000 bytes.
    private func running(_ scope: EngineScope, _ server: ScriptedServer) async throws -> JobID {
        let id = try await scope.add(server.url("file.bin"))
        try await scope.waitForBytes(300_000, of: id)
        return id
    }

    // MARK: Small things

    @Test func `priority, group and attempts change without a stop`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let id = try await self.running(scope, server)
            let changes = JobChanges(priority: 7, group: "nightly", attempts: 3)
            #expect(try await scope.set(changes, id).state == .running)
            #expect(try await scope.set(changes, id).error == nil)
            let job = try await scope.job(id)
            #expect(job.priority == 7 && job.group == "nightly" && job.state == .running)
            let history = try await scope.engine.history(id)
            #expect(history.attempts.count == 1)
            #expect(
                history.events.filter { $0.kind == "set" }.map(\.message) == ["priority, group, attempts"]
            )
            #expect(try await scope.store.read { try $0.request(id)?.attempts } == 3)
        }
    }

    @Test(arguments: [JobChanges(priority: 101), JobChanges(group: "a b"), JobChanges(url: "ftp://a/b")])
    func `values that no job can have`(changes: JobChanges) async throws {
        let server = try self.server()
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add(server.url("file.bin"))
            let error = await #expect(throws: FerryError.self) { try await scope.set(changes, id) }
            #expect(error?.exitStatus == .usage)
            #expect(try await scope.engine.history(id).events.count == 1)
        }
    }

    @Test(arguments: JobState.allCases)
    func `a change in a state`(state: JobState) async throws {
        let server = try self.server()
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add(server.url("file.bin"))
            if state == .running {
                try await scope.engine.attach(Engine.ClientKey(rawValue: 1), jobs: [id])
                try await scope.waitForBytes(300_000, of: id)
            } else {
                try await scope.put(id, into: state)
            }
            let answer = try #require(try await scope.engine.set(JobChanges(priority: 3), [id]).first)
            #expect((answer.error != nil) == state.isFinal)
            #expect(answer.state == (state == .failed ? .queued : state))
            #expect(try await scope.job(id).priority == (state.isFinal ? 0 : 3))
        }
    }

    @Test func `an unknown job`() async throws {
        try await withEngine { scope in
            let answer = try await scope.set(JobChanges(priority: 3), JobID(rawValue: 77))
            #expect(answer.error == "there is no job 77")
        }
    }

    @Test func `new header fields begin the next attempt, which is no try`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) {
                $0.attempts = 1
                $0.headers = [
                    RequestHeader(name: "X-Old", value: "1"), RequestHeader(name: "X-Key", value: "1"),
                ]
            }
            try await scope.waitForBytes(300_000, of: id)
            try await scope.set(JobChanges(headers: [RequestHeader(name: "x-key", value: "2")]), id)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, 300_000])
            #expect(server.requests.last?.header("X-Key") == "2")
            #expect(server.requests.last?.header("X-Old") == "1")
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    // MARK: Times

    @Test func `a job waits for its time, and begins then`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let id = try await self.running(scope, server)
            let time = scope.now + .seconds(3_600)
            #expect(try await scope.set(JobChanges(notBefore: time), id).state == .waiting)
            var job = try await scope.job(id)
            #expect(job.waitReason == .schedule && job.nextTry == time && job.forgivenAttempts == 1)
            try await scope.passWait(of: job)
            #expect(try await scope.next(id, .completed).state == .completed)
            job = try await scope.job(id)
            #expect(job.progressAt.map { $0 >= time } == true)
        }
    }

    @Test func `a pause does not forget the time, and a resume of a waiting job does not wait for it`()
        async throws
    {
        let server = try self.server()
        try await withEngine(mode: .attached) { scope in
            let time = scope.now + .seconds(3_600)
            let id = try await scope.add(server.url("file.bin")) { $0.notBefore = time }
            #expect(try await scope.job(id).state == .waiting)
            #expect(try await scope.steer(.pause, id).state == .paused)
            #expect(try await scope.steer(.resume, id).state == .waiting)
            #expect(try await scope.job(id).nextTry == time)
            #expect(try await scope.steer(.resume, id).state == .queued)
            #expect(try await scope.job(id).notBefore == nil)
            #expect(try await scope.set(JobChanges(notBefore: time + .seconds(1)), id).state == .waiting)
            #expect(try await scope.set(JobChanges(notBefore: scope.now), id).state == .queued)
        }
    }

    @Test func `what follows from a change`() {
        func job(_ state: JobState, _ reason: WaitReason? = nil, until: Int64 = 100) -> JobRecord {
            JobRecord(
                id: JobID(rawValue: 1),
                state: state,
                waitReason: reason,
                host: "a:1",
                url: "",
                nextTry: reason.map { _ in Timestamp(milliseconds: until) },
                createdAt: Timestamp(milliseconds: 0)
            )
        }
        func moves(_ job: JobRecord, _ time: Int64?, mends: Bool = false) -> [JobEvent] {
            let time = time.map { Timestamp(milliseconds: $0) }
            return Engine.moves(of: job, time, mends: mends, at: Timestamp(milliseconds: 50))
        }
        let at200 = JobEvent.schedule(Timestamp(milliseconds: 200))
        #expect(moves(job(.queued), nil) == [])
        #expect(moves(job(.queued), 200) == [at200])
        #expect(moves(job(.queued), 10) == [])
        #expect(moves(job(.failed), nil) == [.retry])
        #expect(moves(job(.failed), 200) == [.retry, at200])
        #expect(moves(job(.waiting, .retry), nil) == [])
        #expect(moves(job(.waiting, .retry), nil, mends: true) == [.due])
        #expect(moves(job(.waiting, .retry), 200) == [at200])
        #expect(moves(job(.waiting, .retry, until: 300), 200) == [])
        #expect(moves(job(.waiting, .schedule), 10) == [.due])
        #expect(moves(job(.waiting, .schedule), nil, mends: true) == [])
        #expect(moves(job(.waiting, .schedule, until: 300), 200) == [at200])
    }

    // MARK: Another URL

    struct Other: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var object = SetTests.object
        /// What the new URL's server answers.
        let reply: @Sendable (TestObject, RecordedRequest) -> Reply
        /// Nil if the URL is taken.
        let refusal: String?
        /// Where the next request begins.
        var from: Int64? = 300_000
    }

    @Test(arguments: [
        Other(testDescription: "the same tag", reply: { .object($0, for: $1) }, refusal: nil),
        Other(
            testDescription: "no validator, the same size and bytes",
            reply: { .object($0, for: $1, quirks: [.noTag, .noLastModified]) },
            refusal: nil,
            from: 300_000 - ResumePlan.overlapBytes
        ),
        Other(
            testDescription: "another tag, the same size and bytes",
            reply: { SetTests.tagged(.object($0, for: $1), "W/\"other\"") },
            refusal: nil,
            from: 300_000 - ResumePlan.overlapBytes
        ),
        Other(
            testDescription: "the same size, other bytes",
            object: SetTests.object.changed(),
            reply: { .object($0, for: $1) },
            refusal: "has other bytes"
        ),
        Other(
            testDescription: "the same tag, other bytes",
            object: SetTests.object.changed(),
            reply: { SetTests.tagged(.object($0, for: $1), SetTests.object.etag) },
            refusal: "has other bytes"
        ),
        Other(
            testDescription: "another size",
            object: SetTests.object.changed(size: 1_000_001),
            reply: { .object($0, for: $1) },
            refusal: "has another size, tag or date"
        ),
        Other(
            testDescription: "neither size nor validator",
            reply: { .object($0, for: $1, quirks: [.noTag, .noLastModified, .unknownTotal]) },
            refusal: "neither the size nor the validator"
        ),
        Other(
            testDescription: "an error",
            reply: { _, _ in Reply(404) },
            refusal: "answered 404"
        ),
    ])
    func `another URL is taken if the object is the same`(_ other: Other) async throws {
        let server = try self.server()
        let mirror = try ScriptedServer { request, _ in other.reply(other.object, request) }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) {
                $0.headers = [RequestHeader(name: "Authorization", value: "secret")]
            }
            try await scope.waitForBytes(300_000, of: id)
            try await scope.steer(.pause, id)
            let before = try await scope.job(id)
            let answer = try await scope.set(JobChanges(url: mirror.url("copy.bin")), id)
            #expect(answer.state == .paused)
            #expect(mirror.requests.first?.header("Authorization") == nil)
            guard let refusal = other.refusal else {
                #expect(answer.error == nil)
                try await scope.steer(.resume, id)
                let job = try await scope.end(of: id)
                #expect(job.state == .completed && job.url == mirror.url("copy.bin"))
                #expect(mirror.ranges == [300_000 - ResumePlan.overlapBytes, other.from])
                #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
                return
            }
            #expect(answer.error?.hasPrefix("job \(id) is left as it was: ") == true)
            #expect(answer.error?.contains(refusal) == true, "\(answer)")
            #expect(try await scope.job(id) == before)
            #expect(mirror.requests.count == 1)
        }
    }

    @Test func `a running job goes on from another URL`() async throws {
        let server = try self.server()
        let mirror = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.attempts = 1 }
            try await scope.waitForBytes(300_000, of: id)
            // What is compared is what is durable.
            while try await scope.job(id).bytesDurable == 0 {
                scope.clock.advance(by: .seconds(2))
                await Task.yield()
            }
            #expect(try await scope.set(JobChanges(url: mirror.url("copy.bin")), id).error == nil)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(mirror.ranges.last == 300_000)
            #expect(server.requests.count == 1)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `a failed job is queued by a URL that works`() async throws {
        let server = try ScriptedServer { request, _ in
            request.path == "/good.bin" ? .object(Self.object, for: request) : Reply(404)
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("bad.bin"))
            #expect(job.state == .failed)
            let refused = try await scope.set(JobChanges(url: server.url("worse.bin")), job.id)
            #expect(refused.state == .failed && refused.error != nil)
            #expect(try await scope.set(JobChanges(url: server.url("good.bin")), job.id).error == nil)
            #expect(try await scope.next(job.id, .completed).path?.hasSuffix("/good.bin") == true)
        }
    }

    private static func tagged(_ reply: Reply, _ tag: String) -> Reply {
        var reply = reply
        reply.headers = reply.headers.map { $0.hasPrefix("ETag:") ? "ETag: \(tag)" : $0 }
        return reply
    }

    // MARK: Another file

    @Test(arguments: ["data/other.bin", "elsewhere/other.bin"])
    func `a partial goes on under another name`(path: String) async throws {
        let server = try self.server()
        try await withEngine { scope in
            _ = try scope.folder.makeFolder("elsewhere")
            let id = try await self.running(scope, server)
            let answer = try await scope.set(JobChanges(output: scope.folder.file(path)), id)
            #expect(answer.error == nil)
            #expect(try await scope.end(of: id).path == scope.folder.file(path))
            #expect(server.ranges == [nil, 300_000])
            #expect(try Self.object.matches(scope.folder.file(path)) == nil)
            #expect(try scope.names + scope.folder.names(in: "elsewhere") == ["other.bin"])
            #expect(try await scope.store.read { try $0.cleanups() }.isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `a partial is found where its folder was moved to`(hasPartial: Bool) async throws {
        let server = try self.server()
        try await withEngine { scope in
            let id = try await self.running(scope, server)
            _ = try await scope.steer(.pause, id)
            try #require(rename(scope.folder.file("data"), scope.folder.file("moved")) == 0)
            if !hasPartial {
                for name in try scope.folder.names(in: "moved") {
                    try #require(unlink(scope.folder.file("moved/\(name)")) == 0)
                }
            }
            let path = scope.folder.file("moved/other.bin")
            #expect(try await scope.set(JobChanges(output: path), id).error == nil)
            _ = try await scope.steer(.resume, id)
            #expect(try await scope.end(of: id).path == path)
            #expect(server.ranges == [nil, hasPartial ? 300_000 : nil])
            #expect(try Self.object.matches(path) == nil)
            #expect(try scope.folder.names(in: "moved") == ["other.bin"])
        }
    }

    @Test func `a file that cannot be had is refused`() async throws {
        let server = try self.server()
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add(server.url("file.bin"))
            let other = try await scope.add(server.url("other")) {
                $0.output = scope.folder.file("data/taken")
            }
            try scope.folder.write("data/there", "there")
            for (name, problem) in [
                ("data/there", "exists"), ("data/taken", "job \(other) is going to write"),
                ("nowhere/x", "No such file"),
            ] {
                let answer = try await scope.set(JobChanges(output: scope.folder.file(name)), id)
                #expect(answer.error?.contains(problem) == true, "\(answer)")
            }
            #expect(try await scope.store.read { try $0.request(id)?.output } == nil)
            #expect(try await scope.set(JobChanges(output: scope.folder.file("data/free")), id).error == nil)
            #expect(
                try await scope.store.read {
                    try $0.reservation(directory: scope.target, name: "free")
                } == id
            )
        }
    }
}
