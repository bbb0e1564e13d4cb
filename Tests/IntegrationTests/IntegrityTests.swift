import FerryTestSupport
import Glibc
import Testing

/// `--checksum`, `--size-limit`, `--compressed` and `--remote-time` as users type them.
@Suite(.serialized, .timeLimit(.minutes(5))) struct IntegrityTests {
    private static let object = TestObject(size: 300_000, seed: 61)

    /// A digest as the machine's own tool tells it.
    private static func digest(_ tool: String, of object: TestObject, in desk: Desk) async throws -> String {
        let path = desk.folder.file("digest-source")
        try object.write(to: path)
        let result = try await ToolRunner.program(tool, package: "coreutils").run([path])
        return try #require(result.stdout.split(separator: " ").first.map(String.init))
    }

    private static func modified(_ path: String) -> Int? {
        var info = stat()
        return stat(path, &info) == 0 ? info.st_mtim.tv_sec : nil
    }

    private static func withServer(
        _ kind: RealServer.Kind,
        _ body: (Desk, RealServer) async throws -> Void
    ) async throws {
        try await withDesk { desk in
            let certificates = try TestCertificates.make(in: desk.folder.path)
            let server = try await RealServer(kind, in: desk.folder, certificates: certificates)
            defer { server.stop() }
            try await body(desk, server)
        }
    }

    // MARK: Checksums

    /// The tool that tells a digest, the ways to write its name, and its name in JSON.
    @Test(arguments: [
        ("sha256sum", ["sha256", "sha-256", "SHA256"], "sha-256"),
        ("sha512sum", ["sha512", "sha-512"], "sha-512"),
        ("sha384sum", ["sha384"], "sha-384"),
        ("sha224sum", ["sha224"], "sha-224"),
        ("sha1sum", ["sha1", "sha-1", "SHA-1"], "sha-1"),
        ("md5sum", ["md5", "MD5"], "md5"),
    ])
    func `a file with the digest is saved`(tool: String, spellings: [String], name: String) async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withDesk { desk in
            let digest = try await Self.digest(tool, of: Self.object, in: desk)
            let target = try desk.target()
            for (index, word) in spellings.enumerated() {
                for (form, text) in ["\(word):\(digest)", "\(word)=\(digest.uppercased())"].enumerated() {
                    let path = "\(target)/\(index)-\(form)"
                    #expect(
                        try await desk.success("get", "--checksum", text, "-o", path, server.url("file"))
                            == "\(path)\n"
                    )
                    #expect(try Self.object.matches(path) == nil)
                }
            }
            let checksum = try await desk.job()["checksum"]
            #expect(checksum["algorithm"] == .string(name))
            #expect(checksum["expected"] == .string(digest))
            #expect(checksum["actual"] == .string(digest))
            #expect(checksum["source"] == .string("user"))
            #expect(checksum.keys == ["algorithm", "expected", "actual", "source"])
        }
    }

    @Test func `a file with another digest is not saved, and retry fetches it anew`() async throws {
        let isRight = Gate()
        let server = try ScriptedServer { request, _ in
            .object(isRight.isOpen ? Self.object : Self.object.changed(), for: request)
        }
        try await withDesk { desk in
            let wanted = try await Self.digest("sha256sum", of: Self.object, in: desk)
            let found = try await Self.digest("sha256sum", of: Self.object.changed(), in: desk)
            let url = server.url("file.bin")
            let target = try desk.target()
            let result = try await desk.ferry("get", "--checksum", "sha256:\(wanted)", "-d", target, url)
            #expect(result.status == 1)
            #expect(result.stdout.isEmpty)
            let told = result.errorLines.filter { $0.hasPrefix("ferry: ") }
            #expect(told.count == 1, "\(result.stderr)")
            #expect(
                told.first?.hasPrefix("ferry: job 1 (\(url)) failed: checksum: ") == true,
                "\(result.stderr)"
            )
            #expect(told.first?.contains("sha-256") == true)
            #expect(result.stderr.contains("ferry retry"), "\(result.stderr)")
            #expect(server.requests.map(\.rangeStart) == [nil, nil])

            let job = try await desk.job()
            #expect(job["state"] == .string("failed") && job["reason"] == .string("checksum"))
            #expect(job["checksum"]["expected"] == .string(wanted))
            #expect(job["checksum"]["actual"] == .string(found))
            #expect(job["checksum"]["source"] == .string("user"))
            #expect(try desk.files().allSatisfy { $0.contains("ferry-part") })
            #expect(try desk.files().count == 1)

            isRight.open()
            try await desk.success("retry", "1")
            try await desk.success("wait", "1")
            #expect(try Self.object.matches("\(target)/file.bin") == nil)
            #expect(try desk.files() == ["file.bin"])
            #expect(server.requests.map(\.rangeStart) == [nil, nil, nil])
            #expect(try await desk.job()["checksum"]["actual"] == .string(wanted))
        }
    }

    @Test func `the digest that a server names is told with its field`() async throws {
        try await withDesk { desk in
            let path = desk.folder.file("digest-source")
            try Self.object.write(to: path)
            let base64 = try await desk.shell("openssl dgst -binary -md5 \"$1\" | base64", path)
            let field = "Content-MD5: \(base64.stdout.filter { $0 != "\n" })"
            let server = try ScriptedServer { request, _ in
                let reply = Reply.object(Self.object, for: request)
                return request.path == "/named" ? reply.with(header: field) : reply
            }
            for path in ["named", "bare"] {
                try await desk.success("get", "-d", desk.target(), server.url(path))
            }
            let checksum = try await desk.job()["checksum"]
            #expect(checksum["algorithm"] == .string("md5"))
            #expect(checksum["source"] == .string("Content-MD5"))
            #expect(checksum["actual"] == checksum["expected"] && checksum["actual"] != .null)
            #expect(try await desk.job(2)["checksum"] == .null)
        }
    }

    @Test func `a file that is there is fetched again if nobody has compared it`() async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withDesk { desk in
            let wrong = "md5:d41d8cd98f00b204e9800998ecf8427e"
            let arguments = ["-d", try desk.target(), server.url("file.bin")]
            #expect(try await desk.ferry(["get"] + arguments).status == 0)
            let again = try await desk.ferry(["get"] + arguments)
            #expect(again.status == 0 && again.stderr.contains("already complete"))
            let other = try await desk.ferry(["get", "--checksum", wrong] + arguments)
            #expect(other.status == 1 && other.stderr.contains("failed: checksum: "), "\(other.stderr)")
            #expect(other.stdout.isEmpty)
        }
    }

    @Test(arguments: [
        (["--checksum", "sha256:abc"], "--checksum: 'sha256:abc' is no digest"),
        (["--checksum", "crc16:0000"], "--checksum: 'crc16:0000' is no digest"),
        (["--checksum", "d41d8cd98f00b204e9800998ecf8427e"], "--checksum"),
        (["--checksum", "md5:g41d8cd98f00b204e9800998ecf8427e"], "--checksum"),
        (["--checksum", ""], "--checksum"),
        (["--size-limit", "much"], "--size-limit: 'much' is no size"),
        (["--size-limit", "0"], "--size-limit: '0' is no size"),
        (["--size-limit", "-1"], "--size-limit"),
    ])
    func `wrong words are refused`(arguments: [String], says: String) async throws {
        let server = try ScriptedServer { _, _ in Reply(200) }
        try await withDesk { desk in
            let result = try await desk.ferry(["get"] + arguments + [server.url("file")])
            expectRefusal(result, status: 2, says: [says])
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a digest is that of one file`() async throws {
        let server = try ScriptedServer { _, _ in Reply(200) }
        try await withDesk { desk in
            let digest = "md5:d41d8cd98f00b204e9800998ecf8427e"
            let result = try await desk.ferry("get", "--checksum", digest, server.url("a"), server.url("b"))
            expectRefusal(result, status: 2, says: ["--checksum is that of one file, but there are 2 URLs"])
            #expect(server.requests.isEmpty)
        }
    }

    // MARK: Limits

    @Test(arguments: RealServer.Kind.allCases)
    func `a file beyond the limit is not saved`(kind: RealServer.Kind) async throws {
        try await Self.withServer(kind) { desk, server in
            let (small, large) = (TestObject(size: 1 << 20), TestObject(size: (1 << 20) + 1))
            try small.write(to: "\(server.root)/small.bin")
            try large.write(to: "\(server.root)/large.bin")
            let target = try desk.target()
            try await desk.success("get", "--size-limit", "1MiB", "-d", target, server.url("/small.bin"))
            let url = server.url("/large.bin")
            let result = try await desk.ferry("get", "--size-limit", "1MiB", "-d", target, url)
            #expect(result.status == 1)
            #expect(
                result.errorLines.contains {
                    $0.hasPrefix("ferry: job 2 (\(url)) failed: too-large: ") && $0.contains("size limit")
                },
                "\(result.stderr)"
            )
            #expect(try await desk.job(2)["reason"] == .string("too-large"))
            #expect(try desk.files() == ["small.bin"])
            #expect(try small.matches("\(target)/small.bin") == nil)
            #expect(try await desk.ferry("get", "--size-limit", "1M", "-d", target, url).status == 1)
        }
    }

    // MARK: Codings and dates

    @Test(arguments: RealServer.Kind.allCases)
    func `a packed body is saved unpacked`(kind: RealServer.Kind) async throws {
        try await Self.withServer(kind) { desk, server in
            let text = String(repeating: "a line that compresses well\n", count: 50_000)
            try desk.folder.write("www/text.txt", text)
            let target = try desk.target()
            let url = server.url("/gz/text.txt")
            try await desk.success("get", "--compressed", "-d", target, url)
            #expect(try desk.folder.text("files/text.txt") == text)
            let job = try await desk.job()
            #expect(job["content_encoding"] == .string("gzip"))
            #expect(job["bytes_total"] == .number(Double(text.utf8.count)))
            // The decoder would not tell that the packed body ends too early.
            #expect(job["length_proved"] == .bool(false))
            // The limit is that of the file, not of what comes.
            let result = try await desk.ferry(
                "get",
                "--compressed",
                "--size-limit",
                "1M",
                "-o",
                "\(target)/other.txt",
                url
            )
            #expect(result.status == 1 && result.stderr.contains("failed: too-large: "), "\(result.stderr)")
            #expect(try await desk.job(2)["reason"] == .string("too-large"))
        }
    }

    @Test(arguments: RealServer.Kind.allCases)
    func `a file has the server's date if that is wanted`(kind: RealServer.Kind) async throws {
        try await Self.withServer(kind) { desk, server in
            let source = "\(server.root)/file.bin"
            try Self.object.write(to: source)
            let date = timeval(tv_sec: 1_234_567_890, tv_usec: 987_654)
            #expect(utimes(source, [date, date]) == 0)
            let target = try desk.target()
            try await desk.success("get", "--remote-time", "-o", "\(target)/dated", server.url("/file.bin"))
            try await desk.success("get", "-o", "\(target)/fresh", server.url("/file.bin"))
            #expect(Self.modified("\(target)/dated") == 1_234_567_890)
            #expect(Self.modified("\(target)/dated") == Self.modified(source))
            #expect(try #require(Self.modified("\(target)/fresh")) > 1_700_000_000)
        }
    }
}
