import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryEngine

/// What other programs do to a partial behind Ferry's back never comes into a file; one after the other, for there
/// are many.
@Suite(.serialized, .timeLimit(.minutes(5))) struct TamperTests {
    private static let size: Int64 = 1_000_000
    /// In the third region: the first two are whole.
    private static let cut: Int64 = 600_000
    private static let object = TestObject(size: size, seed: 41)

    /// What is done, and whether the bytes are still those that were written.
    struct Tampering: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var isHarmless = false
        let act: @Sendable (_ path: String) throws -> Void

        static let all: [Tampering] =
            [0, 262_143, 262_144, 300_000, 524_288, cut - 1].map { offset in
                Tampering(testDescription: "another byte at \(offset)") { try flip($0, at: offset) }
            } + [
                Tampering(testDescription: "another byte, and the old date") { path in
                    var info = stat()
                    try #require(stat(path, &info) == 0)
                    try flip(path, at: 100_000)
                    try #require(utimensat(AT_FDCWD, path, [info.st_atim, info.st_mtim], 0) == 0)
                },
                Tampering(testDescription: "cut short") { try #require(truncate($0, 599_999) == 0) },
                Tampering(testDescription: "cut short and long again") { path in
                    try #require(truncate(path, 500_000) == 0 && truncate(path, 600_000) == 0)
                },
                Tampering(testDescription: "emptied and long again") { path in
                    try #require(truncate(path, 0) == 0 && truncate(path, 600_000) == 0)
                },
                Tampering(testDescription: "another file in its place") { path in
                    try #require(unlink(path) == 0)
                    try object.changed().write(to: path, length: 600_000)
                },
                Tampering(testDescription: "a folder in its place") { path in
                    try #require(unlink(path) == 0 && mkdir(path, 0o755) == 0)
                },
                Tampering(testDescription: "a link in its place") { path in
                    try #require(rename(path, path + ".moved") == 0)
                    try #require(symlink(path + ".moved", path) == 0)
                },
                Tampering(testDescription: "removed") { try #require(unlink($0) == 0) },
                Tampering(testDescription: "another mode", isHarmless: true) {
                    try #require(chmod($0, 0o600) == 0)
                },
                Tampering(testDescription: "another date", isHarmless: true) {
                    try #require(utimes($0, [timeval(), timeval()]) == 0)
                },
                Tampering(testDescription: "the same bytes once more", isHarmless: true) { path in
                    try flip(path, at: 5)
                    try flip(path, at: 5)
                },
                Tampering(testDescription: "something after the end", isHarmless: true) { path in
                    try #require(truncate(path, 2_000_000) == 0)
                },
                Tampering(testDescription: "nothing", isHarmless: true) { _ in },
            ]

        fileprivate static func flip(_ path: String, at offset: Int64) throws {
            let file = open(path, O_RDWR)
            defer { close(file) }
            var byte: UInt8 = 0
            try #require(pread(file, &byte, 1, off_t(offset)) == 1)
            byte ^= 1
            try #require(pwrite(file, &byte, 1, off_t(offset)) == 1)
        }
    }

    /// What lies between two attempts.
    enum Between: Sendable, CaseIterable {
        /// The job waits for its next try.
        case waiting
        /// The service ended, and another one began.
        case restart
        /// The service was killed: nothing says how it left the partial.
        case crash
    }

    @Test(arguments: Tampering.all, Between.allCases)
    func `a partial that stands still is gone on with only if it is what was written`(
        tampering: Tampering,
        between: Between
    ) async throws {
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: Self.cut)) },
            { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            let waiting = try await scope.next(id, .waiting)
            #expect(waiting.bytesDurable == Self.cut)
            let partial = scope.folder.file(
                "data/\(FileName.partial(name: "file.bin", job: id, generation: 1))"
            )
            if between == .crash {
                try await scope.store.write { transaction in
                    var record = try #require(try transaction.file(id))
                    record.settledNs = nil
                    try transaction.save(record)
                }
            }
            try tampering.act(partial)
            if between != .waiting { try await scope.restart() }
            try await scope.passWait(of: waiting)
            let job = try await scope.end(of: id)
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.restarts == 0)
            #expect(server.ranges == [nil, tampering.isHarmless ? Self.cut : nil])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(
                try await scope.events(of: id, "restarted").map(\.reason)
                    == (tampering.isHarmless ? [] : ["partial-changed"])
            )
        }
    }

    @Test func `what was read back once need not be read again`() async throws {
        let reads = Atomic<Int64>(0)
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request)
            return switch number {
            case 0: reply.with(.cut(after: Self.cut))
            case 1...3: Reply(503)
            default: reply
            }
        }
        var calls = FileCalls.real
        calls.pread = {
            reads.add(Int64($2), ordering: .relaxed)
            return FileCalls.real.pread($0, $1, $2, $3)
        }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("file.bin"))
            let waiting = try await scope.next(id, .waiting)
            try await scope.store.write { transaction in
                var record = try #require(try transaction.file(id))
                record.settledNs = nil
                try transaction.save(record)
            }
            #expect(reads.load(ordering: .relaxed) == 0)
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, Self.cut, Self.cut, Self.cut, Self.cut])
            // All of it after the crash, then the last region: three times to look, and once to go on with it.
            #expect(reads.load(ordering: .relaxed) == Self.cut + 4 * (Self.cut - 524_288))
        }
    }

    @Test func `a partial whose bytes have no hash is fetched anew`() async throws {
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: Self.cut)) },
            { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            let waiting = try await scope.next(id, .waiting)
            try await scope.store.write { transaction in
                var record = try #require(try transaction.file(id))
                record.remote = RemoteObject(json: record.remote).json
                try transaction.save(record)
            }
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, nil])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    // MARK: While it is written

    /// What is done to the partial while a transfer writes into it.
    struct Meanwhile: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Names that stay because they are not ours.
        var left: [String] = []
        /// Whether the bytes are still those that were written.
        var isHarmless = false
        let act: @Sendable (_ path: String) throws -> Void

        static let all = [
            Meanwhile(testDescription: "cut short") { try #require(truncate($0, 100) == 0) },
            Meanwhile(testDescription: "emptied") { try #require(truncate($0, 0) == 0) },
            Meanwhile(testDescription: "cut by a byte") { path in
                var info = stat()
                let file = open(path, O_RDWR)
                defer { close(file) }
                try #require(fstat(file, &info) == 0 && ftruncate(file, info.st_size - 1) == 0)
            },
            Meanwhile(testDescription: "another byte") { try Tampering.flip($0, at: 1_000) },
            Meanwhile(testDescription: "the same bytes once more", isHarmless: true) { path in
                try Tampering.flip(path, at: 1_000)
                try Tampering.flip(path, at: 1_000)
            },
            Meanwhile(testDescription: "moved away", left: ["moved"]) { path in
                try #require(rename(path, path.parent + "/moved") == 0)
            },
            Meanwhile(testDescription: "another file in its place", left: [".file.bin.1.ferry-part"]) {
                path in
                try #require(unlink(path) == 0)
                try object.changed().write(to: path)
            },
        ]
    }

    @Test(arguments: Meanwhile.all, [cut, size])
    func `a partial that is changed while it is written is not published`(
        meanwhile: Meanwhile,
        stop: Int64
    ) async throws {
        let gate = Gate()
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request)
            return number == 0 ? reply.with(.stall(after: min(stop, Self.size - 1), until: gate)) : reply
        }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.waitForBytes(min(stop, Self.size - 1), of: id)
            try meanwhile.act(
                scope.folder.file("data/\(FileName.partial(name: "file.bin", job: id, generation: 1))")
            )
            gate.open()
            let job = try await scope.end(of: id)
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.restarts == (meanwhile.isHarmless ? 0 : 1))
            #expect(server.ranges == (meanwhile.isHarmless ? [nil] : [nil, nil]))
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names.sorted() == (meanwhile.left + ["file.bin"]).sorted())
        }
    }

    @Test(arguments: [false, true])
    func `a partial that was changed before a pause is not gone on with after it`(
        isHarmless: Bool
    ) async throws {
        let server = try script([
            { .object(Self.object, for: $0).with(.stall(after: Self.cut)) },
            { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.waitForBytes(Self.cut, of: id)
            let path = scope.folder.file(
                "data/\(FileName.partial(name: "file.bin", job: id, generation: 1))"
            )
            try Tampering.flip(path, at: 1_000)
            if isHarmless { try Tampering.flip(path, at: 1_000) }
            try await scope.steer(.pause, id)
            #expect(try await scope.job(id).state == .paused)
            try await scope.steer(.resume, id)
            let job = try await scope.end(of: id)
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(server.ranges == [nil, isHarmless ? Self.cut : nil])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }
}

extension String {
    /// The folder of a path.
    fileprivate var parent: String { String(self[..<(self.lastIndex(of: "/") ?? self.startIndex)]) }
}
