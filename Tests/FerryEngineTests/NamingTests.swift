import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

/// What files are called, and where they may lie.
@Suite(.timeLimit(.minutes(5))) struct NamingTests {
    private static let object = TestObject(size: 10_000, seed: 4)

    @Test func `two jobs for one name at once get two names`() async throws {
        let gate = Gate()
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request).with(.hold(gate)) }
        try await withEngine { scope in
            let ids = [
                try await scope.add(server.url("a/file.tar.gz")),
                try await scope.add(server.url("b/file.tar.gz")),
            ]
            _ = try await server.waitForRequests(2)
            gate.open()
            var paths: Set<String?> = []
            for id in ids { paths.insert(try await scope.end(of: id).path) }
            #expect(
                paths == [scope.folder.file("data/file.tar.gz"), scope.folder.file("data/file (2).tar.gz")]
            )
            for name in try scope.names {
                #expect(try Self.object.matches(scope.folder.file("data/\(name)")) == nil)
            }
        }
    }

    @Test(arguments: ["theirs", ""])
    func `another queue's partial of the same name is left alone`(content: String) async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            try scope.folder.makeFolder("data")
            for theirs in ["data/.file.bin.1.ferry-part", "data/.file.bin.1.ferry-part-2"] {
                try scope.folder.write(theirs, content)
            }
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed)
            #expect(try scope.names == [".file.bin.1.ferry-part", ".file.bin.1.ferry-part-2", "file.bin"])
            #expect(try scope.folder.text("data/.file.bin.1.ferry-part") == content)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `a name that is taken in the last moment is left alone`() async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { folder in
            var calls = FileCalls.real
            calls.renameNoReplace = { descriptor, from, to in
                if to == "file.bin" { _ = try? folder.write("data/file.bin", "theirs") }
                return FileCalls.real.renameNoReplace(descriptor, from, to)
            }
            return calls
        } _: { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed)
            #expect(job.path == scope.folder.file("data/file (2).bin"))
            #expect(try scope.names == ["file (2).bin", "file.bin"])
            #expect(try scope.folder.text("data/file.bin") == "theirs")
            #expect(try Self.object.matches(scope.folder.file("data/file (2).bin")) == nil)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `an output that is taken in the last moment fails the job`() async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { folder in
            var calls = FileCalls.real
            calls.renameNoReplace = { descriptor, from, to in
                _ = try? folder.write("data/out", "theirs")
                return FileCalls.real.renameNoReplace(descriptor, from, to)
            }
            return calls
        } _: { scope in
            let job = try await scope.fetch(server.url("file.bin")) {
                $0.output = scope.folder.file("data/out")
            }
            #expect(job.failureReason == .exists)
            #expect(try scope.folder.text("data/out") == "theirs")
        }
    }

    @Test(
        arguments: [
            ("/file.bin", nil, "file.bin"),
            ("/", nil, "index"),
            ("/folder/", nil, "index"),
            ("/a%20b.bin?q=x/y", nil, "a b.bin"),
            ("/%2e%2e%2f%2e%2e%2fetc%2fpasswd", nil, "passwd"),
            ("/%2e%2e", nil, "index"),
            ("/.bashrc", nil, "_.bashrc"),
            ("/-rf", nil, "_-rf"),
            ("/a%00b%0a%1b%5b31m", nil, "ab[31m"),
            ("/%e2%80%aegpj.exe", nil, "gpj.exe"),
            ("/file.bin", "attachment; filename=\"report.pdf\"", "report.pdf"),
            ("/file.bin", "attachment; filename=\"old.pdf\"; filename*=UTF-8''n%c3%bc.pdf", "nü.pdf"),
            ("/file.bin", "attachment; filename=\"../../../etc/passwd\"", "passwd"),
            ("/file.bin", "attachment; filename=\"/etc/passwd\"", "passwd"),
            ("/file.bin", "attachment; filename=\"..\\..\\evil.exe\"", "evil.exe"),
            ("/file.bin", "attachment; filename=\"..\"", "file.bin"),
            ("/file.bin", "attachment; filename=\"\"", "file.bin"),
            ("/file.bin", "attachment", "file.bin"),
        ] as [(String, String?, String)]
    )
    func `a name from outside stays inside`(_ path: String, _ disposition: String?, _ name: String)
        async throws
    {
        let server = try ScriptedServer { request, _ in
            let reply = Reply.object(Self.object, for: request)
            return disposition.map { reply.with(header: "Content-Disposition: \($0)") } ?? reply
        }
        try await withEngine { scope in
            let outside = try scope.folder.names()
            let job = try await scope.fetch(server.url(path))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(try scope.names == [name])
            #expect(job.path == scope.folder.file("data/\(name)"))
            #expect(try scope.folder.names() == outside)
        }
    }

    @Test func `a file that is left alone is told by its own name`() async throws {
        let server = try ScriptedServer { request, _ in
            .object(Self.object, for: request)
                .with(header: "Content-Disposition: attachment; filename=name.bin")
        }
        try await withEngine { scope in
            _ = try scope.folder.makeFolder("data")
            try scope.folder.write("data/name.bin", "mine")
            let job = try await scope.fetch(server.url("file.bin")) { $0.ifExists = .skip }
            #expect(job.state == .completed)
            #expect(job.path == scope.folder.file("data/name.bin"))
            #expect(try scope.folder.text("data/name.bin") == "mine")
            #expect(try scope.names == ["name.bin"])
        }
    }

    @Test func `a folder that is moved meanwhile is told by its own name`() async throws {
        let gate = Gate()
        let server = try ScriptedServer { request, _ in
            .object(Self.object, for: request).with(.stall(after: 5_000, until: gate))
        }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.waitForBytes(5_000, of: id)
            try #require(rename(scope.folder.file("data"), scope.folder.file("moved")) == 0)
            gate.open()
            let path = try #require(try await scope.end(of: id).path)
            #expect(path.hasSuffix("/moved/file.bin"))
            #expect(try Self.object.matches(path) == nil)
        }
    }

    @Test func `a very long name is cut and keeps its extension`() async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url(String(repeating: "n", count: 400) + ".tar.gz"))
            #expect(job.state == .completed)
            let name = try #require(try scope.names.first)
            #expect(name.utf8.count == 255)
            #expect(name.hasSuffix("n.tar.gz"))
        }
    }

    @Test func `the name is that of the final URL`() async throws {
        let server = try ScriptedServer { request, _ in
            request.path == "/latest" ? .redirect(to: "/v2/file-2.bin") : .object(Self.object, for: request)
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("latest"))
            #expect(job.path == scope.folder.file("data/file-2.bin"))
        }
    }

    @Test func `a link in the way is not followed`() async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            try scope.folder.write("precious", "precious")
            let link = scope.folder.file("data/file.bin")
            try #require(symlink(scope.folder.file("precious"), link) == 0)
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.path == scope.folder.file("data/file (2).bin"))
            #expect(try scope.folder.text("precious") == "precious")
        }
    }

    @Test(arguments: [UInt32(0o022), 0o077, 0o002])
    func `the caller's umask decides the mode`(umask: UInt32) async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.umask = umask }
            var info = stat()
            try #require(stat(try #require(job.path), &info) == 0)
            #expect(info.st_mode & 0o7777 == 0o666 & ~umask)
        }
    }
}
