import FerryTestSupport
import Testing

/// What people change while jobs are queued, waiting or running, with the built tools.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SteeringTests {
    private static let object = TestObject(size: 400_000, seed: 51)

    @Test func `a job goes on from another URL, and not from that of another file`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            defer { gate.open() }
            let server = try ScriptedServer { request, number in
                switch request.path {
                case "/expired":
                    number == 0
                        ? .object(Self.object, for: request).with(.cut(after: 150_000)) : Reply(403)
                case "/wrong": .object(Self.object.changed(), for: request)
                default: .object(Self.object, for: request)
                }
            }
            let target = try desk.target()
            let get = try await desk.ferry("get", "-d", target, server.url("expired"))
            #expect(get.status == 1 && get.stderr.contains("link-expired"), "\(get.stderr)")

            let wrong = try await desk.ferry("set", "1", "--url", server.url("wrong"))
            expectRefusal(wrong, status: 1, says: ["job 1 is left as it was", "another size, tag or date"])
            #expect(try await desk.job()["state"] == .string("failed"))
            expectRefusal(
                try await desk.ferry("set", "1", "--url", "http://example.org/x"),
                status: 2,
                says: ["--allow-http"]
            )
            let fresh = try await desk.ferry("set", "1", "--url", server.url("fresh"))
            #expect(fresh.status == 0 && fresh.stdout.isEmpty, "\(fresh.stderr)")
            #expect(fresh.stderr.contains("nothing will run this yet"))
            #expect(try await desk.job()["state"] == .string("queued"))
            try await desk.success("wait", "1")
            #expect(server.requests(for: "/fresh").last?.rangeStart == 150_000)
            #expect(try Self.object.matches("\(target)/expired") == nil)
            let over = try await desk.ferry("set", "1", "--priority", "3")
            expectRefusal(over, status: 1, says: ["job 1 is completed"])
        }
    }

    @Test func `groups are listed, steered and waited for`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
            let target = try desk.target()
            try await desk.success(
                "add",
                "-q",
                "-d",
                target,
                "--group",
                "a",
                server.url("one"),
                server.url("two")
            )
            try await desk.success(
                "add",
                "-q",
                "-d",
                target,
                "--group",
                "b",
                "--priority",
                "-5",
                server.url("three")
            )
            try await desk.success("pause", "--group", "a")
            try await desk.success("pause", "--group", "a", "--state", "paused")
            let list = try await desk.json("list", "--group", "a")["jobs"].elements
            #expect(list.map { $0["state"] } == [.string("paused"), .string("paused")])
            #expect(try await desk.job(3)["priority"] == .number(-5))
            #expect(try await desk.json("list", "--host", "nowhere")["jobs"].elements.isEmpty)

            let paused = try await desk.ferry("wait", "--group", "a")
            #expect(paused.status == 4, "\(paused.stderr)")
            try await desk.success("wait", "--group", "b")
            try await desk.success("resume", "-q", "--group", "a")
            try await desk.success("wait", "--group", "a", "--group", "b")
            #expect(try desk.files() == ["one", "three", "two"])
            expectRefusal(try await desk.ferry("wait", "--group", "c"), status: 1, says: ["group c"])
        }
    }

    @Test func `a job waits until its time`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
            let target = try desk.target()
            try await desk.success("add", "-q", "-d", target, "--not-before", "+1h", server.url("one"))
            let job = try await desk.job()
            #expect(job["state"] == .string("waiting") && job["reason"] == .string("schedule"))
            #expect(job["retry_at"].text != nil)
            // The queue has nothing to do, for the one job is a matter of the schedule.
            try await desk.success("run", "-q", "--until-empty")
            #expect(server.requests.isEmpty)
            try await desk.success("set", "-q", "1", "--not-before", "+300ms")
            try await desk.success("wait", "-q", "1")
            #expect(try desk.files() == ["one"])
        }
    }

    @Test func `limits are shown, set, kept and taken back`() async throws {
        try await withDesk { desk in
            #expect(try await desk.success("limit") == "16 jobs at once\n 6 to each host\n")
            try await desk.success("limit", "--running", "3")
            try await desk.success("limit", "--host", "Example.org", "--running", "1")
            try? desk.stopService()  // it may have gone with its last client
            let limits = try await desk.json("limit")
            #expect(limits["running"] == .number(3) && limits["running_is_live"] == .bool(true))
            #expect(limits["hosts"].elements.map { $0["host"] } == [.string("example.org")])
            try await desk.success("limit", "--running", "default")
            #expect(
                try await desk.success("limit")
                    == "16 jobs at once\n 6 to each host\n 1 to example.org  (set with 'ferry limit')\n"
            )
            #expect(
                try await desk.success("limit", "--host", "other")
                    == "6 to each host without a limit of its own\n"
            )
        }
    }
}
