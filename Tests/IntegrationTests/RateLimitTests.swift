import FerryTestSupport
import Testing

/// `ferry limit RATE`, `--limit-rate` and the calendar with the built tools.
@Suite(.serialized, .timeLimit(.minutes(5))) struct RateLimitTests {
    private static let object = TestObject(size: 2_000_000, seed: 47)

    private static func server() throws -> ScriptedServer {
        try ScriptedServer { request, _ in
            request.method == "PUT" ? .text(201, "") : .object(Self.object, for: request)
        }
    }

    private static func isHeld(_ job: JSON) -> Bool {
        job["state"].text == "running" && (job["bytes_done"].int ?? 0) >= 8_192
    }

    @Test func `a live limit holds a download, and lets it go`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let folder = try desk.target()
            // A byte a second: nothing but the first burst comes.
            #expect(try await desk.success("limit", "1").isEmpty)
            let get = try desk.start("get", "-q", "-d", folder, server.url("f"))
            let job = try await desk.job(until: Self.isHeld)
            #expect((job["bytes_done"].int ?? 0) < 100_000)
            #expect(
                try await desk.success("limit").contains(
                    "1 B/s down and up together  (set with 'ferry limit')"
                )
            )
            // A limit is kept with the queue, and the job stays held by it.
            try desk.stopService()
            let limit = try #require(try await desk.json("limit")["rates"].elements.first)
            #expect(limit["bytes_per_s"].int == 1)
            #expect(limit["direction"].text == "both")
            #expect(limit["source"].text == "live")
            #expect(limit["host"] == .null)
            try await desk.success("limit", "none")
            let result = try await get.waitForExit()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(try desk.files() == ["f"])
            #expect(try await desk.json("limit")["rates"] == .array([]))
        }
    }

    @Test func `a job's own limit is set and changed`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let folder = try desk.target()
            let get = try desk.start("get", "-q", "--limit-rate", "1", "-d", folder, server.url("f"))
            _ = try await desk.job(until: Self.isHeld)
            #expect(try await desk.job()["limit_rate_bytes_per_s"].int == 1)
            #expect(try await desk.success("show", "1").contains("rate limit: 1 B/s"))
            try await desk.success("set", "1", "-l", "none")
            let result = try await get.waitForExit()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(try await desk.job()["attempt"].int == 1)
        }
    }

    @Test func `an upload is held, and let go`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let bytes = Self.object.bytes(0..<Self.object.size)
            try writeFile(desk.folder.file("f"), bytes)
            try await desk.success("limit", "--host", "localhost", "--up", "1")
            let put = try desk.start("put", "-q", desk.folder.file("f"), server.url("in/f"))
            let job = try await desk.job(until: Self.isHeld)
            #expect((job["bytes_done"].int ?? 0) < 100_000)
            try await desk.success("limit", "--host", "localhost", "--up", "0")
            let result = try await put.waitForExit()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(server.requests.last?.body == bytes)
        }
    }

    @Test func `the configuration's limits and calendar are shown, and outweighed`() async throws {
        try await withDesk { desk in
            var desk = desk
            desk.tool = desk.tool.with([
                "FERRY_LIMITS_DOWN": "10M",
                "FERRY_LIMITS_CALENDAR": "[{ up: '256K' }]",
            ])
            var limits = try await desk.success("limit")
            #expect(limits.contains("10.0 MiB/s down\n"))
            #expect(limits.contains("256.0 KiB/s up  (by the calendar)\n"))
            try await desk.success("limit", "--down", "2M", "--up", "none")
            limits = try await desk.success("limit")
            #expect(limits.contains("2.0 MiB/s down  (set with 'ferry limit')\n"))
            #expect(limits.contains("no limit up  (set with 'ferry limit')\n"))
            try await desk.success("limit", "--down", "default", "--up", "default")
            #expect(try await desk.success("limit").contains("256.0 KiB/s up  (by the calendar)\n"))
        }
    }

    @Test func `bad rates are one sentence and status 2`() async throws {
        try await withDesk { desk in
            expectRefusal(try await desk.ferry("limit", "fast"), status: 2, says: ["'fast'", "500K"])
            expectRefusal(
                try await desk.ferry("limit", "--up", "1Mbit"),
                status: 2,
                says: ["--up", "'1Mbit'"]
            )
            expectRefusal(
                try await desk.ferry("get", "-l", "-1", "http://localhost:1/f"),
                status: 2,
                says: ["-l", "'-1'", "none"]
            )
            let desk = { () -> Desk in
                var other = desk
                other.tool = other.tool.with(["FERRY_LIMITS_CALENDAR": "[{ days: 'never', up: '1M' }]"])
                return other
            }()
            expectRefusal(try await desk.ferry("limit"), status: 2, says: ["entry 1", "days", "\"never\""])
        }
    }
}
