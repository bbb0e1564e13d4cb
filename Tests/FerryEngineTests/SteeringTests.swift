import FerryCore
import FerryStore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryEngine

extension EngineScope {
    /// Puts a job that does not run into a state, with what the database requires of it.
    func put(_ id: JobID, into state: JobState) async throws {
        let now = self.now
        try await self.store.write { transaction in
            guard var job = try transaction.job(id) else { return }
            job.state = state
            job.waitReason = state == .waiting ? .retry : nil
            job.nextTry = state == .waiting ? now + .seconds(3_600) : nil
            job.failureReason = state == .failed ? .notFound : nil
            job.finishedAt = state.isEnded ? now : nil
            try transaction.save(job)
        }
    }
}

/// What a person does to jobs, and who makes them run.
@Suite(.timeLimit(.minutes(5))) struct SteeringTests {
    private static let size: Int64 = 1_000_000
    private static let object = TestObject(size: size, seed: 8)

    /// Stalls the first answer after 300,000 bytes.
    private func stallingServer() throws -> ScriptedServer {
        try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request)
            return number == 0 ? reply.with(.stall(after: 300_000)) : reply
        }
    }

    // MARK: Every action from every state

    enum Action: String, CaseIterable {
        case pause, resume, retry, cancel, remove

        var steering: Engine.Steering {
            switch self {
            case .pause: .pause
            case .resume: .resume
            case .retry: .retry
            case .cancel: .cancel(keepPartial: false)
            case .remove: .remove
            }
        }
    }

    /// The state after an action; nil if it is refused.
    private static let table: [Action: [JobState: JobState]] = [
        .pause: [.queued: .paused, .running: .paused, .waiting: .paused, .paused: .paused],
        .resume: [.queued: .queued, .running: .running, .waiting: .queued, .paused: .queued],
        .retry: [.queued: .queued, .running: .running, .waiting: .queued, .failed: .queued],
        .cancel: [
            .queued: .cancelled, .running: .cancelled, .waiting: .cancelled, .paused: .cancelled,
            .failed: .cancelled, .cancelled: .cancelled,
        ],
        .remove: [:],
    ]

    @Test(arguments: Action.allCases, JobState.allCases)
    func `an action from a state`(_ action: Action, _ state: JobState) async throws {
        let server = try self.stallingServer()
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add(server.url("file.bin"))
            if state == .running {
                try await scope.engine.attach(Engine.ClientKey(rawValue: 1), jobs: [id])
                try await scope.waitForBytes(300_000, of: id)
            } else {
                try await scope.put(id, into: state)
            }
            let steered = try #require(try await scope.engine.steer(action.steering, [id]).first)
            if action == .remove, state.isEnded {
                #expect(steered.error == nil)
                #expect(steered.state == nil)
                #expect(try await scope.engine.job(id) == nil)
                return
            }
            let expected = Self.table[action]?[state]
            #expect((steered.error == nil) == (expected != nil), "\(steered.error ?? "")")
            #expect(steered.error?.hasPrefix("job \(id) is ") ?? true)
            #expect(steered.state == expected ?? state)
            #expect(try await scope.job(id).state == expected ?? state)
        }
    }

    @Test(arguments: Action.allCases)
    func `an unknown job`(_ action: Action) async throws {
        try await withEngine { scope in
            let steered = try await scope.steer(action.steering, JobID(rawValue: 77))
            #expect(steered.error == "there is no job 77")
            #expect(steered.state == nil)
        }
    }

    // MARK: Transfers

    @Test func `a pause keeps the bytes and a resume asks for the rest`() async throws {
        let server = try self.stallingServer()
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.attempts = 1 }
            try await scope.waitForBytes(300_000, of: id)
            #expect(try await scope.steer(.pause, id).state == .paused)
            #expect(try await scope.job(id).bytesDurable == 300_000)
            #expect(try await scope.engine.progress().isEmpty)
            try await scope.steer(.resume, id)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, 300_000])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    /// One byte in what was committed is overwritten in place: inode, size and validator are as they were.
    @Test func `a partial that was edited while its job was paused is not built on`() async throws {
        let server = try self.stallingServer()
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.waitForBytes(300_000, of: id)
            try await scope.steer(.pause, id)
            let partial = scope.folder.file("data/.file.bin.\(id).ferry-part")
            let descriptor = open(partial, O_WRONLY)
            var wrong = try #require(Self.object.bytes(1_000..<1_001).first) ^ 0xFF
            #expect(pwrite(descriptor, &wrong, 1, 1_000) == 1)
            close(descriptor)
            try await scope.steer(.resume, id)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, nil])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test func `a partial is gone before its job says that it is cancelled`() async throws {
        let server = try self.stallingServer()
        try await withEngine { scope in
            let left = Watched<[String]?>(nil)
            let folder = scope.folder
            scope.onChange.withLock {
                $0 = { change in
                    guard change.job?.state == .cancelled else { return }
                    let names = (try? folder.names(in: "data")) ?? ["?"]
                    left.update { $0 = names }
                }
            }
            let id = try await scope.add(server.url("file.bin"))
            try await scope.waitForBytes(300_000, of: id)
            #expect(try scope.names == [".file.bin.\(id).ferry-part"])
            #expect(try await scope.steer(.cancel(keepPartial: false), id).state == .cancelled)
            #expect(left.value == [])
            #expect(try await scope.store.read { try $0.cleanups() }.isEmpty)
        }
    }

    @Test func `a cancelled job may leave its partial`() async throws {
        let server = try self.stallingServer()
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.waitForBytes(300_000, of: id)
            #expect(try await scope.steer(.cancel(keepPartial: true), id).state == .cancelled)
            let name = ".file.bin.\(id).ferry-part"
            #expect(try scope.names == [name])
            #expect(try Self.object.matchesStart(scope.folder.file("data/\(name)")) == nil)
        }
    }

    @Test func `a file that took the place of a partial is not removed`() async throws {
        let server = try self.stallingServer()
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.waitForBytes(300_000, of: id)
            try await scope.steer(.pause, id)
            let name = "data/.file.bin.\(id).ferry-part"
            try scope.folder.write("other", "other")
            try #require(rename(scope.folder.file("other"), scope.folder.file(name)) == 0)
            try await scope.steer(.cancel(keepPartial: false), id)
            #expect(try scope.folder.text(name) == "other")
        }
    }

    @Test func `a failed job's partial goes when it is forgotten`() async throws {
        let server = try ScriptedServer { request, number in
            number == 0 ? .object(Self.object, for: request).with(.cut(after: 300_000)) : Reply(404)
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .failed)
            #expect(try scope.names == [".file.bin.\(job.id).ferry-part"])
            #expect(try await scope.steer(.remove, job.id).error == nil)
            #expect(try scope.names.isEmpty)
        }
    }

    /// What was wrong: the claim's job was not yet known to run, so the pause was committed after the claim, and
    /// the transfer ran all the same.
    @Test func `a pause in the moment of a claim is not overtaken`() async throws {
        let server = try self.stallingServer()
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add(server.url("file.bin"))
            let gate = Gate()
            let blocked = Task {
                try await scope.store.write { _ in _ = gate.waitBlocking(timeout: .seconds(30)) }
            }
            let attached = Task { try await scope.engine.attachAll(Engine.ClientKey(rawValue: 1)) }
            while try await scope.engine.progress().isEmpty { await Task.yield() }
            let paused = Task { try await scope.engine.steer(.pause, [id]).first }
            gate.open()
            #expect(try await paused.value?.state == .paused)
            try await blocked.value
            try await attached.value
            #expect(try await scope.engine.progress().isEmpty)
            #expect(try await scope.job(id).state == .paused)
            #expect(try await scope.job(id).forgivenAttempts == 1)
        }
    }

    @Test func `a stop in the moment of a claim waits for it`() async throws {
        let server = try self.stallingServer()
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add(server.url("file.bin"))
            let gate = Gate()
            let blocked = Task {
                try await scope.store.write { _ in _ = gate.waitBlocking(timeout: .seconds(30)) }
            }
            let engine = try scope.engine
            let attached = Task { await engine.attachAll(Engine.ClientKey(rawValue: 1)) }
            while await engine.progress().isEmpty { await Task.yield() }
            let stopped = Task { await engine.stop() }
            gate.open()
            await stopped.value
            try await blocked.value
            await attached.value
            #expect(await engine.progress().isEmpty)
            let job = try await scope.job(id)
            #expect(job.state == .queued)
            #expect(job.attempts - job.forgivenAttempts == 0)
        }
    }

    // MARK: Clients and services

    @Test func `an on-demand service runs what a client stands for`() async throws {
        let server = try self.stallingServer()
        try await withEngine(mode: .attached) { scope in
            let client = Engine.ClientKey(rawValue: 1)
            let wanted = try await scope.add(server.url("a/file.bin")) { $0.attempts = 1 }
            let other = try await scope.add(server.url("b/other.bin"))
            #expect(try await !scope.engine.isWanted(wanted))
            try await scope.engine.attach(client, jobs: [wanted])
            #expect(try await scope.engine.isWanted(wanted))
            #expect(try await !scope.engine.isWanted(other))
            _ = try await scope.next(wanted, .running)
            try await scope.waitForBytes(300_000, of: wanted)
            try await scope.engine.detach(client)
            let queued = try await scope.next(wanted, .queued)
            #expect(queued.bytesDurable == 300_000)
            #expect(queued.attempts - queued.forgivenAttempts == 0)
            #expect(try await scope.job(other).state == .queued)
            #expect(server.requests.map(\.path) == ["/a/file.bin"])
            try await scope.engine.attach(Engine.ClientKey(rawValue: 2), jobs: [wanted])
            #expect(try await scope.end(of: wanted).state == .completed)
            try await scope.engine.attachAll(Engine.ClientKey(rawValue: 3))
            #expect(try await scope.engine.runsAll)
            try await scope.waitForBytes(300_000, of: other)
        }
    }

    @Test func `a job that two clients stand for goes on when one leaves`() async throws {
        let gate = Gate()
        let server = try ScriptedServer { request, _ in
            .object(Self.object, for: request).with(.stall(after: 300_000, until: gate))
        }
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add(server.url("file.bin"))
            for client in [1, 2] as [UInt64] {
                try await scope.engine.attach(Engine.ClientKey(rawValue: client), jobs: [id])
            }
            try await scope.waitForBytes(300_000, of: id)
            try await scope.engine.detach(Engine.ClientKey(rawValue: 1))
            gate.open()
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `the next service goes on where one was stopped`() async throws {
        let server = try self.stallingServer()
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.attempts = 1 }
            try await scope.waitForBytes(300_000, of: id)
            try await scope.restart()
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, 300_000])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `counts and filters`() async throws {
        try await withEngine(mode: .attached) { scope in
            let first = try await scope.add("https://example.org/1") { $0.group = "g" }
            try await scope.add("https://example.org/2")
            try await scope.put(first, into: .paused)
            #expect(try await scope.engine.counts().filter { $0.value > 0 } == [.paused: 1, .queued: 1])
            #expect(try await scope.engine.jobs(JobFilter(groups: ["g"])).map(\.job.id) == [first])
            #expect(try await scope.engine.job(first)?.live == nil)
        }
    }
}
