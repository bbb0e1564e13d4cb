import FerryCore
import FerryHTTP
import FerryStore
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryEngine

/// Uploads by tus and by the IETF's protocol, against servers that do what the specifications say, or nearly.
@Suite(.timeLimit(.minutes(5))) struct ResumableTests {
    struct Speaker: Sendable, CustomTestStringConvertible {
        let dialect: UploadServer.Dialect
        var transport: UploadProtocol { if case .tus = self.dialect { .tus } else { .ietf } }
        var testDescription: String { "\(self.dialect)" }

        static let tus = Speaker(dialect: .tus(extensions: "creation,termination,expiration"))
        static let all =
            [
                Speaker.tus, Speaker(dialect: .tus(extensions: "creation")),
                Speaker(dialect: .tus(extensions: "creation,creation-with-upload,checksum")),
            ] + [8, 6, 5, 3].map { Speaker(dialect: .ietf($0)) }
        static let some = [Speaker.tus, Speaker(dialect: .ietf(8)), Speaker(dialect: .ietf(6))]
    }

    private static let size = 9_000_000

    @Test(arguments: Speaker.all, [0, 1, 70_000, size]) func `a file goes up`(speaker: Speaker, size: Int)
        async throws
    {
        let server = try UploadServer(speaker.dialect)
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: size)
            let job = try await scope.put(path, to: server.url, speaker.transport)
            #expect(job.state == .completed)
            #expect(job.protocolName == speaker.transport.rawValue)
            #expect(server.uploads == [1: bytes])
            #expect(server.received == Int64(size))
            #expect(job.bytesDurable == Int64(size))
        }
    }

    @Test(arguments: Speaker.all) func `what the server has is not sent again`(speaker: Speaker) async throws
    {
        // Each of the first four bodies breaks off, the first one early.
        let server = try UploadServer(speaker.dialect, cut: { [100, 2_000_000, 1, 3_000_000][safe: $0] })
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: Self.size)
            let job = try await scope.put(path, to: server.url, speaker.transport)
            #expect(job.state == .completed)
            #expect(server.uploads == [1: bytes])
            #expect(server.received == Int64(Self.size))
        }
    }

    @Test(arguments: Speaker.some) func `a server that drops broken pieces gets them again, and no more`(
        speaker: Speaker
    ) async throws {
        var habits = UploadServer.Habits()
        habits.keepsCutPieces = false
        let server = try UploadServer(speaker.dialect, habits: habits, cut: { $0 < 3 ? 500_000 : nil })
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: Self.size)
            #expect(try await scope.put(path, to: server.url, speaker.transport).state == .completed)
            #expect(server.uploads == [1: bytes])
            #expect(server.received == Int64(Self.size + 3 * 500_000))
        }
    }

    @Test(arguments: Speaker.some) func `an offset that is old for a while does no harm`(speaker: Speaker)
        async throws
    {
        var habits = UploadServer.Habits()
        habits.staleHeads = 3
        let server = try UploadServer(speaker.dialect, habits: habits, cut: { $0 == 0 ? 1_000_000 : nil })
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: Self.size)
            #expect(try await scope.put(path, to: server.url, speaker.transport).state == .completed)
            #expect(server.uploads.values.contains(bytes))
        }
    }

    @Test(arguments: Speaker.some) func `a lock that is held is waited for`(speaker: Speaker) async throws {
        let server = try UploadServer(
            speaker.dialect,
            cut: { $0 == 0 ? 1_000_000 : nil },
            override: { request, number in request.method == "HEAD" && number < 4 ? Reply(423) : nil }
        )
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: Self.size)
            let job = try await scope.put(path, to: server.url, speaker.transport)
            #expect(job.state == .completed)
            #expect(job.attempts >= 5)
            #expect(server.uploads == [1: bytes])
        }
    }

    @Test(arguments: Speaker.some, [404, 410]) func `an upload that is forgotten begins anew`(
        speaker: Speaker,
        status: Int
    ) async throws {
        let server = try UploadServer(
            speaker.dialect,
            cut: { $0 == 0 ? 1_000_000 : nil },
            override: { request, number in request.method == "HEAD" && number == 0 ? Reply(status) : nil }
        )
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: Self.size)
            #expect(try await scope.put(path, to: server.url, speaker.transport).state == .completed)
            #expect(server.made == 2)
            #expect(server.uploads[2] == bytes)
        }
    }

    @Test(arguments: Speaker.some) func `a last answer that is lost is asked for`(speaker: Speaker)
        async throws
    {
        let server = try UploadServer(speaker.dialect)
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 5_000_000)
            let id = try await scope.send(path, to: server.url, speaker.transport)
            // The service stops as soon as all bytes are there; whether it has read the answer is chance.
            while server.uploads[1]?.count != 5_000_000 { await Task.yield() }
            try await scope.restart()
            let job = try await scope.job(id).state.isEnded ? scope.job(id) : scope.end(of: id)
            #expect(job.state == .completed)
            #expect(server.uploads == [1: bytes])
            #expect(server.received == 5_000_000)
        }
    }

    @Test(arguments: Speaker.all) func `a restart goes on where the server is`(speaker: Speaker) async throws
    {
        let server = try UploadServer(speaker.dialect, cut: { $0 == 0 ? 5_000_000 : nil })
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: Self.size)
            let id = try await scope.send(path, to: server.url, speaker.transport)
            _ = try await scope.next(id, .waiting)
            try await scope.restart()
            let row = try await scope.store.read { try $0.upload(id) }
            #expect(row?.url == server.url + "/1")
            try await scope.steer(.resume, id)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.uploads == [1: bytes])
            #expect(server.received == Int64(Self.size))
            #expect(server.made == 1)
        }
    }

    @Test(arguments: Speaker.some) func `pieces keep to a proxy's limit`(speaker: Speaker) async throws {
        var habits = UploadServer.Habits()
        habits.maxAppend = 2_500_000
        let server = try UploadServer(speaker.dialect, habits: habits)
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: Self.size)
            #expect(try await scope.put(path, to: server.url, speaker.transport).state == .completed)
            #expect(server.uploads == [1: bytes])
        }
    }

    @Test(arguments: Speaker.some) func `a file above the server's limit is not begun`(speaker: Speaker)
        async throws
    {
        var habits = UploadServer.Habits()
        habits.maxSize = 1_000
        let server = try UploadServer(speaker.dialect, habits: habits)
        try await withEngine { scope in
            let (path, _) = try scope.source(size: Self.size)
            let job = try await scope.put(path, to: server.url, speaker.transport)
            #expect(job.failureReason == .tooLarge)
            #expect(server.received == 0)
        }
    }

    @Test(arguments: Speaker.some) func `the place may be relative, but no plain address of a safe server`(
        speaker: Speaker
    ) async throws {
        var habits = UploadServer.Habits()
        habits.location = { "../files/./\($0.split(separator: "/").last ?? "")" }
        let server = try UploadServer(speaker.dialect, habits: habits)
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 5_000_000)
            #expect(try await scope.put(path, to: server.url, speaker.transport).state == .completed)
            #expect(server.uploads == [1: bytes])
        }
    }

    @Test(arguments: Speaker.some) func `another origin gets the data and no credentials`(speaker: Speaker)
        async throws
    {
        let other = try UploadServer(speaker.dialect)
        var habits = UploadServer.Habits()
        let there = other.url
        habits.location = { _ in there + "/1" }
        let server = try UploadServer(speaker.dialect, habits: habits)
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 5_000_000)
            _ = try await scope.send(
                path,
                to: server.url,
                speaker.transport,
                request: {
                    $0.headers = [RequestHeader(name: "Authorization", value: "Bearer s3cret")]
                    $0.attempts = 1
                }
            )
            let seen = try await other.server.waitForRequests(1)
            #expect(seen.first?.header("Authorization") == nil)
            #expect(server.server.requests.allSatisfy { $0.header("Authorization") == "Bearer s3cret" })
        }
    }

    @Test func `a final answer that is a failure is told, and nothing is sent again`() async throws {
        var habits = UploadServer.Habits()
        habits.answer = .text(422, "not a picture")
        let server = try UploadServer(.ietf(8), habits: habits)
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 5_000_000)
            let job = try await scope.put(path, to: server.url, .ietf)
            #expect(job.failureReason == .server)
            #expect(job.message?.contains("not a picture") == true)
            #expect(server.received == 5_000_000)
        }
    }

    @Test func `the older version of a server is found`() async throws {
        for version in [6, 5, 3] {
            let server = try UploadServer(
                .ietf(version),
                override: { request, _ in
                    request.method == "OPTIONS" ? Reply(405) : nil
                }
            )
            try await withEngine { scope in
                let (path, bytes) = try scope.source(size: 5_000_000)
                #expect(try await scope.put(path, to: server.url, .ietf).state == .completed)
                #expect(server.uploads == [1: bytes])
            }
        }
    }

    // MARK: Which protocol

    @Test(
        arguments: [
            (Speaker.tus, "tus"), (Speaker(dialect: .ietf(8)), "ietf"), (Speaker(dialect: .ietf(6)), "ietf"),
            (nil, "put"),
        ] as [(Speaker?, String)]
    )
    func `auto asks the server`(speaker: Speaker?, expected: String) async throws {
        let server = try UploadServer(
            speaker?.dialect ?? .tus(extensions: ""),
            override: { request, _ in
                guard speaker == nil else { return nil }
                return request.method == "OPTIONS" ? Reply(204, headers: ["Allow: GET, PUT"]) : Reply(201)
            }
        )
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 300_000)
            for name in [path, try scope.source("b.bin", size: 300_000).path] {
                let job = try await scope.put(name, to: server.url, .auto)
                #expect(job.state == .completed)
                #expect(job.protocolName == expected)
            }
            let methods = server.server.requests.map(\.method)
            #expect(methods.first == "OPTIONS")
            if speaker == nil {
                #expect(methods == ["OPTIONS", "PUT", "PUT"], "a plain server is asked once")
                #expect(server.server.requests.last?.body == bytes)
            } else {
                #expect(server.uploads.values.allSatisfy { $0 == bytes })
            }
        }
    }

    @Test func `auto finds a resumable address on a host that was plain before`() async throws {
        let server = try UploadServer(
            .tus(extensions: "creation"),
            override: { request, _ in
                guard request.path == "/plain" else { return request.method == "PUT" ? Reply(405) : nil }
                return request.method == "PUT" ? Reply(201) : Reply(405)
            }
        )
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 300_000)
            let plain = try await scope.put(path, to: server.server.url("plain"), .auto)
            #expect(plain.protocolName == "put")
            let job = try await scope.put(path, to: server.url, .auto)
            #expect(job.state == .completed)
            #expect(job.protocolName == "tus")
            #expect(server.uploads == [1: bytes])
        }
    }

    // MARK: Cancelling

    @Test(arguments: Speaker.some, [true, false]) func `what a cancelled job has on the server goes`(
        speaker: Speaker,
        keeps: Bool
    ) async throws {
        let server = try UploadServer(speaker.dialect, cut: { $0 == 0 ? 5_000_000 : nil })
        try await withEngine { scope in
            let (path, _) = try scope.source(size: Self.size)
            let id = try await scope.send(
                path,
                to: server.url,
                speaker.transport,
                request: {
                    $0.headers = [RequestHeader(name: "Authorization", value: "Bearer s3cret")]
                }
            )
            _ = try await scope.next(id, .waiting)
            #expect(server.uploads.count == 1)
            let steered = try await scope.steer(.cancel(keepPartial: keeps), id)
            #expect(steered.state == .cancelled)
            try await scope.waitForNoCleanups()
            #expect(server.uploads.isEmpty == !keeps)
            let last = try #require(server.server.requests.last)
            #expect((last.method == "DELETE") == !keeps)
            if !keeps { #expect(last.header("Authorization") == "Bearer s3cret") }
            #expect(try await scope.store.read { try $0.upload(id) }?.spool == nil)
        }
    }

    @Test func `a server that cannot be told now is told later`() async throws {
        let isReady = Mutex(false)
        let server = try UploadServer(
            .tus(extensions: "creation,termination"),
            cut: { $0 == 0 ? 5_000_000 : nil },
            override: { request, _ in
                request.method == "DELETE" && !isReady.withLock { $0 } ? Reply(503) : nil
            }
        )
        try await withEngine { scope in
            let (path, _) = try scope.source(size: Self.size)
            let id = try await scope.send(path, to: server.url, .tus)
            _ = try await scope.next(id, .waiting)
            try await scope.steer(.cancel(keepPartial: false), id)
            #expect(server.uploads.count == 1)
            isReady.withLock { $0 = true }
            try await scope.restart()
            try await scope.waitForNoCleanups()
            #expect(server.uploads.isEmpty)
        }
    }
}

extension Array {
    subscript(safe index: Int) -> Element? { self.indices.contains(index) ? self[index] : nil }
}
