import FerryCore
import FerryTestSupport
import Glibc
import Testing

/// A desk with a real server and the certificates that it shows.
private func withRealServer(
    _ kind: RealServer.Kind,
    _ body: (Desk, RealServer, TestCertificates) async throws -> Void
) async throws {
    try await withDesk { desk in
        let certificates = try TestCertificates.make(in: desk.folder.path)
        let server = try await RealServer(kind, in: desk.folder, certificates: certificates)
        defer { server.stop() }
        try await body(desk, server, certificates)
    }
}

extension RealServer {
    /// Puts a file in place at once, with the object's date.
    ///
    /// Apache's tag of a file younger than a second is weak, so that nothing could be resumed.
    fileprivate func publish(_ object: TestObject, as name: String) throws {
        let path = "\(self.root)/\(name)"
        try object.write(to: path + ".new")
        let date = timeval(tv_sec: Int(object.modified), tv_usec: 0)
        guard utimes(path + ".new", [date, date]) == 0, rename(path + ".new", path) == 0 else {
            throw TestSupportError("cannot publish \(path): error \(errno)")
        }
    }
}

/// The built tools against nginx and Apache; a missing server fails the test with the package's name.
@Suite(.serialized, .timeLimit(.minutes(2))) struct RealTransferTests {
    @Test(arguments: RealServer.Kind.allCases, ["http", "https"])
    func `a large file arrives whole`(kind: RealServer.Kind, scheme: String) async throws {
        try await withRealServer(kind) { desk, server, certificates in
            let object = TestObject(size: 64 << 20, seed: 11)
            try server.publish(object, as: "big.bin")
            let url = scheme == "http" ? server.url("/big.bin") : server.secureURL("/big.bin")
            let result = try await desk.shell(
                "umask 027; exec \"$ferry\" get --state-dir \"$queue\" --cacert \"$2\" -d a/b \"$1\"",
                url,
                certificates.authorityPath
            )
            #expect(result.status == 0, "\(result.stderr)")
            let path = desk.folder.file("a/b/big.bin")
            #expect(result.stdout == "\(path)\n")
            #expect(try object.matches(path) == nil)
            #expect(try desk.folder.names(in: "a/b") == ["big.bin"])
            var info = stat()
            #expect(stat(path, &info) == 0 && info.st_mode & 0o7777 == 0o640)
            let job = try await desk.job()
            #expect(job["state"] == .string("completed") && job["length_proved"] == .bool(true))
            #expect(job["validator"]["kind"] == .string("etag"))
        }
    }

    @Test(arguments: RealServer.Kind.allCases)
    func `names come from the URL, from -o and from -d`(kind: RealServer.Kind) async throws {
        try await withRealServer(kind) { desk, server, _ in
            let object = TestObject(size: 70_000, seed: 12)
            for name in ["plain.bin", "two words ü.bin"] { try server.publish(object, as: "\(name)") }
            let target = try desk.target()
            for (path, name) in [
                ("/plain.bin", "plain.bin"),
                ("/two%20words%20%C3%BC.bin", "two words ü.bin"),
                ("/plain.bin?version=2&name=other.bin", "plain (2).bin"),
            ] {
                #expect(
                    try await desk.success("get", "-d", target, server.url(path)) == "\(target)/\(name)\n"
                )
                #expect(try object.matches("\(target)/\(name)") == nil)
            }
            #expect(
                try await desk.success("get", "-o", "files/mine.dat", server.url("/plain.bin"))
                    == "\(target)/mine.dat\n"
            )
            #expect(try desk.files() == ["mine.dat", "plain (2).bin", "plain.bin", "two words ü.bin"])
        }
    }

    @Test(arguments: RealServer.Kind.allCases)
    func `a killed service costs nothing that was committed`(kind: RealServer.Kind) async throws {
        try await withRealServer(kind) { desk, server, _ in
            let object = TestObject(size: 2_000_000, seed: 13)
            try server.publish(object, as: "file.bin")
            let get = try desk.start("get", "--json", "-d", try desk.target(), server.url("/slow/file.bin"))
            let line = try await get.waitForLine { line in
                (try? JSON(line: line + "\n"))?["bytes_durable"].int.map { $0 > 0 } ?? false
            }
            let committed = try #require(try JSON(line: line + "\n")["bytes_durable"].int)
            try desk.service.kill()
            let result = try await get.waitForExit()
            #expect(result.status == 0, "\(result.stderr)")
            #expect(result.stderr.contains("the service has gone; going on with the next one"))
            #expect(try object.matches("\(desk.target())/file.bin") == nil)
            #expect(try desk.files() == ["file.bin"])
            let attempts = try await desk.json("log", "1")["attempts"].elements
            #expect(attempts.count == 2)
            #expect(attempts.first?["outcome"] == .string("interrupted"))
            #expect(attempts.last?["hops"].elements.first?["status"] == .number(206))
            #expect(attempts.last?["offset_bytes"].int ?? 0 >= committed)
            #expect(try await desk.job()["attempt"] == .number(2))
        }
    }

    @Test(arguments: RealServer.Kind.allCases)
    func `a file that was replaced meanwhile is never mixed`(kind: RealServer.Kind) async throws {
        try await withRealServer(kind) { desk, server, _ in
            let old = TestObject(size: 1_500_000, seed: 14)
            let new = old.changed()
            try server.publish(old, as: "file.bin")
            let url = server.url("/slow/file.bin")
            let get = try desk.start("get", "--json", "-d", try desk.target(), url)
            _ = try await get.waitForLine { line in
                (try? JSON(line: line + "\n"))?["bytes_done"].int.map { $0 > 0 } ?? false
            }
            get.kill(SIGINT)
            #expect(try await get.waitForExit().ending == .signalled(SIGINT))
            let stopped = try await desk.job { $0["state"] == .string("queued") }
            #expect(stopped["bytes_durable"].int ?? 0 > 0)
            try server.publish(new, as: "file.bin")
            let path = try await desk.success("get", "-d", desk.target(), url)
            #expect(path == "\(try desk.target())/file.bin\n")
            #expect(try new.matches("\(desk.target())/file.bin") == nil)
            #expect(try desk.files() == ["file.bin"])
            let log = try await desk.json("log", "1")
            #expect(log["events"].elements.contains { $0["kind"] == .string("restarted") })
            #expect(log["attempts"].elements.last?["hops"].elements.first?["status"] == .number(200))
        }
    }

    @Test(arguments: RealServer.Kind.allCases)
    func `servers without ranges, with compression and with redirects serve as well`(
        kind: RealServer.Kind
    ) async throws {
        try await withRealServer(kind) { desk, server, certificates in
            let object = TestObject(size: 300_000, seed: 15)
            try server.publish(object, as: "file.bin")
            let text = String(repeating: "a line that compresses well\n", count: 10_000)
            try desk.folder.write("www/text.txt", text)
            let target = try desk.target()
            try await desk.success("get", "-o", "\(target)/norange", server.url("/norange/file.bin"))
            #expect(try object.matches("\(target)/norange") == nil)
            try await desk.success("get", "-o", "\(target)/text", server.url("/gz/text.txt"))
            #expect(try desk.folder.text("files/text") == text)
            #expect(try await desk.job(2)["content_encoding"] == .null)
            #expect(
                try await desk.success("get", "-d", target, server.url("/redir/file.bin"))
                    == "\(target)/file.bin\n"
            )
            #expect(try object.matches("\(target)/file.bin") == nil)
            let hops = try await desk.json("log", "3")["attempts"].elements.first?["hops"].elements ?? []
            #expect(hops.map { $0["status"] } == [.number(302), .number(200)])

            let refused = try await desk.ferry(
                "get",
                "--cacert",
                certificates.authorityPath,
                "-d",
                target,
                server.secureURL("/redir/file.bin")
            )
            #expect(refused.status == 1)
            #expect(
                refused.stderr.contains("policy: localhost redirects from https to http, which is refused")
            )
            #expect(try desk.files() == ["file.bin", "norange", "text"])
        }
    }

    @Test(arguments: RealServer.Kind.allCases)
    func `plain http is led to https, and only a known authority is trusted`(
        kind: RealServer.Kind
    ) async throws {
        try await withRealServer(kind) { desk, server, certificates in
            let object = TestObject(size: 300_000, seed: 16)
            try server.publish(object, as: "file.bin")
            let target = server.secureURL("/file.bin")
            let front = try ScriptedServer { _, _ in .redirect(301, to: target) }
            let trusted = ["get", "--cacert", certificates.authorityPath, "-d", try desk.target()]
            #expect(try await desk.ferry(trusted + [front.url("/")]).status == 0)
            #expect(try object.matches("\(desk.target())/file.bin") == nil)

            let unknown = try await desk.ferry("get", "-o", "files/other", target)
            #expect(unknown.status == 1)
            #expect(unknown.stderr.contains("tls: the certificate of localhost"))
            #expect(unknown.stderr.contains("--cacert"))
            #expect(try desk.files() == ["file.bin"])
        }
    }

    @Test(arguments: RealServer.Kind.allCases)
    func `a busy server is waited for`(kind: RealServer.Kind) async throws {
        try await withRealServer(kind) { desk, server, _ in
            let get = try desk.start("get", "-d", try desk.target(), server.url("/503"))
            let line = try await get.waitForLine(in: .stderr) { $0.contains("waiting (host)") }
            #expect(line.contains("answered 503 (service unavailable)"))
            get.kill(SIGINT)
            _ = try await get.waitForExit()
            let job = try await desk.job { $0["state"] != .string("running") }
            #expect(["waiting", "queued"].contains(job["state"].text))
            #expect(try desk.files().isEmpty)
        }
    }
}
