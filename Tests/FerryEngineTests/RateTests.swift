import FerryCore
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

/// Limits on bytes a second: which hold, and that they reach running jobs.
@Suite(.timeLimit(.minutes(5))) struct RateTests {
    private static let object = TestObject(size: 1_000_000, seed: 43)
    private static let localhost = HostPattern("localhost")

    private func server() throws -> ScriptedServer {
        try ScriptedServer { request, _ in .object(Self.object, for: request) }
    }

    /// Adds a job whose first bytes have come while a limit holds it.
    private func heldJob(_ scope: EngineScope, _ url: String, rate: Int64? = nil) async throws -> JobID {
        let id = try await scope.add(url) { $0.limitRateBytes = rate }
        try await scope.waitForBytes(8_192, of: id)
        return id
    }

    private func done(_ scope: EngineScope, _ id: JobID) async throws -> Int64 {
        try await scope.engine.progress().first { $0.id == id }?.done ?? -1
    }

    // MARK: What holds

    @Test func `live limits come before the calendar, that before the keys`() {
        var configuration = EngineConfiguration()
        configuration.down = 100
        configuration.up = 200
        configuration.calendar = RateCalendar([
            RateCalendar.Entry(days: [0], down: .limited(50)),
            RateCalendar.Entry(days: [1], down: .unlimited, up: .limited(60)),
        ])
        var host = HostSettings()
        host.down = 10
        configuration.hosts["a"] = host
        func limits(day: Int, _ change: (inout LiveRates) -> Void = { _ in }) -> [String] {
            var live = LiveRates()
            change(&live)
            return configuration.rates(live, at: LocalMinute(day: day, minute: 600)).map { limit in
                let host = limit.host.map { "\($0) " } ?? ""
                return "\(host)\(limit.kind) \(limit.bytes ?? 0) \(limit.source)"
            }
        }
        #expect(
            limits(day: 2) == [
                "down 100 configuration", "up 200 configuration", "a down 10 configuration",
            ]
        )
        #expect(limits(day: 0) == ["down 50 calendar", "up 200 configuration", "a down 10 configuration"])
        #expect(limits(day: 1) == ["down 0 calendar", "up 60 calendar", "a down 10 configuration"])
        let live = limits(day: 1) {
            $0.all = [.both: .limited(7), .down: .limited(8), .up: .unlimited]
            $0.hosts = ["a": [.down: .unlimited, .up: .limited(9)], "b:1": [.both: .limited(5)]]
        }
        #expect(
            live == [
                "both 7 live", "down 8 live", "up 0 live", "a down 0 live", "a up 9 live", "b:1 both 5 live",
            ]
        )
    }

    @Test func `limits are kept until they are taken back`() async throws {
        var configuration = EngineConfiguration()
        configuration.down = 1_000
        try await withEngine(configuration: configuration) { scope in
            try await scope.engine.change(
                [],
                rates: [
                    .init(host: nil, kind: .both, choice: .limited(5_000)),
                    .init(host: nil, kind: .down, choice: .unlimited),
                    .init(host: nil, kind: .up, choice: .unlimited),
                    .init(host: Self.localhost, kind: .up, choice: .limited(70)),
                ]
            )
            let expected = [
                RateLimit(host: nil, kind: .both, bytes: 5_000, source: .live),
                RateLimit(host: nil, kind: .down, bytes: nil, source: .live),
                RateLimit(host: "localhost", kind: .up, bytes: 70, source: .live),
            ]
            #expect(try await scope.engine.rates == expected)
            #expect(try await scope.engine.configuration.down == nil)
            try await scope.restart()
            #expect(try await scope.engine.rates == expected)
            try await scope.engine.change(
                [],
                rates: [
                    .init(host: nil, kind: .both, choice: .unlimited),
                    .init(host: nil, kind: .down, choice: .unsaid),
                    .init(host: Self.localhost, kind: .up, choice: .unsaid),
                ]
            )
            #expect(
                try await scope.engine.rates == [
                    RateLimit(host: nil, kind: .down, bytes: 1_000, source: .configuration)
                ]
            )
            #expect(try await scope.store.read { try $0.limits() }.isEmpty)
        }
    }

    @Test func `a rate that cannot be is refused, and nothing is changed`() async throws {
        try await withEngine { scope in
            let changes: [Engine.RateChange] = [
                .init(host: nil, kind: .up, choice: .limited(5)),
                .init(host: nil, kind: .down, choice: .limited(0)),
            ]
            let error = await #expect(throws: FerryError.self) {
                try await scope.engine.change([], rates: changes)
            }
            #expect(error?.exitStatus == .usage)
            let rates = try await scope.engine.rates
            #expect(rates.isEmpty)
        }
    }

    // MARK: Running jobs

    @Test func `a live limit reaches a running job`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            try await scope.engine.change([], rates: [.init(host: nil, kind: .both, choice: .limited(1))])
            let id = try await self.heldJob(scope, server.url("f"))
            #expect(try await self.done(scope, id) < 100_000)
            try await scope.engine.change([], rates: [.init(host: nil, kind: .both, choice: .unlimited)])
            #expect(try await scope.end(of: id).state == .completed)
        }
    }

    @Test func `a host's limit holds for its jobs alone`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let other = HostPattern("127.0.0.1")
            try await scope.engine.change([], rates: [.init(host: other, kind: .down, choice: .limited(1))])
            let id = try await self.heldJob(scope, "http://127.0.0.1:\(server.port)/f")
            let free = try await scope.add(server.url("g"))
            #expect(try await scope.end(of: free).state == .completed)
            #expect(try await self.done(scope, id) < 100_000)
            try await scope.engine.change([], rates: [.init(host: other, kind: .down, choice: .unsaid)])
            #expect(try await scope.end(of: id).state == .completed)
        }
    }

    @Test func `the limit of a job is changed while it runs`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let id = try await self.heldJob(scope, server.url("f"), rate: 1)
            #expect(try await scope.engine.job(id)?.limitRate == 1)
            #expect(try await scope.set(JobChanges(limitRateBytes: 2), id).error == nil)
            #expect(try await scope.engine.job(id)?.limitRate == 2)
            #expect(try await self.done(scope, id) < 100_000)
            #expect(try await scope.set(JobChanges(limitRateBytes: 0), id).error == nil)
            let job = try await scope.end(of: id)
            #expect(job.state == .completed)
            #expect(job.attempts == 1, "it has not been interrupted")
            #expect(try await scope.engine.job(id)?.limitRate == nil)
            #expect(try await scope.events(of: id, "set").map(\.message) == ["rate", "rate"])
        }
    }

    @Test func `an upload is held, and let go`() async throws {
        let server = try ScriptedServer { _, _ in .text(201, "") }
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 1_000_000)
            try await scope.engine.change([], rates: [.init(host: nil, kind: .up, choice: .limited(1))])
            let id = try await scope.send(path, to: server.url("a"))
            try await scope.waitForBytes(8_192, of: id)
            #expect(try await self.done(scope, id) < 100_000)
            try await scope.engine.change([], rates: [.init(host: nil, kind: .up, choice: .unlimited)])
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.requests.last?.body == bytes)
        }
    }

    // MARK: The calendar

    @Test func `the calendar is looked at each minute`() async throws {
        let server = try self.server()
        var configuration = EngineConfiguration()
        // The clock of the tests begins at a full minute; its local time is the machine's.
        let start = Timestamp(milliseconds: 1_800_000_000_000)
        let minute = LocalMinute(at: start, offset: EngineTime.offset(at: start))
        configuration.calendar = RateCalendar([
            RateCalendar.Entry(
                days: [minute.day],
                from: minute.minute,
                to: minute.minute + 1,
                down: .limited(1)
            )
        ])
        try await withEngine(configuration: configuration) { scope in
            let id = try await self.heldJob(scope, server.url("f"))
            #expect(try await self.done(scope, id) < 100_000)
            #expect(try await scope.engine.rates.map(\.source) == [.calendar])
            while !scope.clock.wakeTimes.contains(where: { $0.offset == .seconds(60) }) { await Task.yield() }
            scope.clock.advance(by: .seconds(60))
            #expect(try await scope.end(of: id).state == .completed)
            #expect(try await scope.engine.rates.isEmpty)
        }
    }

    @Test func `the clock on the wall is the zone's, over the changes of the year`() async {
        await #expect(processExitsWith: .success) {
            setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1)
            // The Sundays on which clocks skip an hour and repeat one.
            let expected = [
                ("2026-03-29T00:59:00Z", 119), ("2026-03-29T01:00:00Z", 180), ("2026-10-25T00:30:00Z", 150),
                ("2026-10-25T01:30:00Z", 150), ("2026-10-25T02:00:00Z", 180),
            ]
            for (text, minute) in expected {
                let time = try #require(Timestamp(rfc3339: text))
                let shown = LocalMinute(at: time, offset: EngineTime.offset(at: time))
                try #require(shown == LocalMinute(day: 6, minute: minute))
            }
        }
    }
}
