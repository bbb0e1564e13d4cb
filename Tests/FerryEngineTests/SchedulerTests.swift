import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

@Suite(.timeLimit(.minutes(5))) struct SchedulerTests {
    /// `a1` is job 1 of host `a`; `a1+5` has priority 5.
    private static func job(_ text: Substring) -> JobRecord {
        let parts = text.dropFirst().split(separator: "+")
        return JobRecord(
            id: JobID(rawValue: Int64(parts[0]) ?? 0),
            priority: parts.count > 1 ? Int(parts[1]) ?? 0 : 0,
            host: String(text.prefix(1)),
            url: "",
            createdAt: Timestamp(milliseconds: 0)
        )
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let queued: String
        var running: [String: Int] = [:]
        var perHost = 6
        var limit = 16
        let chosen: [Int64]
    }

    @Test(arguments: [
        Case(testDescription: "nothing", queued: "", chosen: []),
        Case(testDescription: "order of arrival", queued: "a3 a1 a2", chosen: [1, 2, 3]),
        Case(
            testDescription: "only as many as there are places",
            queued: "a1 a2 a3",
            limit: 2,
            chosen: [1, 2]
        ),
        Case(testDescription: "no place", queued: "a1", limit: 0, chosen: []),
        Case(testDescription: "priority before arrival", queued: "a1 a2+5 a3-1", chosen: [2, 1, 3]),
        Case(
            testDescription: "priority before fairness",
            queued: "a1+5 a2+5 b3",
            running: ["a": 3],
            limit: 2,
            chosen: [1, 2]
        ),
        Case(testDescription: "hosts take turns", queued: "a1 a2 a3 b4 b5 c6", chosen: [1, 4, 6, 2, 5, 3]),
        Case(
            testDescription: "a busy host comes last",
            queued: "a1 b2 c3",
            running: ["a": 2, "b": 1],
            chosen: [3, 2, 1]
        ),
        Case(testDescription: "a host's limit", queued: "a1 a2 a3 b4", perHost: 2, chosen: [1, 4, 2]),
        Case(
            testDescription: "a host's limit counts what runs",
            queued: "a1+9 a2 b3",
            running: ["a": 1, "b": 2],
            perHost: 2,
            chosen: [1]
        ),
        Case(testDescription: "a host over its limit", queued: "a1", running: ["a": 7], chosen: []),
    ])
    func `jobs are chosen`(_ item: Case) {
        let now = Timestamp(milliseconds: 0)
        let heads = item.queued.split(separator: " ").map { text in
            // A minus sign stands for a negative priority.
            let job = Self.job(Substring(text.replacing("-", with: "+-")))
            return QueuedHead(id: job.id, priority: job.priority, host: job.host)
        }
        var queue = ClaimQueue(perHost: { _ in item.perHost })
        for (host, count) in item.running {
            for number in 0..<count {
                queue.begin(JobID(rawValue: Int64(100 + number)), host: host, at: now)
            }
        }
        var other = queue
        other.replace(heads, at: now)
        let wanted = other.claim(item.limit, at: now).map(\.id.rawValue)
        #expect(wanted == item.chosen)
        other = queue
        for head in heads.reversed() { other.insert(head, at: now) }
        let inserted = other.claim(item.limit, at: now).map(\.id.rawValue)
        #expect(inserted == item.chosen)
        for (host, heads) in Dictionary(grouping: heads, by: \.host) {
            queue.refill(host, heads.sorted(), isCut: false, at: now)
        }
        let chosen = queue.claim(item.limit, at: now).map(\.id.rawValue)
        #expect(chosen == item.chosen)
    }

    struct Demotion: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// A star stands for a job that may not stop.
        let running: String
        var perHost = 6
        let limit: Int
        let demoted: [Int64]
    }

    @Test(arguments: [
        Demotion(testDescription: "nothing runs", running: "", limit: 1, demoted: []),
        Demotion(testDescription: "within the limit", running: "a1 a2", limit: 2, demoted: []),
        Demotion(testDescription: "the newest first", running: "a1 a3 a2", limit: 1, demoted: [3, 2]),
        Demotion(
            testDescription: "the lowest priority first",
            running: "a1-5 a2 a3+5",
            limit: 1,
            demoted: [1, 2]
        ),
        Demotion(
            testDescription: "not one that would lose bytes",
            running: "a1 a2 *a3",
            limit: 1,
            demoted: [2, 1]
        ),
        Demotion(testDescription: "nobody may stop", running: "*a1 *a2", limit: 1, demoted: []),
        Demotion(
            testDescription: "a host's limit",
            running: "a1 a2 b3 a4",
            perHost: 1,
            limit: 9,
            demoted: [4, 2]
        ),
        Demotion(
            testDescription: "what a host gives up counts for all",
            running: "a1 a2 b3",
            perHost: 1,
            limit: 2,
            demoted: [2]
        ),
    ])
    func `jobs make room under a lower limit`(_ item: Demotion) {
        let jobs = item.running.split(separator: " ").map { text in
            Scheduler.Demotable(
                job: Self.job(Substring(text.replacing("*", with: "").replacing("-", with: "+-"))),
                mayStop: !text.hasPrefix("*")
            )
        }
        let demoted = Scheduler.demote(jobs, limit: item.limit, perHost: { _ in item.perHost })
        #expect(demoted.map(\.rawValue) == item.demoted)
    }

    @Test func `no more run at once than the limits allow`() async throws {
        let gate = Gate()
        let server = try ScriptedServer { request, _ in
            Reply(200, body: .bytes(Array(request.path.utf8))).with(.hold(gate))
        }
        var configuration = EngineConfiguration()
        configuration.running = 4
        configuration.perHost = 3
        try await withEngine(configuration: configuration) { scope in
            let local = "http://127.0.0.1:\(server.port)"
            var ids: [JobID] = []
            for number in 1...4 { ids.append(try await scope.add(server.url("l\(number)"))) }
            for number in 1...4 { ids.append(try await scope.add("\(local)/a\(number)")) }
            _ = try await server.waitForRequests(4)
            let counts = try await scope.engine.counts()
            #expect(counts[.running] == 4)
            #expect(counts[.queued] == 4)
            let paths = server.requests.map(\.path).sorted()
            #expect(paths == ["/a1", "/l1", "/l2", "/l3"])
            gate.open()
            for id in ids { #expect(try await scope.end(of: id).state == .completed) }
            #expect(try scope.names.count == 8)
        }
    }
}

@Suite struct RateMeterTests {
    @Test(
        arguments: [
            ("nothing", [], nil),
            ("one sample tells nothing", [(0, 0)], nil),
            ("too soon", [(0, 0), (100, 1_000)], nil),
            ("after 200 ms", [(0, 0), (200, 1_000)], 5_000),
            ("steady", [(0, 0), (1_000, 500), (2_000, 1_000), (3_000, 1_500)], 500),
            ("it starts where it is", [(0, 7_000), (1_000, 7_000)], 0),
            ("samples too close together are told at once", [(0, 0), (1_000, 100), (1_010, 2_020)], 2_000),
            (
                "what is older than the window is forgotten",
                [(0, 0), (1_000, 1_000_000), (6_000, 1_000_000), (11_000, 1_000_000)], 0
            ),
            ("one old sample is kept to measure from", [(0, 0), (10_000, 10_000)], 1_000),
        ] as [(String, [(Int, Int64)], Int64?)]
    )
    func `a rate`(_ name: String, _ samples: [(Int, Int64)], _ expected: Int64?) {
        var meter = RateMeter()
        var rate: Int64?
        for (time, bytes) in samples { rate = meter.sample(bytes, at: .milliseconds(time)) }
        #expect(rate == expected)
    }

    @Test func `a long time needs little memory`() {
        var meter = RateMeter()
        for time in 0..<100_000 { _ = meter.sample(Int64(time), at: .milliseconds(time * 10)) }
        let samples = Mirror(reflecting: meter).children.first?.value as? [(time: Duration, bytes: Int64)]
        #expect((samples?.count ?? .max) <= 102)
    }
}
