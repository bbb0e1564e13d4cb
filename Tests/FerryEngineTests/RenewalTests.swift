import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

/// Links that expire in the midst of a download, and programs that have new ones.
@Suite(.timeLimit(.minutes(5))) struct RenewalTests {
    private static let object = TestObject(size: 1_000_000, seed: 47)
    private static let other = TestObject(size: 1_000_000, seed: 48)

    /// `/old` breaks after 300,000 bytes and answers 403 from then on, `/new` has the same object, `/other` another.
    private func server() throws -> ScriptedServer {
        try ScriptedServer { request, number in
            switch request.path {
            case "/old":
                number == 0
                    ? .object(Self.object, for: request).with(.cut(after: 300_000))
                    : .text(403, "the link is over")
            case "/new": .object(Self.object, for: request)
            case "/other": .object(Self.other, for: request)
            case "/gone": .text(403, "over, too")
            case "/busy": Reply(503)
            default: Reply(404)
            }
        }
    }

    private static func renewal(patience: Duration = .seconds(60)) -> Renewal {
        var renewal = Renewal()
        renewal.patience = patience
        renewal.document = { job, remote in
            Array(#"{"id":\#(job.id),"url":"\#(job.url)","total":\#(remote?.totalBytes ?? 0)}"#.utf8)
        }
        renewal.environment = ["PATH": "/usr/bin:/bin", "HOME": "/nowhere", "SECRET": "s3cret"]
        return renewal
    }

    /// Writes a program of the shell.
    private func program(_ scope: EngineScope, _ body: String) throws -> String {
        let path = try scope.folder.write("renew", "#!/bin/sh\n\(body)\n")
        try #require(chmod(path, 0o755) == 0)
        return path
    }

    @Test func `a program gives a new link, and the download goes on with it`() async throws {
        let server = try self.server()
        try await withEngine(renewal: Self.renewal()) { scope in
            let program = try self.program(
                scope,
                """
                cat > "$0.input"; env > "$0.env"; pwd > "$0.folder"; ls /proc/self/fd > "$0.descriptors"
                echo 'a word' >&2
                echo '\(server.url("new"))?sig=2'
                """
            )
            let id = try await scope.add(server.url("old?sig=1")) { $0.renew = program }
            let job = try await scope.end(of: id)
            #expect(job.state == .completed, "\(job)")
            #expect(try Self.object.matches(scope.folder.file("data/old")) == nil)
            #expect(server.requests(for: "/old").map(\.rangeStart) == [nil, 300_000])
            #expect(server.requests(for: "/new").map(\.rangeStart) == [300_000 - 65_536, 300_000])
            #expect(job.url == server.url("new") + "?sig=***")

            let waits = try await scope.events(of: id, "waiting").filter { $0.reason == "auth" }
            #expect(waits.count == 1)
            #expect(waits.first?.message?.contains("\(program) is asked for a new link") == true)
            #expect(job.forgivenAttempts == 1 && job.renewals == 0)

            // What the program saw: the job and no secret.
            let input = try scope.folder.text("renew.input")
            #expect(input == #"{"id":1,"url":"\#(server.url("old"))?sig=***","total":1000000}"# + "\n")
            let environment = try scope.folder.text("renew.env").split(separator: "\n")
            for line in [
                "FERRY_JOB_ID=1", "FERRY_JOB_URL=\(server.url("old"))?sig=***", "FERRY_JOB_STATE=waiting",
                "FERRY_JOB_REASON=auth", "FERRY_JOB_BYTES_DONE=300000", "HOME=/nowhere",
            ] {
                #expect(environment.contains(line[...]), "\(line) in \(environment)")
            }
            #expect(!environment.contains { $0.contains("SECRET") })
            #expect(try scope.folder.text("renew.folder") == "/\n")
            #expect(try scope.folder.text("renew.descriptors") == "0\n1\n2\n3\n", "3 is that of the listing")
        }
    }

    struct Bad: Sendable, CustomStringConvertible {
        var body: String
        var says: String
        var description: String { self.body }
    }

    @Test(arguments: [
        Bad(body: "echo $base/other", says: "has another size, tag or date"),
        Bad(body: "echo $base/gone", says: "over, too"),
        Bad(body: "echo $base/old", says: "printed the same link again"),
        Bad(body: "echo no key >&2; exit 3", says: "ended with status 3: no key"),
        Bad(body: "kill -TERM $$", says: "was ended by signal 15"),
        Bad(body: "true", says: "printed nothing"),
        Bad(body: "echo $base/new; echo $base/new", says: "printed more than one line"),
        Bad(body: "echo ftp://127.0.0.1/new", says: "printed no URL"),
        Bad(body: "echo http://192.0.2.1/new", says: "http"),
        Bad(body: "printf '\\033[2J'", says: "printed characters that no URL has"),
        Bad(body: "while :; do echo $base/new; done", says: "printed too much"),
        Bad(body: "echo slow >&2; sleep 1000", says: "gave no answer within 3s: slow"),
        Bad(body: "trap '' TERM HUP INT; echo busy >&2; sleep 1000", says: "gave no answer within 3s: busy"),
        Bad(body: "echo $base/new; exec >&- 2>&-; sleep 1000", says: "gave no answer within 3s"),
        Bad(body: "yes | head -c 1000000000", says: "printed too much"),
        Bad(body: "yes >&2 | sleep 1000", says: "gave no answer within 3s: y"),
    ])
    func `anything else ends the job with what was said`(bad: Bad) async throws {
        let server = try self.server()
        try await withEngine(renewal: Self.renewal(patience: .seconds(3))) { scope in
            let program = try self.program(scope, "base=\(server.url("").dropLast())\n\(bad.body)")
            let id = try await scope.add(server.url("old")) { $0.renew = program }
            let job = try await scope.end(of: id)
            #expect(job.state == .failed && job.failureReason == .linkExpired, "\(job)")
            #expect(job.message?.hasPrefix("the link has expired, and ") == true)
            #expect(job.message?.contains(bad.says) == true, "\(job.message ?? "")")
            #expect(job.message?.contains(program) == true, "\(job.message ?? "")")
            #expect(job.advice?.contains("ferry set 1 --url") == true)
            // All that came is there, and a good link goes on with it.
            #expect(job.bytesDurable == 300_000)
            #expect(try await scope.set(JobChanges(url: server.url("new")), id).state != .failed)
            #expect(try await scope.next(id, .completed).state == .completed)
            #expect(server.requests(for: "/new").last?.rangeStart == 300_000)
            #expect(try Self.object.matches(scope.folder.file("data/old")) == nil)
        }
    }

    @Test func `a program that leaves others behind has answered when it has ended`() async throws {
        let server = try self.server()
        try await withEngine(renewal: Self.renewal()) { scope in
            // It holds the output open for longer than a program may take.
            let program = try self.program(
                scope,
                "sleep 90 & echo $! > \"$0.pid\"; echo '\(server.url("new"))'"
            )
            let id = try await scope.add(server.url("old")) { $0.renew = program }
            #expect(try await scope.end(of: id).state == .completed)
            let child = try #require(pid_t(scope.folder.text("renew.pid").dropLast()))
            #expect(kill(child, SIGKILL) == 0)
        }
    }

    @Test func `a program that is not there any more`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let id = try await scope.add(server.url("old")) { $0.renew = "/nowhere/renew" }
            let job = try await scope.end(of: id)
            #expect(job.failureReason == .linkExpired)
            #expect(job.message?.contains("/nowhere/renew could not be run: No such file") == true)
            // Another one helps.
            let program = try self.program(scope, "echo '\(server.url("new"))'")
            #expect(try await scope.set(JobChanges(renew: .set(program)), id).error == nil)
            #expect(try await scope.next(id, .completed).state == .completed)
        }
    }

    @Test func `links that bring nothing are asked for three times`() async throws {
        let server = try ScriptedServer { request, number in
            if request.path == "/old" {
                return number == 0
                    ? .object(Self.object, for: request).with(.cut(after: 300_000)) : Reply(403)
            }
            // The proof succeeds, the download itself does not.
            return number == 0 ? .object(Self.object, for: request) : Reply(403)
        }
        try await withEngine(renewal: Self.renewal()) { scope in
            let program = try self.program(scope, "echo x >> \"$0.runs\"; echo '\(server.url("n"))'$$")
            let id = try await scope.add(server.url("old")) { $0.renew = program }
            let job = try await scope.end(of: id)
            #expect(job.failureReason == .linkExpired)
            #expect(job.message?.contains("also for the 3 links that \(program) gave") == true, "\(job)")
            #expect(try scope.folder.text("renew.runs") == "x\nx\nx\n")
            #expect(job.bytesDurable == 300_000)
            // A person who tries again gets three more.
            try await scope.steer(.retry, id)
            _ = try await scope.end(of: id)
            #expect(try scope.folder.text("renew.runs").count == 12)
        }
    }

    @Test func `a new link that cannot be looked at now is asked for again later`() async throws {
        let server = try self.server()
        try await withEngine(renewal: Self.renewal()) { scope in
            let program = try self.program(
                scope,
                "if test -e \"$0.runs\"; then echo '\(server.url("new"))'; else echo '\(server.url("busy"))'; fi\n"
                    + "touch \"$0.runs\""
            )
            let id = try await scope.add(server.url("old")) { $0.renew = program }
            var waits: [JobRecord] = []
            while true {
                let job = try await scope.next(id, .waiting, .completed, .failed)
                guard job.state == .waiting else { break }
                waits.append(job)
                if job.nextTry != nil { try await scope.passWait(of: job) }
            }
            #expect(try await scope.job(id).state == .completed)
            let later = try #require(waits.first { $0.waitReason == .auth && $0.nextTry != nil })
            #expect(later.message?.contains("answered 503") == true && later.renewals == 0)
        }
    }

    @Test(arguments: [true, false])
    func `a program is stopped with the service, or with its job, and the job goes on`(isPaused: Bool)
        async throws
    {
        let server = try self.server()
        try await withEngine(renewal: Self.renewal()) { scope in
            try scope.folder.write("hang", "")
            let program = try self.program(
                scope,
                """
                if test -e '\(scope.folder.file("hang"))'; then
                    mkfifo "$0.fifo"; sleep 1000 & echo $! > "$0.pid"; echo > "$0.fifo"; wait
                fi
                echo '\(server.url("new"))'
                """
            )
            let id = try await scope.add(server.url("old")) { $0.renew = program }
            var job = try await scope.next(id, .waiting)
            if job.waitReason != .auth {
                try await scope.passWait(of: job)
                job = try await scope.next(id, .waiting)
            }
            #expect(job.waitReason == .auth)
            while !scope.folder.exists("renew.fifo") { await Task.yield() }
            // Reading waits until the program writes, and that comes after it has told its child.
            #expect(try scope.folder.text("renew.fifo") == "\n")
            let child = try #require(pid_t(scope.folder.text("renew.pid").dropLast()))
            #expect(kill(child, 0) == 0)
            unlink(scope.folder.file("hang"))
            if isPaused {
                #expect(try await scope.steer(.pause, id).state == .paused)
                #expect(try await scope.steer(.resume, id).error == nil)
            } else {
                try await scope.restart()
            }
            let end = try await scope.end(of: id)
            #expect(end.state == .completed, "\(end)")
            // Killed with its group; whoever took it over has reaped it, or will.
            while kill(child, 0) == 0, try Self.state(of: child) != "Z" { await Task.yield() }
        }
    }

    /// The state of a process in proc(5), nil if there is none.
    private static func state(of process: pid_t) throws -> String? {
        guard let stat = try? readFile("/proc/\(process)/stat") else { return nil }
        let text = String(decoding: stat, as: UTF8.self)
        return text.split(separator: ")").last?.split(separator: " ").first.map(String.init)
    }

    @Test func `without a program the job says how to go on`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("old"))
            #expect(job.failureReason == .linkExpired && job.bytesDurable == 300_000)
            #expect(job.message?.contains("the link is over") == true)
            #expect(job.advice?.contains("ferry set 1 --url") == true)
            #expect(job.advice?.contains("--renew PROGRAM") == true)
        }
    }

    @Test(
        arguments: [
            (
                "application/xml",
                "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>",
                "Request has expired"
            ),
            (
                "application/json; charset=utf-8", #"{"message": "signature is over"}"#,
                #"{"message": "signature is over"}"#
            ),
            ("text/plain", "no\u{1b}[2J\nmore", #"no\u{1B}[2J"#), ("text/html", "<p>no</p>", nil),
            ("application/xml", "<Error/>", nil), ("application/xhtml+xml", "<Message>x</Message>", nil),
        ] as [(String, String, String?)]
    )
    func `the server's own words are shown`(type: String, body: String, words: String?) async throws {
        let server = try script([{ _ in .text(403, body, type: type) }])
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("f?X-Amz-Expires=300"))
            #expect(job.failureReason == .linkExpired)
            let said = job.message?.split(separator: ": ", maxSplits: 1).dropFirst().first.map(String.init)
            #expect(said == words, "\(job.message ?? "")")
        }
    }

    @Test func `a queue with folders of its own runs no programs`() async throws {
        var configuration = EngineConfiguration()
        configuration.allowedFolders = AllowedFolders(["/tmp"])
        try await withEngine(configuration: configuration) { scope in
            let requests = [scope.request("https://127.0.0.1:1/x") { $0.renew = "/bin/true" }]
            let error = await #expect(throws: FerryError.self) {
                try await scope.engine.add(requests, goOn: false)
            }
            #expect(error?.exitStatus == .usage && error?.message.contains("--renew") == true)
        }
    }
}
