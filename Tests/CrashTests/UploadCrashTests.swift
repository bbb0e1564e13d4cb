import FerryCore
import FerryTestSupport
import Glibc
import Testing

/// Uploads whose service dies in a gap between two effects.
@Suite(.timeLimit(.minutes(5))) struct UploadCrashTests {
    private static let size = 18_000_000

    /// Writes a file to send and gives its bytes.
    private func source(_ scope: CrashScope, size: Int) throws -> (path: String, bytes: [UInt8]) {
        let object = TestObject(size: Int64(size), seed: 9)
        let path = scope.folder.file("source.bin")
        try object.write(to: path)
        return (path, object.bytes(0..<Int64(size)))
    }

    private func add(_ scope: CrashScope, _ path: String, _ url: String, _ options: String...) async throws {
        let result = try await scope.ferry(["add"] + options + ["--upload", path, url])
        try #require(result.stdout == "1\n", "\(result.stderr)")
    }

    @Test(
        arguments: [
            CrashPoint.uploadURLCommitted, .uploadOffsetKnown, .uploadOffsetCommitted, .uploadAnswered,
        ],
        ["tus", "ietf"]
    )
    func `an upload goes on where the server is`(point: CrashPoint, transport: String) async throws {
        let server = try UploadServer(transport == "tus" ? .tus(extensions: "creation") : .ietf(8))
        try await withCrashScope { scope in
            let (path, bytes) = try self.source(scope, size: Self.size)
            // The first offset that is known is that of the upload just made; the second follows a piece.
            let turn = point == .uploadOffsetKnown ? ":3" : ""
            let daemon = try await scope.readyDaemon(dyingAt: point.rawValue + turn)
            try await self.add(scope, path, server.url, "--protocol", transport)
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL), "\(point) was not reached")
            #expect(try await scope.show(1).state == "queued")
            #expect(try await scope.ferry("wait", "1").status == 0)
            #expect(server.uploads == [1: bytes])
            #expect(server.received == Int64(Self.size), "what the server has is not sent again")
            #expect(try await scope.show(1).bytesDurable == Int64(Self.size))
        }
    }

    @Test func `a POST that may be on the server is not repeated after a crash`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "") }
        try await withCrashScope { scope in
            let (path, _) = try self.source(scope, size: 500_000)
            let daemon = try await scope.readyDaemon(dyingAt: CrashPoint.uploadSent.rawValue)
            try await self.add(scope, path, server.url("up"), "--protocol", "post")
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            #expect(try await scope.ferry("wait", "1").status == 1)
            let job = try await scope.show(1)
            #expect(job.state == "failed")
            #expect(job.reason == "gave-up")
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a PUT is sent whole again`() async throws {
        let server = try ScriptedServer { _, _ in .text(201, "") }
        try await withCrashScope { scope in
            let (path, bytes) = try self.source(scope, size: 500_000)
            let daemon = try await scope.readyDaemon(dyingAt: CrashPoint.uploadAnswered.rawValue)
            try await self.add(scope, path, server.url("up"), "--protocol", "put")
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            #expect(try await scope.ferry("wait", "1").status == 0)
            #expect(server.requests.map(\.body) == [bytes, bytes])
        }
    }

    @Test func `a form is built once more, and nothing of it is left`() async throws {
        let server = try ScriptedServer { _, _ in .text(201, "") }
        try await withCrashScope { scope in
            let (path, bytes) = try self.source(scope, size: 500_000)
            let daemon = try await scope.readyDaemon(dyingAt: CrashPoint.uploadSpooled.rawValue)
            let result = try await scope.ferry(
                "add",
                "--protocol",
                "multipart",
                "--form-file",
                "f=\(path)",
                server.url("up")
            )
            try #require(result.stdout == "1\n", "\(result.stderr)")
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            #expect(try scope.folder.names(in: "queue/spool").count == 1)
            #expect(try await scope.ferry("wait", "1").status == 0)
            #expect(server.requests.count == 1)
            #expect(server.requests.first?.body.firstRange(of: bytes.prefix(4_096)) != nil)
            while try !scope.folder.names(in: "queue/spool").isEmpty { _ = try await scope.list() }
        }
    }

    @Test func `a cancelled upload is taken off the server after a crash`() async throws {
        let server = try UploadServer(
            .tus(extensions: "creation,termination"),
            override: { request, number in
                request.method == "PATCH" && number == 1 ? Reply(204).with(.hold(Gate())) : nil
            }
        )
        try await withCrashScope { scope in
            let (path, _) = try self.source(scope, size: Self.size)
            let daemon = try await scope.readyDaemon(dyingAt: CrashPoint.uploadAbandoned.rawValue)
            try await self.add(scope, path, server.url, "--protocol", "tus")
            while server.server.requests.count(where: { $0.method == "PATCH" }) < 2 { await Task.yield() }
            #expect(try await scope.ferry("cancel", "1").status == 0)
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            #expect(try await scope.show(1).state == "cancelled")
            while !server.uploads.isEmpty { _ = try await scope.list() }
        }
    }
}
