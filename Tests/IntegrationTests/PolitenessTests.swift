import FerryCore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

/// A server that asks for a pause, in real time.
@Suite(.serialized, .timeLimit(.minutes(5))) struct PolitenessTests {
    private static let object = TestObject(size: 40_000, seed: 31)

    /// Asks for a pause of three seconds so many times, then serves; keeps the time of each request.
    private final class Server: Sendable {
        private let times = Mutex<[ContinuousClock.Instant]>([])
        private let server: Mutex<ScriptedServer?> = Mutex(nil)

        init(pauses: Int) throws {
            let server = try ScriptedServer { [weak self] request, _ in
                self?.times.withLock { $0.append(ContinuousClock.now) }
                return request.index < pauses
                    ? Reply(503, headers: ["Retry-After: 3"]) : .object(PolitenessTests.object, for: request)
            }
            self.server.withLock { $0 = server }
        }

        func url(_ path: String) throws -> String {
            try #require(self.server.withLock { $0?.url(path) })
        }

        /// The times of the requests, from that of the n-th on.
        func times(since index: Int) throws -> [Duration] {
            let times = self.times.withLock { $0 }
            try #require(times.count > index)
            return times[index...].map { $0 - times[index] }
        }
    }

    /// When the last attempts of jobs began, in order, from the first.
    private func begun(_ jobs: ClosedRange<Int>, _ desk: Desk) async throws -> [Duration] {
        var times: [Int64] = []
        for job in jobs {
            let log = try await desk.json("log", "\(job)")
            let time = try #require(log["attempts"].elements.last?["began_at"].text)
            times.append(try #require(Timestamp(rfc3339: time)).milliseconds)
        }
        times.sort()
        return times.map { .milliseconds($0 - times[0]) }
    }

    @Test func `nobody comes before the pause is over, one comes first, and there is no herd`() async throws {
        try await withDesk { desk in
            let server = try Server(pauses: 5)
            let target = try desk.target()
            let urls = try (1...5).map { try server.url("\($0)") }
            let get = try await desk.ferry(["get", "-d", target] + urls)
            #expect(get.status == 0, "\(get.stderr)")
            #expect(get.errorLines.count { $0.contains("waiting (host), again in ") } == 5)
            let times = try server.times(since: 4)
            #expect(times.count == 6)
            #expect(times[1] >= .seconds(3))
            // Half of a second between two, less half of that by chance; it halves with each answer.
            let begun = try await self.begun(1...5, desk)
            #expect(begun[1] - begun[0] >= .milliseconds(245))
            #expect(begun[4] - begun[0] >= .milliseconds(650))
            for number in 1...5 { #expect(try Self.object.matches("\(target)/\(number)") == nil) }
        }
    }

    @Test func `a pause outlives the service, and the queue shows it`() async throws {
        try await withDesk { desk in
            let server = try Server(pauses: 1)
            let target = try desk.target()
            let run = try desk.start("run")
            try await desk.success("add", "-d", target, server.url("1"))
            let told = try await desk.job(1) { $0["state"] == .string("waiting") }
            #expect(told["reason"] == .string("host"))
            try await desk.success("add", "-d", target, server.url("2"))
            let other = try await desk.job(2)
            #expect(other["state"] == .string("queued"))
            if other["retry_at"] != .null {  // a busy machine may look when the pause is over
                let ends = try [told, other].map { job in
                    try #require(job["retry_at"].text.flatMap { Timestamp(rfc3339: $0) }).milliseconds
                }
                #expect(abs(ends[1] - ends[0]) < 100)
                #expect(other["message"].text?.contains("asked for a pause") == true)
            }
            let list = try await desk.success("list")
            if try await desk.job(2)["retry_at"] != .null {  // a busy machine may be late
                #expect(
                    list.split(separator: "\n").contains { $0.contains("queued") && $0.contains("again in") }
                )
            }
            run.kill(SIGKILL)
            _ = try await run.waitForExit()
            try desk.service.kill(SIGKILL)
            let again = try await desk.job(1)
            #expect(again["retry_at"] == told["retry_at"] || again["state"] != .string("waiting"))
            let all = try await desk.ferry("run", "--until-empty")
            #expect(all.status == 0, "\(all.stderr)")
            let times = try server.times(since: 0)
            #expect(times.count == 3)
            #expect(times[1] >= .seconds(3))
            #expect(try await self.begun(1...2, desk)[1] >= .milliseconds(245))
        }
    }

    @Test func `a command tells of a pause that begins when its job is queued already`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            let server = try ScriptedServer { request, number in
                guard request.path == "/first" else { return .object(Self.object, for: request) }
                let refusal = Reply(503, headers: ["Retry-After: 3"])
                return number == 0 ? refusal.with(.hold(gate)) : .object(Self.object, for: request)
            }
            try await desk.success("limit", "--host", "localhost", "--running", "1")
            try desk.stopService()  // the next one keeps to it
            let target = try desk.target()
            try await desk.success("add", "-d", target, server.url("first"))
            let run = try desk.start("run")
            _ = try await desk.job(1) { _ in server.requests.count == 1 }
            let get = try desk.start("get", "-d", target, server.url("second"))
            _ = try await desk.job(2) { $0["state"].text == "queued" }
            gate.open()
            _ = try await get.waitForLine(in: .stderr) {
                $0.contains("queued, again in ") && $0.contains("asked for a pause")
            }
            #expect(try await get.waitForExit().status == 0)
            run.kill(SIGINT)
            _ = try await run.waitForExit()
        }
    }

    @Test(arguments: ["soon", "-1s", "1y", ""])
    func `a deadline that is none is refused`(text: String) async throws {
        try await withDesk { desk in
            let add = try await desk.ferry("add", "--deadline", text, "https://localhost/")
            #expect(add.status == 2 && add.stderr.contains("--deadline"), "\(add.stderr)")
        }
    }

    @Test func `a deadline passes, and the last cause is told`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { _, _ in Reply(502) }
            let get = try await desk.ferry(
                "get",
                "--deadline",
                "5s",
                "-d",
                desk.target(),
                server.url("1")
            )
            #expect(get.status == 1)
            #expect(get.stderr.contains("gave-up: its deadline has passed; before that: "), "\(get.stderr)")
            #expect(get.stderr.contains("answered 502"))
            #expect(get.stderr.contains("ferry set 1 --deadline DURATION"))
        }
    }
}
