import FerryCore
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

/// Limits of size, bodies that are unpacked, and the server's date.
@Suite(.timeLimit(.minutes(5))) struct LimitTests {
    private static let size: Int64 = 1_000_000
    private static let limit: Int64 = 400_000
    private static let object = TestObject(size: size, seed: 22)

    private static func status(_ path: String) throws -> stat {
        var info = stat()
        guard stat(path, &info) == 0 else { throw TestSupportError("there is no \(path)") }
        return info
    }

    /// How many bytes are on disk in a job's partial, set aside or written.
    private static func held(_ scope: EngineScope, _ id: JobID) throws -> Int64 {
        let info = try Self.status(scope.folder.file("data/.file.bin.\(id).ferry-part"))
        // Blocks are allocated whole.
        #expect(Int64(info.st_blocks) * 512 < Self.limit + 65_536)
        return Int64(info.st_size)
    }

    // MARK: Size

    @Test func `a length beyond the limit is refused before a byte is taken`() async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.sizeLimitBytes = Self.size - 1 }
            #expect(job.state == .failed)
            #expect(job.failureReason == .tooLarge)
            #expect(job.message?.contains("larger than the size limit") == true)
            #expect(job.attempts == 1)
            #expect(job.bytesDurable == 0)
            #expect(try scope.names.isEmpty)
        }
    }

    @Test(arguments: [[.chunked], [.noLength]] as [Quirks])
    func `a body without length is stopped at the limit`(quirks: Quirks) async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request, quirks: quirks) }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.sizeLimitBytes = Self.limit }
            #expect(job.failureReason == .tooLarge)
            #expect(job.attempts == 1)
            #expect(try Self.held(scope, job.id) <= Self.limit)
        }
    }

    @Test func `a part that goes beyond the limit is stopped there`() async throws {
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request, quirks: [.chunked])
            return number == 0 ? reply.with(.cut(after: 300_000)) : reply
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.sizeLimitBytes = Self.limit }
            #expect(job.failureReason == .tooLarge)
            #expect(server.ranges == [nil, 300_000])
            #expect(try Self.held(scope, job.id) <= Self.limit)
        }
    }

    @Test(arguments: [[], [.chunked], [.noLength]] as [Quirks])
    func `a file of exactly the limit passes`(quirks: Quirks) async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request, quirks: quirks) }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.sizeLimitBytes = Self.size }
            #expect(job.state == .completed, "\(job.message ?? "")")
            let more = try await scope.fetch(server.url("other.bin")) { $0.sizeLimitBytes = Self.size - 1 }
            #expect(more.failureReason == .tooLarge)
        }
    }

    // MARK: Codings

    /// Starts a server that has a file packed only; what is told of its validator would let it be resumed.
    private static func packed(_ path: String, isCut: Bool = false) async throws -> ScriptedServer {
        let result = try await ToolRunner.program("gzip", package: "gzip").run(["-n", path])
        #expect(result.status == 0, "\(result.stderr)")
        return try ScriptedServer { request, number in
            let reply = Reply(
                200,
                headers: [
                    "Content-Encoding: gzip", "ETag: \"packed\"", "Accept-Ranges: bytes",
                    "Content-Type: application/octet-stream",
                ],
                body: .file(path + ".gz")
            )
            return isCut && number == 0 ? reply.with(.cut(after: reply.body.size / 2)) : reply
        }
    }

    @Test func `a packed body is saved unpacked and never resumed`() async throws {
        try await withEngine { scope in
            try Self.object.write(to: scope.folder.file("object"))
            let server = try await Self.packed(scope.folder.file("object"), isCut: true)
            let job = try await scope.fetch(server.url("file.bin")) { $0.compressed = true }
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.attempts == 2)
            #expect(job.contentEncoding == "gzip")
            #expect(job.bytesTotal == Self.size)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
            #expect(server.ranges == [nil, nil])
            #expect(server.requests.allSatisfy { $0.header("Accept-Encoding")?.contains("gzip") == true })
        }
    }

    @Test(arguments: ["md5sum", "sha256sum"])
    func `the user's digest of a packed file is that of the unpacked one`(tool: String) async throws {
        try await withEngine { scope in
            let path = scope.folder.file("object")
            try Self.object.write(to: path)
            let server = try await Self.packed(path)
            // gzip has put its file in the place of this one.
            try Self.object.write(to: path)
            let algorithm = tool == "md5sum" ? "md5" : "sha256"
            for (isRight, file) in [(true, path), (false, path + ".gz")] {
                let result = try await ToolRunner.program(tool, package: "coreutils").run([file])
                let hex = try #require(result.stdout.split(separator: " ").first)
                let checksum = try #require(Checksum(text: "\(algorithm):\(hex)"))
                let job = try await scope.fetch(server.url(isRight ? "right" : "wrong")) {
                    $0.compressed = true
                    $0.checksum = checksum
                }
                #expect(job.failureReason == (isRight ? nil : .checksum))
                #expect((job.state == .completed) == isRight)
            }
        }
    }

    @Test func `a body that comes packed without being asked for is saved as it is`() async throws {
        try await withEngine { scope in
            try Self.object.write(to: scope.folder.file("object"))
            let server = try await Self.packed(scope.folder.file("object"))
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed)
            #expect(job.contentEncoding == "gzip")
            #expect(server.requests.first?.header("Accept-Encoding") == "identity")
            #expect(try scope.folder.read("data/file.bin") == scope.folder.read("object.gz"))
        }
    }

    @Test func `a plain body is resumed although codings were asked for`() async throws {
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 300_000)) }, { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.compressed = true }
            #expect(job.state == .completed)
            #expect(job.contentEncoding == nil)
            #expect(server.ranges == [nil, 300_000])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `what a small body unpacks to is held to the limit`() async throws {
        try await withEngine { scope in
            let path = scope.folder.file("zeros")
            try scope.folder.write("zeros", "")
            #expect(truncate(path, 32 << 20) == 0)
            let server = try await Self.packed(path)
            #expect(try Self.status(path + ".gz").st_size < 50_000)
            let job = try await scope.fetch(server.url("file.bin")) {
                $0.compressed = true
                $0.sizeLimitBytes = Self.limit
            }
            #expect(job.failureReason == .tooLarge)
            #expect(try Self.held(scope, job.id) <= Self.limit)
        }
    }

    // MARK: Date

    @Test(arguments: [true, false])
    func `the file has the server's date if that is wanted`(isWanted: Bool) async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.remoteTime = isWanted }
            #expect(job.state == .completed)
            let time = try Self.status(scope.folder.file("data/file.bin")).st_mtim
            #expect((Int64(time.tv_sec) == Self.object.modified) == isWanted)
            #expect(!isWanted || time.tv_nsec == 0)
        }
    }

    @Test(arguments: [[.noLastModified], [.noTag, .noLastModified]] as [Quirks])
    func `a server without dates is no failure`(quirks: Quirks) async throws {
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request, quirks: quirks) }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.remoteTime = true }
            #expect(job.state == .completed)
        }
    }

    @Test(arguments: ["Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"])
    func `a date that no file can have is no failure`(date: String) async throws {
        let server = try ScriptedServer { request, _ in
            var reply = Reply.object(Self.object, for: request, quirks: [.noLastModified])
            reply.headers.append("Last-Modified: \(date)")
            return reply
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.remoteTime = true }
            #expect(job.state == .completed)
        }
    }

    @Test func `a resumed file has the server's date`() async throws {
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 300_000)) }, { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            _ = try await scope.fetch(server.url("file.bin")) { $0.remoteTime = true }
            let time = try Self.status(scope.folder.file("data/file.bin")).st_mtim
            #expect(Int64(time.tv_sec) == Self.object.modified)
        }
    }
}
