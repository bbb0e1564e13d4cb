import FerryCore
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

/// Requests that are no job's own heed the pauses of hosts too.
@Suite(.timeLimit(.minutes(5))) struct PoliteProofTests {
    private static let object = TestObject(size: 1_000_000, seed: 49)

    /// `/old` breaks after 300,000 bytes and answers 403 from then on, `/busy` asks once for a pause.
    private func server(pause: Int) throws -> ScriptedServer {
        try ScriptedServer { request, number in
            switch request.path {
            case "/old":
                number == 0
                    ? .object(Self.object, for: request).with(.cut(after: 300_000))
                    : .text(403, "the link is over")
            case "/busy" where number == 0: Reply(503, headers: ["Retry-After: \(pause)"])
            default: .object(Self.object, for: request)
            }
        }
    }

    /// Lets the time come at which anybody wakes up.
    private func pass(_ scope: EngineScope) async {
        if let next = scope.clock.wakeTimes.first {
            scope.clock.advance(by: scope.clock.now.duration(to: next))
        }
        await Task.yield()
    }

    /// Waits for the end of a job: after a pause its host's jobs go one after the other.
    private func end(of id: JobID, _ scope: EngineScope) async throws -> JobRecord {
        while try await !scope.job(id).state.isEnded { await self.pass(scope) }
        return try await scope.job(id)
    }

    @Test func `a new URL on a host that asked for a pause is refused, and says for how long`() async throws {
        let server = try self.server(pause: 600)
        try await withEngine { scope in
            let id = try await scope.add(server.url("old"))
            #expect(try await scope.end(of: id).failureReason == .linkExpired)
            let busy = try await scope.add(server.url("busy"))
            let waiting = try await scope.next(busy, .waiting)
            #expect(waiting.waitReason == .host)
            let refused = try await scope.set(JobChanges(url: server.url("new")), id)
            let host = try await scope.job(id).host
            #expect(
                refused.error
                    == "job \(id) is left as it was: \(host) asked for a pause, and is not asked for another 10m 00s"
            )
            #expect(server.requests(for: "/new").isEmpty)
            #expect(try await scope.job(id).state == .failed)
            try await scope.passWait(of: waiting)
            #expect(try await scope.set(JobChanges(url: server.url("new")), id).error == nil)
            #expect(try await self.end(of: id, scope).state == .completed)
        }
    }

    @Test func `a short pause is waited for`() async throws {
        let server = try self.server(pause: 4)
        try await withEngine { scope in
            let id = try await scope.add(server.url("old"))
            #expect(try await scope.end(of: id).failureReason == .linkExpired)
            let busy = try await scope.add(server.url("busy"))
            let waiting = try await scope.next(busy, .waiting)
            try await scope.clock.waitForSleepers(1)
            let sleepers = scope.clock.wakeTimes.count
            async let answer = scope.set(JobChanges(url: server.url("new")), id)
            try await scope.clock.waitForSleepers(sleepers + 1)
            #expect(server.requests(for: "/new").isEmpty)
            let rest = try #require(waiting.nextTry) - scope.now
            scope.clock.advance(by: max(rest, .seconds(4)))
            #expect(try await answer.error == nil)
            #expect(try await self.end(of: id, scope).state == .completed)
        }
    }

    @Test func `a link that a program gave waits until its host may be asked`() async throws {
        let server = try self.server(pause: 600)
        let other = try self.server(pause: 600)
        try await withEngine { scope in
            let busy = try await scope.add(other.url("busy"))
            _ = try await scope.next(busy, .waiting)
            let program = try scope.folder.write("renew", "#!/bin/sh\necho '\(other.url("new"))'\n")
            try #require(chmod(program, 0o755) == 0)
            let id = try await scope.add(server.url("old")) { $0.renew = program }
            var later = try await scope.next(id, .waiting)
            while later.waitReason != .auth || later.nextTry == nil {
                if later.nextTry != nil { try await scope.passWait(of: later) }
                later = try await scope.next(id, .waiting)
            }
            #expect(other.requests(for: "/new").isEmpty)
            #expect(try await self.end(of: id, scope).state == .completed)
            #expect(later.message?.contains("asked for a pause, and is not asked for another ") == true)
            #expect(later.renewals == 0)
        }
    }

    @Test func `what an upload has left on a host waits until that may be asked`() async throws {
        let server = try UploadServer(
            .tus(extensions: "creation,termination"),
            cut: { $0 == 0 ? 5_000_000 : nil },
            override: { request, _ in
                request.path == "/busy" ? Reply(503, headers: ["Retry-After: 600"]) : nil
            }
        )
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 16 << 20)
            let id = try await scope.send(path, to: server.url, .tus)
            _ = try await scope.next(id, .waiting)
            let busy = try await scope.add(server.server.url("busy"))
            let waiting = try await scope.next(busy, .waiting, .failed)
            #expect(waiting.waitReason == .host)
            try await scope.steer(.cancel(keepPartial: false), id)
            #expect(try await scope.job(id).state == .cancelled)
            #expect(server.uploads.count == 1)
            #expect(!server.server.requests.contains { $0.method == "DELETE" })
            // By then it asks again, and finds the pause over.
            while try await !scope.store.read({ try $0.cleanups() }).isEmpty { await self.pass(scope) }
            #expect(server.uploads.isEmpty)
        }
    }
}
