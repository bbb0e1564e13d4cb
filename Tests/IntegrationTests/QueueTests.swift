import FerryTestSupport
import Glibc
import Testing

/// The queue as its users steer it and programs read it.
@Suite(.serialized, .timeLimit(.minutes(5))) struct QueueTests {
    private static let object = TestObject(size: 400_000, seed: 21)

    /// Every field of a job that the manual promises, but for `segments`, which `show` alone has.
    private static let jobFields: Set<String> = [
        "type", "id", "kind", "state", "phase", "reason", "message", "advice", "url", "path", "group",
        "result_url", "priority", "after", "window", "bytes_done", "bytes_durable", "bytes_total",
        "rate_bytes_per_s", "eta_s",
        "attempt", "retry_at", "created_at", "started_at", "finished_at", "validator", "checksum", "protocol",
        "http_version", "length_proved", "content_encoding",
    ]

    private static func server() throws -> ScriptedServer {
        try ScriptedServer { request, _ in
            request.path.hasPrefix("/bad") ? .text(404, "no such file") : .object(object, for: request)
        }
    }

    @Test func `jobs are queued, carried out and reported`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let target = try desk.target()
            let added = try await desk.ferry("add", "-d", target, server.url("one"), server.url("two"))
            #expect(added.status == 0 && added.stdout == "1\n2\n")
            #expect(added.stderr.contains("nothing will run this yet"))
            #expect(added.stderr.contains("'ferry run' carries the queue out"))
            #expect(try await desk.success("add", "-d", target, server.url("two")) == "2\n")
            #expect(server.requests.isEmpty)

            let run = try await desk.ferry("run", "--until-empty")
            #expect(run.status == 0 && run.stdout.isEmpty, "\(run.stderr)")
            for name in ["one", "two"] { #expect(try Self.object.matches("\(target)/\(name)") == nil) }
            #expect(try desk.files() == ["one", "two"])
            #expect(try await desk.success("wait", "1", "2").isEmpty)

            let table = try await desk.ferry("list")
            #expect(table.lines.first?.hasPrefix("JOB") == true)
            #expect(table.lines.last == "2 completed")
            let shown = try await desk.success("show", "1")
            #expect(
                shown.contains("state:      completed\n") && shown.contains("path:       \(target)/one\n")
            )
            let log = try await desk.success("log", "1")
            #expect(log.contains("attempt 1 from byte 0: completed") && log.contains("status 200"))
        }
    }

    @Test func `every document has every field`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let target = try desk.target()
            let get = try await desk.ferry(
                "get",
                "--json",
                "-d",
                target,
                server.url("one"),
                server.url("bad")
            )
            #expect(get.status == 3)
            let documents = try JSON.lines(get.stdout)
            #expect(documents.allSatisfy { ["event", "progress", "job"].contains($0["type"].text) })
            let jobs = documents.filter { $0["type"] == .string("job") }
            #expect(Set(jobs.map { $0["state"].text }) == ["completed", "failed"])
            #expect(jobs.allSatisfy { $0.keys == Self.jobFields })

            let added = try await desk.json("add", "-d", target, server.url("three"))
            #expect(added.keys == Self.jobFields && added["state"] == .string("queued"))
            #expect(added["id"] == .number(3) && added["attempt"] == .number(0))

            let show = try await desk.json("show", "1")
            #expect(show.keys == Self.jobFields.union(["segments"]))
            #expect(show["kind"] == .string("download") && show["protocol"] == .string("http"))
            #expect(show["http_version"] == .string("1.1") && show["bytes_total"] == .number(400_000))
            #expect(show["validator"].keys == ["kind", "value", "strong"])
            #expect(show["segments"].elements.map(\.keys) == [["start_bytes", "end_bytes", "durable_bytes"]])
            #expect(show["created_at"].text?.hasSuffix("Z") == true)

            let list = try await desk.json("list", "--all")
            #expect(list.keys == ["type", "jobs", "counts"] && list["jobs"].elements.count == 3)
            #expect(list["jobs"].elements.allSatisfy { $0.keys == Self.jobFields })
            #expect(list["counts"]["states"]["completed"] == .number(1))
            #expect(list["counts"]["states"]["queued"] == .number(1))

            let log = try await desk.json("log", "2")
            #expect(log.keys == ["type", "job", "attempts", "events"])
            let attempt = try #require(log["attempts"].elements.first)
            #expect(attempt["outcome"] == .string("not-found"), "\(attempt)")
            #expect(attempt["hops"].elements.map { $0["status"] } == [.number(404)])
            #expect(log["events"].elements.map { $0["kind"].text } == ["added", "started", "failed"])

            for document in try JSON.lines(await desk.success("wait", "1", "--json")) {
                #expect(document.keys == Self.jobFields && document["state"] == .string("completed"))
            }
            let version = try JSON(line: await desk.tool.run(["version", "--json"]).stdout)
            #expect(version.keys == ["type", "version", "protocol_version"])
        }
    }

    @Test func `jobs are paused, resumed, cancelled, retried and removed`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            let server = try ScriptedServer { request, number in
                switch request.path {
                case "/slow" where number == 0:
                    .object(Self.object, for: request).with(.stall(after: 150_000, until: gate))
                case "/bad" where number == 0: Reply(404)
                case "/stuck": .object(Self.object, for: request).with(.stall(after: 150_000, until: gate))
                default: .object(Self.object, for: request)
                }
            }
            defer { gate.open() }
            let target = try desk.target()
            let get = try desk.start("get", "-d", target, server.url("slow"))
            _ = try await desk.job { $0["bytes_done"] == .number(150_000) }

            #expect(try await desk.success("pause", "1").isEmpty)
            let left = try await get.waitForExit()
            #expect(left.status == 4 && left.stdout.isEmpty)
            #expect(left.stderr.contains("'ferry resume 1' queues that again"), "\(left.stderr)")
            let paused = try await desk.job { $0["state"] == .string("paused") }
            #expect(paused["bytes_durable"] == .number(150_000))
            #expect(try desk.files() == [".slow.1.ferry-part"])
            try await desk.success("pause", "1")

            let resumed = try await desk.ferry("resume", "1")
            #expect(resumed.status == 0 && resumed.stderr.contains("nothing will run this yet"))
            try await desk.success("wait", "1")
            #expect(server.requests(for: "/slow").last?.rangeStart == 150_000)
            #expect(try Self.object.matches("\(target)/slow") == nil)

            let bad = try await desk.ferry("get", "-d", target, server.url("bad"))
            #expect(bad.status == 1)
            try await desk.success("retry", "2")
            try await desk.success("wait", "2")
            #expect(try Self.object.matches("\(target)/bad") == nil)

            let stuck = try desk.start("get", "-d", target, server.url("stuck"))
            _ = try await desk.job(3) { $0["bytes_done"] == .number(150_000) }
            try await desk.success("cancel", "3")
            let cancelled = try await stuck.waitForExit()
            #expect(
                cancelled.status == 1 && cancelled.stderr.contains("was cancelled"),
                "\(cancelled.stderr)"
            )
            #expect(try await desk.job(3)["state"] == .string("cancelled"))
            #expect(try desk.files() == ["bad", "slow"])

            expectRefusal(try await desk.ferry("cancel", "1"), status: 1, says: ["job 1"])
            try await desk.success("remove", "--all")
            #expect(try await desk.json("list", "--all")["jobs"].elements.isEmpty)
            #expect(try desk.files() == ["bad", "slow"])
            expectRefusal(try await desk.ferry("show", "1"), status: 1, says: ["there is no job 1"])
            expectRefusal(try await desk.ferry("wait", "1"), status: 1, says: ["job 1"])
        }
    }

    @Test func `the same command again asks for nothing that is there`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let target = try desk.target()
            let first = try await desk.success("get", "-d", target, server.url("one"))
            #expect(server.requests.count == 1)
            let again = try await desk.ferry("get", "-d", target, server.url("one"))
            #expect(again.status == 0 && again.stdout == first && first == "\(target)/one\n")
            #expect(again.errorLines == ["ferry: already complete: \(target)/one"])
            #expect(try await desk.success("add", "-d", target, server.url("one")) == "1\n")
            #expect(server.requests.count == 1)

            // A file that was changed since is no longer the one that was fetched.
            try desk.folder.write("files/one", "mine")
            #expect(try await desk.success("get", "-d", target, server.url("one")) == "\(target)/one (2)\n")
            #expect(try desk.folder.text("files/one") == "mine")
        }
    }

    @Test func `two commands share a queue, and a job`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request).with(.stall(after: 150_000, until: gate))
            }
            let target = try desk.target()
            let one = try desk.start("get", "-d", target, server.url("one"))
            let two = try desk.start("get", "-d", target, server.url("two"))
            _ = try await server.waitForRequests(2)
            let same = try desk.start("get", "-d", target, server.url("one"))
            _ = try await same.waitForLine(in: .stderr) { $0.contains("started") }
            // The first may go: the job is the other one's as well.
            one.kill(SIGTERM)
            #expect(try await one.waitForExit().ending == .signalled(SIGTERM))
            gate.open()
            let results = [try await two.waitForExit(), try await same.waitForExit()]
            #expect(results.map(\.status) == [0, 0])
            #expect(results.map(\.stdout) == ["\(target)/two\n", "\(target)/one\n"])
            #expect(server.requests.count == 2)
            for name in ["one", "two"] { #expect(try Self.object.matches("\(target)/\(name)") == nil) }
        }
    }

    @Test func `a wait ends when its time is over`() async throws {
        try await withDesk { desk in
            let gate = Gate()
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request).with(.hold(gate))
            }
            defer { gate.open() }
            try await desk.success("add", "-d", desk.target(), server.url("one"))
            let wait = try await desk.ferry("wait", "1", "--timeout", "200ms")
            #expect(wait.status == 4 && wait.stderr.contains("the time is over"), "\(wait.stderr)")
        }
    }

    @Test func `a server that asks for patience gets it, and costs no try`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, number in
                number == 0
                    ? Reply(503, headers: ["Retry-After: 1"]) : .object(Self.object, for: request)
            }
            let get = try await desk.ferry("get", "--attempts", "1", "-d", desk.target(), server.url("one"))
            #expect(get.status == 0, "\(get.stderr)")
            let waits = try #require(get.errorLines.first { $0.contains("waiting (host), again in ") })
            #expect(waits.contains("answered 503 (service unavailable)"))
            let events = try await desk.json("log", "1")["events"].elements
            #expect(events.contains { $0["kind"] == .string("waiting") && $0["reason"] == .string("host") })
            #expect(try Self.object.matches("\(desk.target())/one") == nil)
        }
    }

    @Test func `one good and one bad URL end with 3, two bad ones with 1`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let target = try desk.target()
            let mixed = try await desk.ferry("get", "-d", target, server.url("one"), server.url("bad"))
            #expect(mixed.status == 3 && mixed.stdout == "\(target)/one\n")
            #expect(mixed.stderr.contains("job 2 (\(server.url("bad"))) failed: not-found"))
            let bad = try await desk.ferry("get", "-d", target, server.url("bad1"), server.url("bad2"))
            #expect(bad.status == 1 && bad.stdout.isEmpty)
            #expect(try await desk.ferry("wait", "1", "2").status == 3)
            try await desk.success("add", "-d", target, server.url("bad3"), server.url("two"))
            #expect(try await desk.ferry("run", "--until-empty").status == 3)
            #expect(try desk.files() == ["one", "two"])
        }
    }
}
