import FerryTestSupport
import Glibc
import Testing

/// Jobs that wait for hours or for other jobs, and links that expire, as a user meets them.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ScheduleTests {
    private static let object = TestObject(size: 500_000, seed: 71)
    private static let other = TestObject(size: 500_000, seed: 72)

    /// `/old` breaks after 200,000 bytes and answers 403 from then on; `/bad` is missing.
    private static func server() throws -> ScriptedServer {
        try ScriptedServer { request, number in
            switch request.path {
            case "/old":
                number == 0
                    ? .object(Self.object, for: request).with(.cut(after: 200_000)) : .text(403, "over")
            case "/other": .object(Self.other, for: request)
            case "/bad": Reply(404)
            default: .object(Self.object, for: request)
            }
        }
    }

    private static func program(_ desk: Desk, _ body: String) throws -> String {
        let path = try desk.folder.write("renew", "#!/bin/sh\n\(body)\n")
        try #require(chmod(path, 0o755) == 0)
        return path
    }

    // MARK: Windows

    @Test(arguments: ["UTC0", "XXX-5:30", "CET-1CEST,M3.5.0,M10.5.0/3", "Pacific/Auckland"])
    func `a window is that of the caller's clock`(zone: String) async throws {
        try await withDesk { desk in
            let tool = desk.tool.with(["TZ": zone])
            // A window that opens two hours from now, by the caller's clock.
            let date = ToolRunner(path: "/bin/date", environment: tool.environment)
            func clock(_ hours: Int) async throws -> String {
                try await date.run(["-d", "+\(hours) hours", "+%H:00"]).lines.first ?? ""
            }
            let hours = "\(try await clock(2))-\(try await clock(3))"
            let added = try await tool.run(
                desk.arguments(["add", "--window", hours, "-o", "x", "http://127.0.0.1:9/x"])
            )
            #expect(added.stdout == "1\n", "\(added.stderr)")
            let job = try await desk.job()
            #expect(job["state"].text == "waiting" && job["reason"].text == "schedule")
            #expect(job["window"].text == hours)
            #expect(job["message"].text == "outside its window \(hours)")
            let opening = try #require(job["retry_at"].text)
            let shown = try await date.run(["-d", opening, "+%H:00"]).lines.first
            #expect(try #require(shown) == hours.prefix(5), "\(opening)")
            let run = try await desk.ferry("run", "--until-empty")
            #expect(run.status == 0, "waiting for a schedule keeps no run: \(run.stderr)")

            let details = try await desk.success("show", "1")
            #expect(details.contains("window:     \(hours)\n"))
            #expect(try await desk.ferry("set", "1", "--window", "none").status == 0)
            #expect(try await desk.job()["state"].text == "queued")
            #expect(try await desk.job()["window"] == .null)
        }
    }

    // MARK: Jobs after others

    @Test func `a command carries out what its job comes after`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let target = try desk.target()
            try await desk.success("add", "-d", target, server.url("one"))
            try await desk.success("add", "-d", target, "--after", "1", server.url("two"))
            try await desk.success("add", "-d", target, server.url("alone"))
            #expect(try await desk.job(2)["after"].elements == [.number(1)])
            #expect(try await desk.success("show", "2").contains("after:      job 1\n"))
            let get = try await desk.ferry(
                "get",
                "-d",
                target,
                "--after",
                "2",
                "--after",
                "1",
                server.url("three")
            )
            #expect(get.status == 0 && get.stdout == "\(target)/three\n", "\(get.stderr)")
            #expect(get.stderr.contains("waiting (schedule): after job"), "\(get.stderr)")
            #expect(server.requests.map(\.path) == ["/one", "/two", "/three"])
            #expect(try await desk.job(3)["state"].text == "queued")
        }
    }

    @Test func `a run ends only when what comes after has run too`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let target = try desk.target()
            try await desk.success("add", "-d", target, server.url("f1"))
            for number in 2...6 {
                try await desk.success(
                    "add",
                    "-d",
                    target,
                    "--after",
                    "\(number - 1)",
                    server.url("f\(number)")
                )
            }
            #expect(try await desk.ferry("run", "--until-empty").status == 0)
            #expect(server.requests.map(\.path) == (1...6).map { "/f\($0)" })
        }
    }

    @Test func `what comes after a failure fails, and says what to do`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let target = try desk.target()
            try await desk.success("add", "-d", target, server.url("bad"))
            let get = try await desk.ferry("get", "-d", target, "--after", "1", server.url("two"))
            #expect(get.status == 1 && get.stdout.isEmpty)
            #expect(
                get.errorLines.suffix(2) == [
                    "ferry: job 2 (\(server.url("two"))) failed: dependency: job 1, which it comes after, has failed",
                    "see to that job, then: ferry retry 1 2; ferry set 2 --after none waits for it no longer",
                ],
                "\(get.stderr)"
            )
            let retry = try await desk.ferry("retry", "2")
            #expect(retry.status == 1 && retry.stderr.contains("job 2 fails at once"), "\(retry.stderr)")
            #expect(try await desk.ferry("set", "2", "--after", "none").status == 0)
            let wait = try await desk.ferry("wait", "2")
            #expect(wait.status == 0, "\(wait.stderr)")
        }
    }

    // MARK: Expired links

    @Test(arguments: [true, false])
    func `a program renews a link, with and without a daemon`(hasDaemon: Bool) async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let program = try Self.program(
                desk,
                "cat > \"$0.input\"; ps -ef > \"$0.processes\"; echo '\(server.url("new"))?sig=s3cr3t-new'"
            )
            let daemon = hasDaemon ? try desk.start("daemon") : nil
            if let daemon { _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=ready") } }
            let get = try await desk.ferry(
                "get",
                "-v",
                "-o",
                "file",
                "--renew",
                "./renew",
                server.url("old") + "?sig=s3cr3t-old"
            )
            #expect(get.status == 0 && get.stdout == "\(desk.folder.file("file"))\n", "\(get.stderr)")
            #expect(get.stderr.contains("waiting (auth)"), "\(get.stderr)")
            #expect(get.stderr.contains("\(program) is asked for a new link"), "\(get.stderr)")
            #expect(try Self.object.matches(desk.folder.file("file")) == nil)
            #expect(server.requests(for: "/new").last?.rangeStart == 200_000)

            let input = try JSON(line: try desk.folder.text("renew.input"))
            #expect(input["type"].text == "job" && input["bytes_done"] == .number(200_000))
            #expect(input["reason"].text == "auth" && input["url"].text == server.url("old") + "?sig=***")

            // No secret in what anybody may see.
            var said = get.stdout + get.stderr + (try desk.folder.text("renew.processes"))
            said += try await desk.success("log", "1") + desk.success("show", "1", "--json")
            let log = try? desk.folder.text("queue/ferryd.log")
            said += log ?? ""
            #expect(!said.contains("s3cr3t"), "\(said)")
            daemon?.kill(SIGTERM)
            if let daemon {
                let end = try await daemon.waitForExit()
                #expect(end.status == 0 && !end.stderr.contains("s3cr3t"))
            }
        }
    }

    @Test func `a program dies with a service that is killed, and all that it has started`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let hang = try desk.folder.write("hang", "")
            let program = try Self.program(
                desk,
                """
                if test -e '\(hang)'; then
                    trap '' TERM HUP INT
                    rm '\(hang)'; sleep 1000 & echo $$ $! > "$0.new"; mv "$0.new" "$0.pids"; wait
                fi
                echo '\(server.url("new"))'
                """
            )
            let daemon = try desk.start("daemon")
            _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=ready") }
            try await desk.success("add", "-o", "file", "--renew", "./renew", server.url("old"))
            _ = try await desk.job { $0["reason"].text == "auth" }
            #expect(try await desk.success("show", "1").contains("renew:      \(program)\n"))
            #expect(try await desk.job()["renew"].text == program)
            while !desk.folder.exists("renew.pids") { await Task.yield() }
            let pids = try desk.folder.text("renew.pids").split(whereSeparator: \.isWhitespace)
                .compactMap { pid_t($0) }
            #expect(pids.count == 2 && pids.allSatisfy { kill($0, 0) == 0 })
            try desk.service.kill(SIGKILL)
            _ = try await daemon.waitForExit()
            for pid in pids {
                // Whoever takes over what has lost its parent reaps it sooner or later.
                while kill(pid, 0) == 0, try Self.state(of: pid) != "Z" { await Task.yield() }
            }
            // The next service asks it again.
            let wait = try await desk.ferry("wait", "1")
            #expect(wait.status == 0, "\(wait.stderr)")
            #expect(try Self.object.matches(desk.folder.file("file")) == nil)
        }
    }

    /// The state of a process in proc(5), nil if there is none.
    private static func state(of process: pid_t) throws -> String? {
        guard let stat = try? readFile("/proc/\(process)/stat") else { return nil }
        let text = String(decoding: stat, as: UTF8.self)
        return text.split(separator: ")").last?.split(separator: " ").first.map(String.init)
    }

    @Test func `another object is refused, by set and by a program`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            _ = try Self.program(
                desk,
                "echo '\(server.url("other"))?k=s3cr3t'; echo '\(server.url("other"))?k=s3cr3t' >&2"
            )
            let get = try await desk.ferry("get", "-o", "file", "--renew", "./renew", server.url("old"))
            #expect(get.status == 1)
            #expect(
                get.stderr.contains("failed: link-expired: the link has expired, and the link that"),
                "\(get.stderr)"
            )
            #expect(get.stderr.contains("get a fresh link, then: ferry set 1 --url NEW-URL"), "\(get.stderr)")
            #expect(!get.stderr.contains("s3cr3t"))
            let before = try await desk.job()
            #expect(before["state"].text == "failed" && before["bytes_durable"] == .number(200_000))
            let refused = try await desk.ferry("set", "1", "--url", server.url("other"))
            #expect(
                refused.status == 1 && refused.stderr.contains("job 1 is left as it was"),
                "\(refused.stderr)"
            )
            #expect(try await desk.job() == before)
            #expect(try await desk.ferry("set", "1", "--url", server.url("new")).status == 0)
            #expect(try await desk.ferry("wait", "1").status == 0)
            #expect(server.requests(for: "/new").last?.rangeStart == 200_000)
            #expect(try Self.object.matches(desk.folder.file("file")) == nil)
        }
    }

    // MARK: Bad input

    @Test(arguments: [
        (["get", "--window", "22:00"], "'22:00' is no window"),
        (["add", "--window", "06:00-06:00"], "two different ends"),
        (["add", "--after", "x"], "'x' is no number of a job"),
        (["add", "--after", "0"], "'0' is no number"),
        (["add", "--after", "1", "--after", "none"], "not both"),
        (["get", "--renew", "./missing"], "'./missing' cannot be found"),
        (["get", "--renew", "."], "in PATH"),
        (["get", "--renew", "/"], "is no program"), (["get", "--renew", "/etc/passwd"], "is it executable?"),
        (["get", "--renew", "no-such-program-here"], "there is no program 'no-such-program-here' in PATH"),
        (
            ["get", "--renew", "echo x"],
            "there is no program 'echo x' in PATH; it takes a program without arguments"
        ),
    ])
    func `bad values are refused before anything is queued`(arguments: [String], says: String) async throws {
        try await withDesk { desk in
            let result = try await desk.ferry(arguments + ["https://example.org/x"])
            expectRefusal(result, status: 2, says: [says])
        }
    }

    @Test func `what cannot be is refused`() async throws {
        try await withDesk { desk in
            let file = try desk.folder.write("file", "x")
            let put = try await desk.ferry("put", "--renew", "true", file, "https://example.org/x")
            #expect(put.status == 2 && put.stderr.contains("--renew"), "\(put.stderr)")
            let upload = try await desk.ferry(
                "add",
                "--upload",
                file,
                "--renew",
                "true",
                "https://example.org/x"
            )
            expectRefusal(upload, status: 2, says: ["--renew is for downloads"])
            let system = try await desk.tool.run([
                "get", "--system", "--renew", "true", "https://example.org/x",
            ])
            expectRefusal(system, status: 2, says: ["--renew: the machine's queue runs no programs"])
            let unknown = try await desk.ferry("add", "--after", "7", "http://127.0.0.1:9/x")
            expectRefusal(unknown, status: 1, says: ["--after: there is no job 7"])
            #expect(try await desk.ferry("list").stdout.contains("JOB") == false)
            try await desk.success("add", "http://127.0.0.1:9/x")
            let cycle = try await desk.ferry("set", "1", "--after", "1")
            #expect(cycle.status == 2 && cycle.stderr.contains("cannot come after itself"), "\(cycle.stderr)")
            let same = try await desk.ferry("add", "--window", "22:00-06:00", "http://127.0.0.1:9/x")
            #expect(same.stdout == "1\n" && same.stderr.contains("keeps its own --window"), "\(same.stderr)")
        }
    }
}
