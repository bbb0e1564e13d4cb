import FerryTestSupport
import Glibc
import Testing

/// `ferry doctor` and `ferryd --check`: each finding provoked, and the repair tried.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DoctorTests {
    private static let object = TestObject(size: 600_000, seed: 41)

    /// A desk with one completed job and one that was paused on its way; no service runs.
    private func withQueue(_ body: (Desk) async throws -> Void) async throws {
        let gate = Gate()
        let server = try ScriptedServer { request, _ in
            let reply = Reply.object(Self.object, for: request)
            return request.path == "/slow" ? reply.with(.stall(after: 300_000, until: gate)) : reply
        }
        defer { gate.open() }
        try await withDesk { desk in
            let target = try desk.target()
            try await desk.success("get", "-d", target, server.url("done"))
            let get = try desk.start("get", "-d", target, server.url("slow"))
            _ = try await desk.job(2) { $0["bytes_done"].int == 300_000 }
            try await desk.success("pause", "2")
            _ = try await get.waitForExit()
            try? desk.stopService()
            try await body(desk)
        }
    }

    private func findings(_ desk: Desk, _ arguments: String...) async throws -> (status: Int32?, list: [JSON])
    {
        let result = try await desk.ferry(["doctor", "--json"] + arguments)
        let report = try JSON(line: result.stdout)
        #expect(report.keys == ["type", "state_dir", "findings", "problems", "damaged"])
        let list = report["findings"].elements
        for finding in list {
            #expect(finding["check"].text != nil && finding["message"].text?.isEmpty == false)
            #expect(["ok", "note", "problem"].contains(finding["level"].text))
        }
        #expect(report["problems"].int.map(Int.init) == list.count { $0["level"].text == "problem" })
        // How much is free changes by itself.
        return (result.status, list.filter { $0["check"].text != "disk" })
    }

    /// What is done to the queue, and what is found; with a word, that it was repaired.
    struct Damage: Sendable {
        let name: String
        let says: String
        let level: String
        let repaired: String?
        let harm: @Sendable (Desk) async throws -> Void
    }

    private static let partial = ".slow.2.ferry-part"

    private static func sql(_ statement: String) -> @Sendable (Desk) async throws -> Void {
        { desk in
            let script = """
                import sqlite3, sys
                connection = sqlite3.connect(sys.argv[1], isolation_level=None)
                connection.executescript(sys.argv[2])
                """
            let result = try await ToolRunner.program("python3")
                .run(["-c", script, "\(desk.stateFolder)/jobs.db", statement])
            #expect(result.status == 0, "\(result.stderr)")
        }
    }

    private static let damages = [
        Damage(
            name: "counters",
            says: "do not fit the rows: all/paused",
            level: "problem",
            repaired: "counted anew",
            harm: sql("UPDATE counter SET count = 9 WHERE scope = 'all' AND state = 'paused'")
        ),
        Damage(
            name: "index",
            says: "an index does not fit its table",
            level: "problem",
            repaired: "made anew",
            harm: sql(
                """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, '(state, id)', '(state, host)') WHERE name = 'job_live';
                """
            )
        ),
        Damage(
            name: "secret",
            says: "secrets of jobs that are over",
            level: "problem",
            repaired: "were erased",
            harm: sql("INSERT INTO secret VALUES (1, 'url', 'https://x/?key=1')")
        ),
        Damage(
            name: "reservation",
            says: "still reserve names: 1",
            level: "problem",
            repaired: "given up",
            harm: sql("INSERT INTO reservation VALUES ('/x', 'y', 1)")
        ),
        Damage(
            name: "clean-up",
            says: "1 wait for jobs that are over",
            level: "problem",
            repaired: "dropped",
            harm: sql("INSERT INTO cleanup (job, kind, detail, created_at) VALUES (1, 'cancel', '', 1)")
        ),
        Damage(
            name: "crashed",
            says: "job 2 was running when its service ended",
            level: "note",
            repaired: nil,
            harm: sql("UPDATE job SET state = 'running' WHERE id = 2")
        ),
        Damage(
            name: "request",
            says: "job 2 has no request",
            level: "problem",
            repaired: nil,
            harm: sql("DELETE FROM job_request WHERE job = 2")
        ),
        Damage(
            name: "stranger",
            says: "rows of secret that belong to no job",
            level: "problem",
            repaired: nil,
            harm: sql("INSERT INTO secret VALUES (77, 'url', 'x')")
        ),
        Damage(
            name: "clock",
            says: "the clock was set back",
            level: "problem",
            repaired: nil,
            harm: sql("INSERT INTO event (time, kind) VALUES (4000000000000, 'x')")
        ),
        Damage(name: "mode of the folder", says: "has mode 0755", level: "problem", repaired: "0700 now") {
            chmod($0.stateFolder, 0o755)
        },
        Damage(name: "mode of the database", says: "has mode 0644", level: "problem", repaired: "0600 now") {
            chmod("\($0.stateFolder)/jobs.db", 0o644)
        },
        Damage(
            name: "short partial",
            says: "has 1000 bytes, and 300000 were",
            level: "problem",
            repaired: "to 1000"
        ) {
            truncate("\(try $0.target())/\(partial)", 1_000)
        },
        Damage(name: "missing partial", says: "is missing", level: "problem", repaired: nil) {
            unlink("\(try $0.target())/\(partial)")
        },
        Damage(
            name: "edited partial",
            says: "was changed while the job stood still",
            level: "note",
            repaired: nil
        ) {
            let file = open("\(try $0.target())/\(partial)", O_WRONLY)
            pwrite(file, "x", 1, 5)
            close(file)
        },
        Damage(name: "missing folder", says: "cannot open the folder", level: "problem", repaired: nil) {
            rename("\(try $0.target())", $0.folder.file("elsewhere"))
            try $0.folder.write("files", "a file has its place")
        },
        Damage(name: "stray", says: "belongs to no job of this queue", level: "note", repaired: nil) {
            try $0.folder.write("files/.x.9.ferry-part", "somebody's")
        },
        Damage(
            name: "second name",
            says: "is a second name of the finished file",
            level: "problem",
            repaired: "removed"
        ) {
            link("\(try $0.target())/done", "\(try $0.target())/.done.1.ferry-part")
        },
        Damage(
            name: "left of a completed job",
            says: "is left of a completed job",
            level: "note",
            repaired: nil
        ) {
            try $0.folder.write("files/.done.1.ferry-part", "somebody's")
        },
        Damage(name: "spool", says: "belongs to no upload", level: "problem", repaired: "was removed") {
            try $0.folder.makeFolder("queue/spool", mode: 0o700)
            let path = try $0.folder.write("queue/spool/7", "body")
            chmod(path, 0o600)
            utimes(path, [timeval(tv_sec: 1_000, tv_usec: 0), timeval(tv_sec: 1_000, tv_usec: 0)])
        },
        Damage(name: "board", says: "holds nothing usable", level: "note", repaired: nil) {
            try $0.folder.write("queue/board", "x")
        },
    ]

    @Test(arguments: damages.indices)
    func `each finding is told, and repaired where nothing is guessed`(index: Int) async throws {
        let damage = Self.damages[index]
        try await self.withQueue { desk in
            try await damage.harm(desk)
            let files = try? desk.files()
            let before = try await self.findings(desk)
            let found = before.list.first { $0["message"].text?.contains(damage.says) == true }
            #expect(found?["level"].text == damage.level, "\(damage.name): \(before.list)")
            #expect(before.status == (damage.level == "problem" ? 1 : 0), "\(damage.name): \(before.list)")
            // Looking changes nothing, except that SQLite makes its log and index.
            let again = try await self.findings(desk)
            #expect(Set(again.list.map { $0["check"].text }) == Set(before.list.map { $0["check"].text }))
            #expect(again.status == before.status && (try? desk.files()) == files)

            let during = try await self.findings(desk, "--repair")
            guard let repaired = damage.repaired else {
                #expect(during.status == before.status && (try? desk.files()) == files)
                return
            }
            let put = during.list.first { $0["repaired"] == .bool(true) }
            #expect(put?["message"].text?.contains(repaired) == true, "\(damage.name): \(during.list)")
            #expect(during.status == 0)
            let after = try await self.findings(desk)
            #expect(after.status == 0 && !after.list.contains { $0["message"].text == damage.says })
            // The queue works.
            #expect(try await desk.json("list", "--all")["jobs"].elements.count == 2)
        }
    }

    @Test func `a healthy queue has no problems, with a service and without`() async throws {
        try await self.withQueue { desk in
            let alone = try await desk.ferry("doctor")
            #expect(alone.status == 0 && alone.stderr.isEmpty, "\(alone.stdout)")
            #expect(
                alone.lines.allSatisfy { $0.hasPrefix("ok: ") || $0.hasPrefix("note: ") },
                "\(alone.stdout)"
            )
            #expect(alone.stdout.contains("ok: service: none runs"))
            #expect(alone.stdout.contains("ok: database: integrity check passed"))

            let daemon = try desk.tool.start(["daemon", "--state-dir", desk.stateFolder])
            _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=ready") }
            let live = try await desk.ferry("doctor")
            #expect(live.status == 0 && live.stdout.contains("runs as a daemon"), "\(live.stdout)")
            #expect(live.stdout.contains("ok: database: quick check passed"))
            let busy = try await ToolRunner.product("ferryd", in: desk.folder)
                .run(["--check", "--state-dir", desk.stateFolder])
            #expect(busy.status == 10 && busy.stderr.contains("a service owns the queue"), "\(busy.stderr)")

            chmod("\(desk.stateFolder)/jobs.db", 0o644)
            let refused = try await desk.ferry("doctor", "--repair")
            #expect(
                refused.status == 1 && refused.stdout.contains("nothing was repaired"),
                "\(refused.stdout)"
            )
        }
    }

    @Test func `a queue that was never used is fine, and is not made`() async throws {
        try await withDesk { desk in
            let result = try await desk.ferry("doctor")
            #expect(result.status == 0 && result.stdout.contains("there is no queue"), "\(result.stdout)")
            #expect(!desk.folder.exists("queue"))
            expectRefusal(try await desk.ferry("doctor", "x"), status: 2, says: ["takes no operand"])
            expectRefusal(try await desk.ferry("doctor", "--start-over"), status: 2, says: ["needs --repair"])
        }
    }

    /// How bytes of the database are overwritten.
    enum Ruin: String, CaseIterable, Sendable {
        case header, page, truncated, emptied, noise
    }

    @Test(arguments: Ruin.allCases)
    func `a damaged database is told with status 12, and moved aside only when asked`(ruin: Ruin) async throws
    {
        try await self.withQueue { desk in
            let path = "\(desk.stateFolder)/jobs.db"
            var bytes = try desk.folder.read("queue/jobs.db")
            switch ruin {
            case .header: bytes.replaceSubrange(0..<64, with: repeatElement(0x58, count: 64))
            case .page:
                for page in stride(from: 4_096, to: bytes.count - 4_096, by: 12_288) {
                    bytes.replaceSubrange(
                        page + 1_000..<page + 4_000,
                        with: repeatElement(0xA5, count: 3_000)
                    )
                    bytes.replaceSubrange(page..<page + 60, with: repeatElement(0xFF, count: 60))
                }
            case .truncated: bytes.removeLast(bytes.count / 2)
            case .emptied: bytes.replaceSubrange(4_096..., with: repeatElement(0, count: bytes.count - 4_096))
            case .noise: bytes = TestObject(size: Int64(bytes.count), seed: 3).bytes(0..<Int64(bytes.count))
            }
            unlink("\(path)-wal")
            unlink("\(path)-shm")
            try Self.overwrite(path, bytes)

            let found = try await self.findings(desk)
            #expect(found.status == 12, "\(found.list)")
            let advice = found.list.compactMap { $0["advice"].text }.first { $0.contains("--start-over") }
            #expect(advice?.contains("lost") == true, "\(found.list)")
            let list = try await desk.ferry("list")
            #expect(list.status == 12)
            #expect(try await self.findings(desk, "--repair").status == 12)
            #expect(try desk.folder.read("queue/jobs.db") == bytes)

            let anew = try await desk.ferry("doctor", "--repair", "--start-over")
            #expect(anew.status != 12 && anew.stderr.contains("are lost"), "\(anew.stdout)")
            #expect(anew.stdout.contains("was kept as jobs.db.damaged-"))
            let kept = try desk.folder.names(in: "queue").first {
                $0.hasPrefix("jobs.db.damaged-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm")
            }
            #expect(try kept.map { try desk.folder.read("queue/\($0)") } == bytes)
            #expect(try await desk.ferry("list").status == 0)
            // Files are nobody's to remove.
            #expect(try desk.files().contains(Self.partial) && desk.files().contains("done"))
        }
    }

    private static func overwrite(_ path: String, _ bytes: [UInt8]) throws {
        let file = open(path, O_WRONLY | O_TRUNC)
        defer { close(file) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            guard count > 0 else { throw TestSupportError("cannot write \(path)") }
            rest = rest.dropFirst(count)
        }
    }

    @Test func `a finished file is verified by job and by name`() async throws {
        try await self.withQueue { desk in
            let wrong = "md5:d41d8cd98f00b204e9800998ecf8427e"
            let mismatch = try await desk.ferry("verify", "1", "--checksum", wrong)
            expectRefusal(mismatch, status: 1, says: ["files/done has md5:", "not d41d8cd98f"])
            let told = try #require(mismatch.stderr.split(separator: " ").first { $0.hasPrefix("md5:") })
            let right = String(told.dropLast())
            #expect(
                try await desk.success("verify", "1", "--checksum", right).contains("files/done: \(right)")
            )
            try await desk.success("verify", "files/done", "--checksum", right)
            let json = try await desk.json("verify", "1", "--checksum", right)
            #expect(json["matches"] == .bool(true) && json["algorithm"].text == "md5")
            let cases: [([String], Int32, String)] = [
                (["1"], 2, "needs --checksum"), (["--checksum", right], 2, "needs the number of one job"),
                (["2", "--checksum", right], 1, "job 2 is paused"),
                (["9", "--checksum", right], 1, "there is no job 9"),
                (["missing", "--checksum", right], 1, "No such file"),
                (["files", "--checksum", right], 1, "not a regular file"),
            ]
            for (arguments, status, says) in cases {
                let result = try await desk.ferry(["verify"] + arguments)
                expectRefusal(result, status: status, says: [says], "\(arguments)")
            }
        }
    }
}
