import FerryTestSupport
import Glibc
import Testing

/// `ferry resume-data` and `ferry cancel --resume-data`: a stopped download goes on elsewhere.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ResumeDataTests {
    private static let object = TestObject(size: 3_000_000, seed: 31)
    private static let fetched: Int64 = 1_200_000

    /// Lets the first body stop on its way.
    private static func server(_ gate: Gate) throws -> ScriptedServer {
        try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return number == 0 ? reply.with(.stall(after: fetched, until: gate)) : reply
        }
    }

    /// Two queues of one user, the first of which has a download that was paused on its way.
    private func withPausedJob(
        _ url: String = "object.bin?key=S3cret",
        _ body: (Desk, Desk, ScriptedServer) async throws -> Void
    ) async throws {
        let gate = Gate()
        let server = try Self.server(gate)
        defer { gate.open() }
        try await withDesk { first in
            try await withDesk { second in
                let get = try first.start("get", "-d", try first.target(), server.url(url))
                _ = try await first.job { $0["bytes_done"].int == Self.fetched }
                try await first.success("pause", "1")
                _ = try await get.waitForExit()
                #expect(try await first.job()["bytes_durable"].int == Self.fetched)
                try await body(first, second, server)
            }
        }
    }

    private static func mode(_ path: String) -> mode_t {
        var info = stat()
        return stat(path, &info) == 0 ? info.st_mode & 0o777 : 0
    }

    private static func copy(_ from: String, to: String) async throws {
        let result = try await ToolRunner.program("cp", package: "coreutils").run([from, to])
        #expect(result.status == 0, "\(result.stderr)")
    }

    private static let partial = ".object.bin.1.ferry-part"

    @Test func `a copied partial goes on in another queue where it stopped`() async throws {
        try await self.withPausedJob { first, second, server in
            let file = second.folder.file("move.json")
            #expect(try await first.success("resume-data", "export", "1", "-o", file).isEmpty)
            #expect(Self.mode(file) == 0o600)
            #expect(try second.folder.text("move.json").contains("S3cret"))
            let target = try second.target()
            try await Self.copy("\(try first.target())/\(Self.partial)", to: "\(target)/\(Self.partial)")

            let imported = try await second.ferry("resume-data", "import", file, "-d", target)
            #expect(imported.status == 0 && imported.stdout == "1\n", "\(imported.stderr)")
            #expect(imported.stderr.contains("nothing will run this yet"))
            #expect(try await second.job()["bytes_durable"].int == Self.fetched)
            // The same again is the same job.
            let again = try await second.ferry("resume-data", "import", file, "-d", target)
            #expect(again.status == 0 && again.stdout == "1\n")
            #expect(try await second.json("list")["jobs"].elements.count == 1)

            try await second.success("wait", "1")
            #expect(server.requests.map(\.rangeStart) == [nil, Self.fetched])
            #expect(try Self.object.matches("\(target)/object.bin") == nil)
            #expect(try second.files() == ["object.bin"])
            #expect(try await second.ferry("doctor").status == 0)
        }
    }

    @Test func `cancel writes the document first, keeps the partial, and import moves it`() async throws {
        try await self.withPausedJob { first, second, server in
            let target = try first.target()
            let missing = try await first.ferry("cancel", "1", "--resume-data", "missing/x.json")
            expectRefusal(missing, status: 1, says: ["missing/x.json", "No such file"])
            #expect(try await first.job()["state"].text == "paused")

            let link = first.folder.file("link.json")
            #expect(symlink("/dev/null", link) == 0)
            let device = try await first.ferry("cancel", "1", "--resume-data", "link.json")
            expectRefusal(device, status: 1, says: [link, "is not a file"])
            #expect(try await first.job()["state"].text == "paused")
            #expect(unlink(link) == 0)

            let file = first.folder.file("kept.json")
            try await first.success("cancel", "1", "--resume-data", file)
            #expect(Self.mode(file) == 0o600)
            #expect(try await first.job()["state"].text == "cancelled")
            #expect(try first.files() == [Self.partial])
            let over = try await first.ferry("resume-data", "export", "1")
            expectRefusal(over, status: 1, says: ["job 1 is cancelled"])
            let kept = try await first.ferry("doctor")
            #expect(kept.status == 0 && kept.stdout.contains("was kept when its job was cancelled"))

            // Into another folder of the same file system, in the other queue.
            let moved = try second.target()
            #expect(try await second.success("resume-data", "import", file, "-d", moved) == "1\n")
            #expect(try first.files() == [] && second.files() == [Self.partial])
            try await second.success("wait", "1")
            #expect(server.requests.last?.rangeStart == Self.fetched)
            #expect(try Self.object.matches("\(moved)/object.bin") == nil && target != moved)
        }
    }

    @Test func `a running job is exported without stopping it, and cancelled with all that it has`()
        async throws
    {
        let gate = Gate()
        let server = try Self.server(gate)
        defer { gate.open() }
        try await withDesk { desk in
            let get = try desk.start("get", "-d", try desk.target(), server.url("object.bin"))
            _ = try await desk.job { $0["bytes_done"].int == Self.fetched }
            let exported = try JSON(line: await desk.success("resume-data", "export", "1"))
            #expect(exported["format"].text == "ferry-resume-data" && exported["version"].int == 1)
            #expect(try await desk.job()["state"].text == "running")
            try await desk.success("cancel", "1", "--resume-data", "all.json")
            _ = try await get.waitForExit()
            let all = try JSON(line: desk.folder.text("all.json"))
            #expect(all["offset_bytes"].int == Self.fetched)
            // In the same queue and folder again, from where the document says.
            #expect(try await desk.success("resume-data", "import", "all.json") == "2\n")
            try await desk.success("wait", "2")
            #expect(server.requests.last?.rangeStart == Self.fetched)
            #expect(try Self.object.matches("\(try desk.target())/object.bin") == nil)
        }
    }

    /// What became of the partial, what is said, and where the download goes on.
    struct Change: Sendable {
        let name: String
        let says: String?
        let offset: Int64?
        let change: @Sendable (String) throws -> Void
    }

    private static let changes = [
        Change(name: "missing", says: "starts from 0", offset: nil) { unlink($0) },
        Change(name: "empty", says: "starts from 0", offset: nil) { truncate($0, 0) },
        Change(name: "shorter", says: "holds 1048576 of 1200000 bytes", offset: 1_048_576) {
            truncate($0, 1_100_000)
        },
        Change(name: "edited in the middle", says: "holds 524288 of 1200000 bytes", offset: 524_288) {
            let file = open($0, O_WRONLY)
            pwrite(file, "x", 1, 600_000)
            close(file)
        },
        Change(name: "edited at the start", says: "starts from 0", offset: nil) {
            let file = open($0, O_WRONLY)
            pwrite(file, "x", 1, 5)
            close(file)
        },
        Change(name: "longer", says: nil, offset: fetched) { truncate($0, 2_000_000) },
    ]

    @Test(arguments: changes.indices)
    func `only what is proved counts`(index: Int) async throws {
        let change = Self.changes[index]
        try await self.withPausedJob("object.bin") { first, second, server in
            let target = try second.target()
            let file = second.folder.file("files/x.json")
            try await first.success("resume-data", "export", "1", "-o", file)
            // Beside the document, which lies in the folder that the file goes to.
            try await Self.copy("\(try first.target())/\(Self.partial)", to: "\(target)/\(Self.partial)")
            try change.change("\(target)/\(Self.partial)")
            // Else the first queue's would be found.
            unlink("\(try first.target())/\(Self.partial)")
            let imported = try await second.ferry("resume-data", "import", "files/x.json", "-d", "files")
            #expect(imported.status == 0 && imported.stdout == "1\n", "\(change.name) \(imported.stderr)")
            if let says = change.says {
                #expect(imported.stderr.contains(says), "\(change.name) \(imported.stderr)")
            } else {
                #expect(!imported.stderr.contains("bytes") && !imported.stderr.contains("from 0"))
            }
            try await second.success("wait", "1")
            #expect(server.requests.last?.rangeStart == change.offset, "\(change.name)")
            #expect(try Self.object.matches("\(target)/object.bin") == nil)
        }
    }

    @Test func `what a document calls whole is asked for all the same`() async throws {
        try await self.withPausedJob { first, second, server in
            let target = try second.target()
            let text = try await first.success("resume-data", "export", "1")
            let key = "\"total_bytes\":"
            let edited = text.replacing("\(key)\(Self.object.size)", with: "\(key)\(Self.fetched)")
            #expect(edited != text)
            try second.folder.write("x.json", edited)
            try await Self.copy("\(try first.target())/\(Self.partial)", to: "\(target)/\(Self.partial)")
            try await second.success("resume-data", "import", "x.json", "-d", target)
            try await second.success("wait", "1")
            #expect(server.requests.map(\.rangeStart) == [nil, Self.fetched])
            #expect(try Self.object.matches("\(target)/object.bin") == nil)
        }
    }

    @Test func `a partial that another transfer writes is refused`() async throws {
        let gate = Gate()
        let server = try Self.server(gate)
        defer { gate.open() }
        try await withDesk { first in
            try await withDesk { second in
                let get = try first.start("get", "-d", try first.target(), server.url("object.bin"))
                _ = try await first.job { $0["bytes_durable"].int ?? 0 > 0 }
                let file = second.folder.file("x.json")
                try await first.success("resume-data", "export", "1", "-o", file)
                let refused = try await second.ferry("resume-data", "import", file)
                expectRefusal(refused, status: 1, says: [Self.partial, "is in use by another process"])
                #expect(try await second.json("list")["jobs"].elements.isEmpty)
                // In its own queue it is the same job, in another folder a second one for the same file.
                #expect(try await first.success("resume-data", "import", file) == "1\n")
                try await first.success("pause", "1")
                _ = try await get.waitForExit()
                let other = try await first.ferry("resume-data", "import", file, "-d", ".")
                expectRefusal(other, status: 1, says: ["belongs to job 1 of this queue"])
            }
        }
    }

    @Test func `what is no resume data is refused, and nothing is queued`() async throws {
        try await withDesk { desk in
            try desk.folder.write("empty", "")
            try desk.folder.write("other", "{\"format\": \"other\"}")
            try desk.folder.write("large", String(repeating: " ", count: 1_048_577))
            let cases: [([String], Int32, String)] = [
                (["import", "empty"], 2, "is no valid JSON"),
                (["import", "other"], 2, "is something else"),
                (["import", "large"], 2, "is larger than"),
                (["import", "missing"], 1, "cannot read"),
                (["import"], 2, "needs one file"),
                (["import", "other", "-o", "x"], 2, "resume-data import has no option --output"),
                (["export"], 2, "needs the number of one job"),
                (["export", "x"], 2, "needs the number of one job"),
                (["export", "1", "-d", "x"], 2, "resume-data export has no option --dir"),
                (["export", "7"], 1, "there is no job 7"),
                (["frob"], 2, "needs 'export JOB' or 'import FILE'"),
            ]
            for (arguments, status, says) in cases {
                let result = try await desk.ferry(["resume-data"] + arguments)
                expectRefusal(result, status: status, says: [says], "\(arguments)")
            }
            let several = try await desk.ferry("cancel", "1", "2", "--resume-data", "x")
            expectRefusal(several, status: 2, says: ["--resume-data takes the number of one job"])
            #expect(try await desk.json("list", "--all")["jobs"].elements.isEmpty)
        }
    }

    @Test func `redacting leaves the query out, and import says so`() async throws {
        try await self.withPausedJob { first, second, _ in
            let text = try await first.success("resume-data", "export", "1", "--redact")
            #expect(!text.contains("S3cret") && text.contains("\"is_redacted\":true"))
            try second.folder.write("x.json", text)
            let imported = try await second.ferry("resume-data", "import", "x.json")
            #expect(imported.status == 0 && imported.stderr.contains("the query of the URL was left out"))
        }
    }
}
