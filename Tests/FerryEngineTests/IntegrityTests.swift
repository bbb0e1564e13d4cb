import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryEngine

/// A file with a known digest is the file with that digest, or it is not saved.
@Suite(.timeLimit(.minutes(5))) struct IntegrityTests {
    private static let size: Int64 = 1_000_000
    private static let cut: Int64 = 300_000
    private static let object = TestObject(size: size, seed: 21)
    private static let wrong = object.changed()

    private static func digest(
        _ algorithm: DigestAlgorithm = .sha256,
        of object: TestObject,
        _ range: Range<Int64>? = nil
    ) throws -> Checksum {
        let digester = try Digester([algorithm])
        try object.bytes(range ?? 0..<object.size).withUnsafeBytes { try digester.update($0) }
        return try #require(try digester.finish()[algorithm])
    }

    /// What the last change told of the remote object.
    private final class Told: Sendable {
        private let remote = Mutex<RemoteObject?>(nil)

        init(_ scope: EngineScope) {
            scope.onChange.withLock { hook in
                hook = { change in self.remote.withLock { $0 = change.remote } }
            }
        }

        var verified: RemoteObject.VerifiedChecksum? { self.remote.withLock { $0?.verified } }
    }

    // MARK: The user's word

    @Test(arguments: DigestAlgorithm.allCases)
    func `a file with the user's digest is saved`(algorithm: DigestAlgorithm) async throws {
        let wanted = try Self.digest(algorithm, of: Self.object)
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            let told = Told(scope)
            let job = try await scope.fetch(server.url("file.bin")) { $0.checksum = wanted }
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.mismatches == 0)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(server.requests.count == 1)
            #expect(told.verified == RemoteObject.VerifiedChecksum(expected: .user(wanted), actual: wanted))
        }
    }

    @Test func `a wrong file is fetched twice, kept as evidence, and fetched anew on request`() async throws {
        let wanted = try Self.digest(of: Self.object)
        let isRight = Mutex(false)
        let server = try ScriptedServer { request, _ in
            .object(isRight.withLock { $0 } ? Self.object : Self.wrong, for: request)
        }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.checksum = wanted }
            let job = try await scope.end(of: id)
            #expect(job.state == .failed)
            #expect(job.failureReason == .checksum)
            #expect(job.advice?.contains("ferry retry") == true)
            #expect(job.bytesDurable == 0)
            #expect(job.attempts == 1)
            #expect(server.ranges == [nil, nil])
            #expect(try scope.names == [".file.bin.\(id).ferry-part-2"])
            #expect(
                try Self.wrong.matches(scope.folder.file("data/.file.bin.\(id).ferry-part-2")) == nil
            )
            let record = try #require(try await scope.store.read { try $0.file(id) })
            let verified = try #require(RemoteObject(json: record.remote).verified)
            #expect(try verified.actual == Self.digest(of: Self.wrong))

            // Still wrong: twice again. Then right.
            try await scope.steer(.retry, id)
            #expect(try await scope.end(of: id).failureReason == .checksum)
            #expect(server.ranges == [nil, nil, nil, nil])
            isRight.withLock { $0 = true }
            try await scope.restart()
            try await scope.steer(.retry, id)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, nil, nil, nil, nil])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test func `a file that is there is complete only with a digest that was compared`() async throws {
        let (right, other) = (try Self.digest(of: Self.object), try Self.digest(of: Self.wrong))
        let md5 = try Self.digest(.md5, of: Self.object)
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            let url = server.url("file.bin")
            func outcome(_ checksum: Checksum?) async throws -> Engine.Added {
                let request = scope.request(url) { $0.checksum = checksum }
                let added = try await scope.engine.add([request], goOn: false)
                return try #require(added.first)
            }
            _ = try await scope.fetch(url) { $0.checksum = right }
            #expect(try await outcome(right).outcome == .alreadyComplete)
            #expect(try await outcome(nil).outcome == .alreadyComplete)
            // Another algorithm was not compared: nobody knows.
            for checksum in [other, md5] {
                let added = try await outcome(checksum)
                #expect(added.outcome == .new)
                try await scope.engine.runAdded()
                let job = try await scope.end(of: #require(added.job?.id))
                #expect(job.failureReason == (checksum == other ? .checksum : nil))
                if job.state == .failed { try await scope.steer(.cancel(keepPartial: false), job.id) }
            }
        }
    }

    @Test func `an empty file is not the one that was wanted`() async throws {
        let wanted = try Self.digest(of: Self.object)
        let server = try ScriptedServer { request, _ in .object(TestObject(size: 0), for: request) }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.checksum = wanted }
            #expect(job.failureReason == .checksum)
            #expect(server.ranges == [nil, nil])
            try await scope.steer(.retry, job.id)
            #expect(try await scope.end(of: job.id).failureReason == .checksum)
            #expect(server.ranges == [nil, nil, nil, nil])
        }
    }

    @Test func `the user's digest stands above the server's`() async throws {
        let wanted = try Self.digest(of: Self.object)
        let line = "Repr-Digest: sha-256=:\(Base64.encode(try Self.digest(of: Self.wrong).bytes)):"
        let server = try ScriptedServer { request, _ in
            .object(Self.object, for: request).with(header: line)
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.checksum = wanted }
            #expect(job.state == .completed)
            #expect(server.requests.count == 1)
        }
    }

    @Test(arguments: [[], [.noLength], [.chunked], [.noTag, .noLastModified]] as [Quirks])
    func `a resumed file is compared as a whole`(quirks: Quirks) async throws {
        let wanted = try Self.digest(.sha512, of: Self.object)
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request, quirks: quirks)
            // Where only the close ends a body, a cut would be an end.
            guard number == 0 else { return reply }
            return quirks.contains(.noLength)
                ? reply.with(.reset(after: Self.cut)) : reply.with(.cut(after: Self.cut))
        }
        try await withEngine { scope in
            let told = Told(scope)
            let job = try await scope.fetch(server.url("file.bin")) { $0.checksum = wanted }
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.attempts == 2)
            #expect(server.ranges.count == 2 && server.ranges.last != .some(nil))
            #expect(told.verified?.actual == wanted)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `a job whose file is read says that it verifies`() async throws {
        let wanted = try Self.digest(of: Self.object)
        let gate = Gate()
        // What is read before the second request proves what is there.
        let isAsked = Mutex(false)
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: Self.cut)) },
            { request in
                isAsked.withLock { $0 = true }
                return .object(Self.object, for: request)
            },
        ])
        var calls = FileCalls.real
        calls.pread = { descriptor, buffer, count, offset in
            if isAsked.withLock({ $0 }) { gate.waitBlocking(timeout: .seconds(20)) }
            return FileCalls.real.pread(descriptor, buffer, count, offset)
        }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.checksum = wanted }
            try await scope.passWait(of: scope.next(id, .waiting))
            while try await scope.engine.progress().first?.phase != .verifying { await Task.yield() }
            #expect(try await scope.engine.progress().first?.done == Self.size)
            gate.open()
            #expect(try await scope.end(of: id).state == .completed)
        }
    }

    @Test func `a digest proves the length of a body that only the close ends`() async throws {
        let wanted = try Self.digest(of: Self.object)
        let server = try ScriptedServer { request, _ in
            .object(Self.object, for: request, quirks: [.noLength])
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) { $0.checksum = wanted }
            #expect(job.state == .completed)
            #expect(job.lengthProved == true)
        }
    }

    @Test(arguments: [false, true])
    func `what was whole when the service ended is compared without a request`(
        isDamaged: Bool
    ) async throws {
        let wanted = try Self.digest(of: Self.object)
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        // The body is durable and nothing after it is: as if the service had ended there.
        let isBroken = Mutex(true)
        var calls = FileCalls.real
        calls.fsync = { descriptor in
            var info = stat()
            guard isBroken.withLock({ $0 }), fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG
            else { return FileCalls.real.fsync(descriptor) }
            errno = EIO
            return -1
        }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.checksum = wanted }
            let job = try await scope.end(of: id)
            #expect(job.failureReason == .localIO)
            #expect(job.bytesDurable == Self.size)
            if isDamaged {
                let descriptor = open(scope.folder.file("data/.file.bin.\(id).ferry-part"), O_WRONLY)
                #expect(pwrite(descriptor, "damaged", 7, 1_000) == 7)
                close(descriptor)
            }
            isBroken.withLock { $0 = false }
            try await scope.restart()
            let told = Told(scope)
            try await scope.steer(.retry, id)
            let again = try await scope.end(of: id)
            #expect(again.state == .completed, "\(again.message ?? "")")
            #expect(again.lengthProved == true)
            #expect(told.verified?.actual == wanted)
            #expect(server.ranges == (isDamaged ? [nil, nil] : [nil]))
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    // MARK: The server's word

    /// A field that tells a digest of the whole.
    struct Field: Sendable, CustomTestStringConvertible {
        let name: String
        let algorithm: DigestAlgorithm
        let text: @Sendable (String) -> String
        var testDescription: String { "\(self.name) \(self.algorithm)" }

        /// The line of a head or of trailers.
        func line(for object: TestObject) throws -> String {
            let digest = try IntegrityTests.digest(self.algorithm, of: object)
            return "\(self.name): \(self.text(Base64.encode(digest.bytes)))"
        }
    }

    private static let fields = [
        Field(name: "Repr-Digest", algorithm: .sha256) { "sha-256=:\($0):" },
        Field(name: "Repr-Digest", algorithm: .sha512) { "sha-512=:\($0):" },
        Field(name: "Content-Digest", algorithm: .sha256) { "sha-256=:\($0):" },
        Field(name: "Content-MD5", algorithm: .md5) { $0 },
        Field(name: "Digest", algorithm: .sha256) { "SHA-256=\($0)" },
        Field(name: "x-goog-hash", algorithm: .md5) { "crc32c=AAAAAA==,md5=\($0)" },
        Field(name: "x-goog-hash", algorithm: .crc32c) { "crc32c=\($0)" },
        Field(name: "x-amz-checksum-crc64nvme", algorithm: .crc64nvme) { $0 },
        Field(name: "x-amz-checksum-sha256", algorithm: .sha256) { $0 },
    ]

    @Test(arguments: fields)
    func `a digest that the server names is compared`(field: Field) async throws {
        let line = try field.line(for: Self.object)
        let server = try ScriptedServer { request, _ in
            .object(Self.object, for: request, quirks: [.noLength]).with(header: line)
        }
        try await withEngine { scope in
            let told = Told(scope)
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.lengthProved == true)
            #expect(told.verified?.expected.source.rawValue == field.name)
            #expect(try told.verified?.actual == Self.digest(field.algorithm, of: Self.object))
            #expect(server.requests.count == 1)
        }
    }

    @Test(arguments: fields)
    func `a file that is not what the server names is fetched twice and not saved`(
        field: Field
    ) async throws {
        let line = try field.line(for: Self.object)
        let server = try ScriptedServer { request, _ in
            .object(Self.wrong, for: request).with(header: line)
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.failureReason == .checksum)
            #expect(server.ranges == [nil, nil])
            #expect(try scope.names == [".file.bin.\(job.id).ferry-part-2"])
        }
    }

    @Test(arguments: fields)
    func `a body that was damaged once is fetched once more`(field: Field) async throws {
        let line = try field.line(for: Self.object)
        // The same tag and the same digest, other bytes.
        let server = try ScriptedServer { request, number in
            var reply = Reply.object(Self.object, for: request).with(header: line)
            if number == 0 { reply.body = .slice(Self.wrong, 0..<Self.size) }
            return reply
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.attempts == 1)
            #expect(job.restarts == 0)
            #expect(job.mismatches == 1)
            #expect(server.ranges == [nil, nil])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test(arguments: [[true], [false, true], [false, false]])
    func `a digest in a trailer is compared`(areRight: [Bool]) async throws {
        let field = "Repr-Digest: sha-256=:\(Base64.encode(try Self.digest(of: Self.object).bytes)):"
        let server = try ScriptedServer { _, number in
            let object = areRight[min(number, areRight.count - 1)] ? Self.object : Self.wrong
            return Reply(
                200,
                headers: ["Trailer: Repr-Digest", "ETag: \(object.etag)"],
                body: .sequence([
                    .bytes(Array("\(String(Self.size, radix: 16))\r\n".utf8)),
                    .slice(object, 0..<Self.size),
                    .bytes(Array("\r\n0\r\n\(field)\r\n\r\n".utf8)),
                ]),
                declaredLength: .raw(["Transfer-Encoding: chunked"])
            )
        }
        try await withEngine { scope in
            let told = Told(scope)
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(server.requests.count == areRight.count)
            if areRight.last == true {
                #expect(job.state == .completed, "\(job.message ?? "")")
                #expect(told.verified?.expected.source.rawValue == "Repr-Digest")
                #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            } else {
                #expect(job.failureReason == .checksum)
            }
        }
    }

    /// Chunks of a part, or of all, and a trailer with the digest of the right object; the connection may end before
    /// the trailer.
    private static func chunks(of object: TestObject, from start: Int64, isCut: Bool = false) throws -> Reply
    {
        let range = start..<Self.size
        let field = "Repr-Digest: sha-256=:\(Base64.encode(try Self.digest(of: Self.object).bytes)):"
        let part = "Content-Range: bytes \(start)-\(Self.size - 1)/\(Self.size)"
        return Reply(
            start == 0 ? 200 : 206,
            headers: ["Trailer: Repr-Digest", "ETag: \(Self.object.etag)"] + (start == 0 ? [] : [part]),
            body: .sequence([
                .bytes(Array("\(String(range.upperBound - range.lowerBound, radix: 16))\r\n".utf8)),
                .slice(object, range),
                .bytes(Array((isCut ? "\r\n" : "\r\n0\r\n\(field)\r\n\r\n").utf8)),
            ]),
            declaredLength: .raw(["Transfer-Encoding: chunked"])
        )
    }

    @Test(arguments: [true, false], [true, false])
    func `a digest in a trailer is not lost where the answer ends before it`(isRight: Bool, isPart: Bool)
        async throws
    {
        let object = isRight ? Self.object : Self.wrong
        let begin = Reply(200, headers: ["ETag: \(Self.object.etag)"], body: .slice(object, 0..<Self.size))
        let overlap = Self.size - ResumePlan.overlapBytes
        let replies =
            isPart
            ? [begin.with(.cut(after: Self.cut)), try Self.chunks(of: object, from: Self.cut, isCut: true)]
            : [
                try Self.chunks(of: object, from: 0, isCut: true),
                Reply(416, headers: ["Content-Range: bytes */\(Self.size)"]),
            ]
        let last = [try Self.chunks(of: object, from: overlap), try Self.chunks(of: Self.object, from: 0)]
        let server = try script((replies + last).map { reply in { _ in reply } })
        try await withEngine { scope in
            let told = Told(scope)
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(server.ranges == [nil, isPart ? Self.cut : Self.size, overlap] + (isRight ? [] : [nil]))
            #expect(job.mismatches == (isRight ? 0 : 1))
            #expect(told.verified?.expected.source.rawValue == "Repr-Digest")
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `a digest of a part says nothing of the file`() async throws {
        let part = Base64.encode(try Self.digest(of: Self.object, Self.cut..<Self.size).bytes)
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: Self.cut)) },
            {
                .object(Self.object, for: $0)
                    .with(header: "Digest: SHA-256=\(part)")
                    .with(header: "Content-Digest: sha-256=:\(part):")
            },
        ])
        try await withEngine { scope in
            let told = Told(scope)
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(server.ranges == [nil, Self.cut])
            #expect(told.verified == nil)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test(arguments: [true, false])
    func `a digest of the whole counts on a part`(isRight: Bool) async throws {
        let named = isRight ? Self.object : Self.wrong
        let field = "Repr-Digest: sha-256=:\(Base64.encode(try Self.digest(of: named).bytes)):"
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: Self.cut)) },
            { .object(Self.object, for: $0).with(header: field) },
            { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let told = Told(scope)
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(server.ranges == (isRight ? [nil, Self.cut] : [nil, Self.cut, nil]))
            #expect((told.verified != nil) == isRight)
            #expect(job.mismatches == (isRight ? 0 : 1))
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test func `a digest that only an earlier part named still counts`() async throws {
        let field = "Repr-Digest: sha-256=:\(Base64.encode(try Self.digest(of: Self.wrong).bytes)):"
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: Self.cut)) },
            { .object(Self.object, for: $0).with(header: field).with(.cut(after: 100_000)) },
            { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.passWait(of: scope.next(id, .waiting))
            let waiting = try await scope.next(id, .waiting)
            try await scope.restart()
            try await scope.passWait(of: waiting)
            let job = try await scope.end(of: id)
            #expect(job.mismatches == 1)
            #expect(server.ranges == [nil, Self.cut, Self.cut + 100_000, nil])
        }
    }
}
