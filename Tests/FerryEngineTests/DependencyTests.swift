import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// Jobs that come after others.
@Suite(.timeLimit(.minutes(5))) struct DependencyTests {
    private static let object = TestObject(size: 200_000, seed: 43)

    /// Serves everything but what lies below `/missing`; `/slow` waits for the gate.
    private func server(_ gate: Gate = Gate()) throws -> ScriptedServer {
        try ScriptedServer { request, _ in
            if request.path.hasPrefix("/missing") { return Reply(404) }
            let reply = Reply.object(Self.object, for: request)
            return request.path.hasPrefix("/slow") ? reply.with(.hold(gate)) : reply
        }
    }

    @Test func `a chain of jobs runs in order, over a restart of the service`() async throws {
        let gate = Gate()
        let server = try self.server(gate)
        try await withEngine { scope in
            let first = try await scope.add(server.url("slow"))
            let second = try await scope.add(server.url("b")) { $0.after = [first] }
            let third = try await scope.add(server.url("c")) { $0.after = [first, second] }
            let job = try await scope.job(third)
            #expect(job.state == .waiting && job.waitReason == .schedule && job.nextTry == nil)
            #expect(job.message == "after jobs 1, 2" && job.after == [first, second])
            #expect(try await scope.job(second).message == "after job 1")
            try await scope.restart()
            #expect(try await scope.job(third) == job)
            gate.open()
            for id in [first, second, third] {
                #expect(try await scope.next(id, .completed).state == .completed)
            }
            #expect(server.requests.map(\.path).suffix(2) == ["/b", "/c"])
            #expect(try await scope.events(of: third, "queued").count == 1)
            #expect(try await scope.store.read { try $0.dependencies(of: third) }.isEmpty)
        }
    }

    @Test func `what comes after a paused job says so, and that it is not paused any more`() async throws {
        let gate = Gate()
        let server = try self.server(gate)
        try await withEngine { scope in
            let first = try await scope.add(server.url("slow"))
            let other = try await scope.add(server.url("slow2"))
            let after = try await scope.add(server.url("b")) { $0.after = [first] }
            let both = try await scope.add(server.url("c")) { $0.after = [first, other] }
            #expect(try await scope.steer(.pause, first).state == .paused)
            #expect(try await scope.job(after).message == "after job 1, which is paused")
            #expect(try await scope.job(both).message == "after jobs 1, 2, of which 1 is paused")
            let told = try await scope.events(of: after, "waiting")
            #expect(told.last?.message == "after job 1, which is paused")
            #expect(told.last?.reason == "schedule")
            // So does one that is new.
            let new = try await scope.add(server.url("d")) { $0.after = [first] }
            #expect(try await scope.job(new).message == "after job 1, which is paused")
            try await scope.restart()
            #expect(try await scope.job(after).message == "after job 1, which is paused")
            #expect(try await scope.steer(.resume, first).error == nil)
            #expect(try await scope.job(after).message == "after job 1")
            #expect(try await scope.job(both).message == "after jobs 1, 2")
            gate.open()
            for id in [after, both, new] {
                #expect(try await scope.next(id, .completed).state == .completed)
            }
        }
    }

    @Test(
        arguments: [
            ([.queued], "after job 1"), ([.paused], "after job 1, which is paused"),
            ([.running, .waiting], "after jobs 1, 2"),
            ([.paused, .paused], "after jobs 1, 2, which are paused"),
            ([.paused, .queued, .queued], "after jobs 1, 2, 3, of which 1 is paused"),
            ([.queued, .paused, .paused], "after jobs 1, 2, 3, of which 2, 3 are paused"),
        ] as [([JobState], String)]
    )
    func `what a job waits for in words`(states: [JobState], message: String) {
        let others = states.enumerated().map {
            Dependency(id: JobID(rawValue: Int64($0.offset + 1)), state: $0.element)
        }
        #expect(JobSchedule.message(after: others) == message)
    }

    @Test func `what comes after a job that fails fails too, and can be tried again with it`() async throws {
        let server = try self.server()
        try await withEngine(mode: .attached) { scope in
            let first = try await scope.add(server.url("missing"))
            let second = try await scope.add(server.url("b")) { $0.after = [first] }
            let third = try await scope.add(server.url("c")) { $0.after = [second] }
            let other = try await scope.add(server.url("d")) { $0.after = [first] }
            #expect(try await scope.steer(.pause, other).state == .paused)
            try await scope.engine.attachAll(Engine.ClientKey(rawValue: 1))
            let failed = try await scope.next(third, .failed)
            #expect(failed.failureReason == .dependency && failed.finishedAt != nil)
            #expect(failed.message == "job 2, which it comes after, has failed")
            #expect(failed.advice?.contains("ferry retry 2 3") == true)
            #expect(try await scope.job(second).advice?.contains("ferry retry 1 2") == true)
            #expect(server.requests(for: "/b").isEmpty && server.requests(for: "/c").isEmpty)

            // One alone fails as before; all of them wait again.
            let again = try await scope.steer(.retry, third)
            #expect(again.state == .failed && again.error?.contains("job 2, which it comes after") == true)
            #expect(try await scope.steer(.resume, other).state == .failed)
            try await scope.engine.detach(Engine.ClientKey(rawValue: 1))
            let steered = try await scope.engine.steer(.retry, [first, second, third])
            #expect(steered.map(\.state) == [.queued, .waiting, .waiting])
            #expect(steered.allSatisfy { $0.error == nil })
        }
    }

    @Test(arguments: [true, false])
    func `what comes after a job that was cancelled fails, and goes on without it`(isRemoved: Bool)
        async throws
    {
        let server = try self.server()
        try await withEngine(mode: .attached) { scope in
            let first = try await scope.add(server.url("a"))
            let second = try await scope.add(server.url("b")) { $0.after = [first] }
            #expect(try await scope.steer(.cancel(keepPartial: false), first).state == .cancelled)
            let failed = try await scope.job(second)
            #expect(failed.failureReason == .dependency)
            #expect(failed.message == "job 1, which it comes after, was cancelled")
            #expect(failed.advice == "ferry set 2 --after none waits for it no longer")
            if isRemoved {
                #expect(try await scope.steer(.remove, first).error == nil)
                let refused = try await scope.steer(.retry, second)
                #expect(refused.state == .failed && refused.error != nil)
            }
            #expect(try await scope.set(JobChanges(after: []), second).state == .queued)
            #expect(try await scope.job(second).after == [])
        }
    }

    @Test func `a job after one that has ended`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let good = try await scope.fetch(server.url("a")).id
            let bad = try await scope.fetch(server.url("missing")).id
            let after = try await scope.fetch(server.url("b")) { $0.after = [good] }
            #expect(after.state == .completed)
            let failed = try await scope.fetch(server.url("c")) { $0.after = [good, bad] }
            #expect(failed.state == .failed && failed.failureReason == .dependency)
            #expect(try await scope.events(of: failed.id, "added").count == 1)
            let later = scope.now + .seconds(60)
            let second = try await scope.add(server.url("d")) {
                $0.after = [bad]
                $0.notBefore = later
            }
            #expect(try await scope.job(second).failureReason == .dependency)
            var request = scope.request(server.url("e"))
            request.after = [good, JobID(rawValue: 99)]
            let requests = [request]
            let error = await #expect(throws: FerryError.self) {
                try await scope.engine.add(requests, goOn: false)
            }
            #expect(error?.exitStatus == .failed && error?.message == "--after: there is no job 99")
            #expect(try await scope.engine.select(JobFilter()).count == 5)
        }
    }

    @Test func `a job for which a client stands brings those before it along`() async throws {
        let server = try self.server()
        try await withEngine(mode: .attached) { scope in
            let first = try await scope.add(server.url("a"))
            let second = try await scope.add(server.url("b")) { $0.after = [first] }
            let third = try await scope.add(server.url("c")) { $0.after = [second] }
            let alone = try await scope.add(server.url("d"))
            let late = try await scope.add(server.url("e"))
            try await scope.engine.attach(Engine.ClientKey(rawValue: 1), jobs: [third])
            #expect(try await scope.next(third, .completed).state == .completed)
            #expect(server.requests.map(\.path) == ["/a", "/b", "/c"])
            #expect(try await scope.job(alone).state == .queued)

            // Also those that come before it since.
            try await scope.engine.attach(Engine.ClientKey(rawValue: 1), jobs: [alone])
            _ = try await scope.next(alone, .completed)
            let last = try await scope.add(server.url("f")) { $0.notBefore = scope.now + .seconds(9) }
            try await scope.engine.attach(Engine.ClientKey(rawValue: 1), jobs: [last])
            try await scope.set(JobChanges(after: [late]), last)
            #expect(try await scope.next(late, .completed).state == .completed)
        }
    }

    @Test func `no job comes after itself`() async throws {
        let server = try self.server()
        try await withEngine(mode: .attached) { scope in
            let first = try await scope.add(server.url("a"))
            let second = try await scope.add(server.url("b")) { $0.after = [first] }
            let third = try await scope.add(server.url("c")) { $0.after = [second] }
            for other in [first, third] {
                let error = await #expect(throws: FerryError.self) {
                    try await scope.set(JobChanges(after: [other]), first)
                }
                #expect(error?.exitStatus == .usage)
            }
            #expect(try await scope.job(first).after == [])
            #expect(try await scope.set(JobChanges(after: [first]), third).state == .waiting)
            #expect(try await scope.job(third).message == "after job 1")
        }
    }

    @Test func `a long chain fails as one`() async throws {
        let server = try self.server()
        try await withEngine(mode: .attached) { scope in
            var requests: [JobRequest] = [scope.request(server.url("missing"))]
            for number in 2...500 {
                requests.append(
                    scope.request(server.url("f\(number)")) {
                        $0.after = [JobID(rawValue: Int64(number - 1))]
                    }
                )
            }
            let added = try await scope.engine.add(requests, goOn: false)
            let last = try #require(added.last?.job)
            #expect(last.state == .waiting)
            #expect(
                try await scope.steer(.cancel(keepPartial: false), JobID(rawValue: 1)).state == .cancelled
            )
            #expect(try await scope.job(last.id).failureReason == .dependency)
            #expect(try await scope.engine.counts()[.failed] == 499)
        }
    }
}
