import FerryTestSupport
import Glibc
import Testing

/// `ferry resume-data` and `ferry cancel --resume-data` for uploads: they go on elsewhere.
@Suite(.serialized, .timeLimit(.minutes(5))) struct UploadResumeDataTests {
    private static let object = TestObject(size: 9_000_000, seed: 41)
    /// The first piece, which the server takes; it puts off the second one.
    private static let acknowledged: Int64 = 8 << 20

    private static func server(_ dialect: UploadServer.Dialect) throws -> UploadServer {
        try UploadServer(
            dialect,
            override: { request, number in
                request.method == "PATCH" && number == 1
                    ? Reply(503, headers: ["Retry-After: 3600", "Connection: close"]) : nil
            }
        )
    }

    /// Two queues, the first of which has an upload that waits on its way.
    private func withWaitingJob(
        _ dialect: UploadServer.Dialect = .tus(extensions: "creation,termination"),
        _ body: (Desk, Desk, UploadServer) async throws -> Void
    ) async throws {
        let server = try Self.server(dialect)
        try await withDesk { first in
            try await withDesk { second in
                try Self.object.write(to: first.folder.file("a.bin"))
                let name = if case .tus = dialect { "tus" } else { "ietf" }
                try await first.success(
                    "add",
                    "--protocol",
                    name,
                    "-H",
                    "X-Key: k",
                    "--upload",
                    "a.bin",
                    server.url
                )
                let run = try first.start("run")
                _ = try await first.job { $0["state"].text == "waiting" }
                #expect(try await first.job()["bytes_durable"].int == Self.acknowledged)
                try await body(first, second, server)
                run.kill()
            }
        }
    }

    private static func mode(_ path: String) -> mode_t {
        var info = stat()
        return stat(path, &info) == 0 ? info.st_mode & 0o777 : 0
    }

    private static func edit(_ path: String, at offset: Int) {
        let file = open(path, O_WRONLY)
        pwrite(file, "x", 1, offset)
        close(file)
    }

    @Test(arguments: [UploadServer.Dialect.tus(extensions: "creation,termination"), .ietf(8), .ietf(5)])
    func `an upload is cancelled here and goes on in another queue`(dialect: UploadServer.Dialect)
        async throws
    {
        try await self.withWaitingJob(dialect) { first, second, server in
            let missing = try await first.ferry("cancel", "1", "--resume-data", "missing/x.json")
            expectRefusal(missing, status: 1, says: ["missing/x.json", "No such file"])
            let file = second.folder.file("move.json")
            try await first.success("cancel", "1", "--resume-data", file)
            #expect(Self.mode(file) == 0o600)
            let text = try second.folder.text("move.json")
            #expect(text.contains("/files/1") && !text.contains("X-Key"))
            #expect(try await first.job()["state"].text == "cancelled")
            let before = server.server.requests.count

            let imported = try await second.ferry("resume-data", "import", file)
            #expect(imported.status == 0 && imported.stdout == "1\n", "\(imported.stderr)")
            #expect(try await second.job()["protocol"].text == (text.contains("\"tus\"") ? "tus" : "ietf"))
            // The same again is the same job.
            #expect(try await second.success("resume-data", "import", file) == "1\n")
            try await second.success("wait", "1")
            let requests = server.server.requests.dropFirst(before)
            #expect(requests.map(\.method).prefix(2) == ["HEAD", "PATCH"])
            #expect(requests.dropFirst().first?.header("Upload-Offset") == "\(Self.acknowledged)")
            #expect(server.uploads[1] == Self.object.bytes(0..<Self.object.size) && server.made == 1)
            #expect(!server.server.requests.contains { $0.method == "DELETE" })
        }
    }

    /// What became of the file, what is said if it is refused, and where it is found.
    struct Change: Sendable {
        let name: String
        var says: String?
        var directory: String?
        let change: @Sendable (_ here: String, _ there: String) -> Void
    }

    private static let changes = [
        Change(name: "left where it was") { _, _ in },
        Change(name: "touched") { here, _ in utimes(here, nil) },
        Change(name: "edited", says: "does not hold what the file of the upload held") { here, _ in
            Self.edit(here, at: 8_900_000)
        },
        Change(name: "shorter", says: "has 5 bytes, and the file of the upload had 9000000") { here, _ in
            truncate(here, 5)
        },
        Change(name: "gone", says: "say with -d in which folder it is") { here, _ in unlink(here) },
        Change(name: "moved beside the document") { here, there in rename(here, there) },
        Change(name: "moved to a folder that is named", directory: ".") { here, there in rename(here, there)
        },
        Change(name: "edited after it was moved", says: "does not hold", directory: ".") { here, there in
            rename(here, there)
            Self.edit(there, at: 0)
        },
        Change(name: "not in the folder that is named", says: "is not at", directory: "/") { _, _ in },
    ]

    @Test(arguments: changes.indices) func `only the same file goes on`(index: Int) async throws {
        let change = Self.changes[index]
        try await self.withWaitingJob { first, second, server in
            let file = second.folder.file("x.json")
            try await first.success("resume-data", "export", "1", "-o", file)
            change.change(first.folder.file("a.bin"), second.folder.file("a.bin"))
            let arguments = change.directory.map { ["-d", $0] } ?? []
            let imported = try await second.ferry(["resume-data", "import", file] + arguments)
            if let says = change.says {
                expectRefusal(imported, status: 1, says: [says], "\(change.name)")
                #expect(try await second.json("list")["jobs"].elements.isEmpty)
            } else {
                #expect(imported.status == 0, "\(change.name): \(imported.stderr)")
                try await second.success("wait", "1")
                #expect(server.uploads[1] == Self.object.bytes(0..<Self.object.size), "\(change.name)")
            }
        }
    }

    @Test func `one upload on a server is one job's, and redacted it starts from 0`() async throws {
        try await self.withWaitingJob { first, second, server in
            let file = second.folder.file("x.json")
            try await first.success("resume-data", "export", "1", "-o", file)
            #expect(try await first.success("resume-data", "import", file) == "1\n")
            rename(first.folder.file("a.bin"), second.folder.file("a.bin"))
            let other = try await first.ferry("resume-data", "import", file)
            expectRefusal(other, status: 1, says: ["belongs to job 1 of this queue"])

            rename(second.folder.file("a.bin"), first.folder.file("a.bin"))
            let text = try await first.success("resume-data", "export", "1", "--redact")
            #expect(!text.contains("files/1"))
            try second.folder.write("y.json", text)
            let imported = try await second.ferry("resume-data", "import", "y.json")
            #expect(
                imported.status == 0 && imported.stderr.contains("it starts from 0"),
                "\(imported.stderr)"
            )
            try await second.success("wait", "1")
            #expect(server.uploads[2] == Self.object.bytes(0..<Self.object.size))
        }
    }

    @Test func `what goes with its job has no resume data, and a plain upload starts from 0`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "stored") }
        try await withDesk { desk in
            try desk.folder.write("a", "content")
            try await desk.success("add", "--form-file", "f=a", server.url("form"))
            let form = try await desk.ferry("cancel", "1", "--resume-data", "x.json")
            expectRefusal(form, status: 1, says: ["sends a form, whose body goes with the job"])
            #expect(try await desk.job()["state"].text == "queued")
            try await desk.success("add", "--protocol", "put", "--upload", "a", server.url("plain"))
            try await desk.success("cancel", "2", "--resume-data", "x.json")
            let imported = try await desk.ferry("resume-data", "import", "x.json")
            #expect(imported.status == 0 && imported.stdout == "3\n", "\(imported.stderr)")
            #expect(imported.stderr.contains("no upload on the server can be gone on with; it starts from 0"))
            try await desk.success("wait", "3")
            #expect(server.requests(for: "/plain").map(\.body) == [Array("content".utf8)])
        }
    }
}
