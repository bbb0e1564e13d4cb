import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryEngine

/// Uploads in one request.
@Suite(.timeLimit(.minutes(5))) struct UploadTests {
    @Test(arguments: [0, 1, 300_000, 3_000_000]) func `a file arrives whole by PUT`(size: Int) async throws {
        let server = try ScriptedServer { _, _ in .text(201, "made") }
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: size)
            let job = try await scope.put(path, to: server.url("a.bin"))
            #expect(job.state == .completed)
            #expect(job.bytesTotal == Int64(size))
            #expect(job.bytesDurable == Int64(size))
            #expect(job.protocolName == "put")
            #expect(job.path == path)
            #expect(job.resultURL == server.url("a.bin"))
            let seen = try #require(server.requests.first)
            #expect(server.requests.count == 1)
            #expect(seen.method == "PUT")
            #expect(seen.body == bytes)
            #expect(seen.header("Content-Type") != nil)
            let answer = try #require(try await scope.answer(of: job.id))
            #expect(answer.status == 201)
            #expect(answer.body == "made")
        }
    }

    @Test func `method, type and fields are the user's, and Location tells the result`() async throws {
        let server = try ScriptedServer { _, _ in Reply(201, headers: ["Location: /things/7?key=s3cret"]) }
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 10)
            let job = try await scope.put(path, to: server.url("things"), .post) { order in
                order.method = "PATCH"
                order.contentType = "text/x-mine"
                order.idempotencyKey = "k1"
            } request: {
                $0.headers = [RequestHeader(name: "X-Mine", value: "1")]
            }
            let seen = try #require(server.requests.first)
            #expect(seen.method == "PATCH")
            #expect(seen.header("Content-Type") == "text/x-mine")
            #expect(seen.header("Idempotency-Key") == "\"k1\"")
            #expect(seen.header("X-Mine") == "1")
            #expect(job.state == .completed)
            #expect(job.resultURL?.hasPrefix(server.url("things/7")) == true)
            #expect(job.resultURL?.contains("s3cret") == false)
        }
    }

    @Test(arguments: [UploadProtocol.put, .post]) func `a broken line costs the whole body, not the upload`(
        transport: UploadProtocol
    ) async throws {
        let server = try ScriptedServer(
            bodies: { _, number in BodyTreatment(cutAfter: number < 2 ? Int64(100_000 * number + 1) : nil) },
            handler: { _, _ in .text(200, "") }
        )
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 400_000)
            let job = try await scope.put(path, to: server.url("up"), transport)
            #expect(job.state == .completed)
            #expect(job.attempts == 3)
            #expect(server.requests.count == 3)
            #expect(server.requests.last?.body == bytes)
        }
    }

    // MARK: Repeating

    @Test func `a POST that nobody answered is not repeated by itself`() async throws {
        let server = try ScriptedServer { _, _ in Reply(200).with(.closeBeforeHead) }
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 400_000)
            let job = try await scope.put(path, to: server.url("up"), .post)
            #expect(job.state == .failed)
            #expect(job.failureReason == .gaveUp)
            #expect(job.message?.contains("may have it") == true)
            #expect(server.requests.count == 1)
            #expect(server.requests.first?.body == bytes)
            // A person may want it all the same.
            try await scope.steer(.retry, job.id)
            #expect(try await scope.end(of: job.id).failureReason == .gaveUp)
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: [UploadProtocol.put, .post]) func `what may be repeated is repeated`(
        transport: UploadProtocol
    ) async throws {
        let server = try script([{ _ in Reply(200).with(.closeBeforeHead) }, { _ in .text(200, "") }])
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 4_000)
            let job = try await scope.put(path, to: server.url("up"), transport) {
                $0.idempotencyKey = transport == .post ? "key" : nil
            }
            #expect(job.state == .completed)
            #expect(server.requests.map(\.body) == [bytes, bytes])
            #expect(Set(server.requests.map { $0.header("Idempotency-Key") }).count == 1)
        }
    }

    @Test func `a POST whose service stopped before the answer is not repeated`() async throws {
        let gate = Gate()
        let server = try ScriptedServer { _, _ in Reply(200).with(.hold(gate)) }
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 400_000)
            let id = try await scope.send(path, to: server.url("up"), .post)
            _ = try await server.waitForRequests(1)
            try await scope.restart()
            let job = try await scope.end(of: id)
            #expect(job.failureReason == .gaveUp)
            #expect(server.requests.count == 1)
        }
    }

    // MARK: Answers

    @Test(
        arguments: [
            (403, FailureReason.forbidden), (413, .tooLarge), (401, .unauthorized), (409, .server),
            (501, .unsupported),
            (404, .notFound),
        ]
    )
    func `a refusal is read although the body is not`(status: Int, reason: FailureReason) async throws {
        let server = try ScriptedServer(
            bodies: { _, _ in BodyTreatment(refusal: .text(status, "no room\u{1b}[31m\r\nfor you")) },
            handler: { _, _ in .text(200, "") }
        )
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 3_000_000)
            let job = try await scope.put(path, to: server.url("up"))
            #expect(job.state == .failed)
            #expect(job.failureReason == reason)
            #expect(job.message?.contains("no room") == true)
            #expect(job.message?.contains("\u{1b}") == false)
            #expect(server.requests.count == 1)
            #expect(try await scope.answer(of: job.id)?.status == status)
        }
    }

    @Test func `a success before the body is none`() async throws {
        let server = try ScriptedServer(
            bodies: { _, number in
                BodyTreatment(refusal: number == 0 ? Reply(200, keepsConnection: false) : nil)
            },
            handler: { _, _ in .text(201, "") }
        )
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 12_000_000)
            let job = try await scope.put(path, to: server.url("up"))
            #expect(job.state == .completed)
            #expect(server.requests.count == 2)
            #expect(server.requests.last?.body == bytes)
        }
    }

    @Test func `417 is repeated without asking, and remembered`() async throws {
        let server = try ScriptedServer(
            bodies: { request, _ in
                BodyTreatment(refusal: request.header("Expect") == nil ? nil : .text(417, "what?"))
            },
            handler: { _, _ in .text(201, "") }
        )
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 2_000_000)
            #expect(try await scope.put(path, to: server.url("a")).state == .completed)
            #expect(server.requests.map { $0.header("Expect") } == ["100-continue", nil])
            #expect(server.requests.last?.body == bytes)
            #expect(try await scope.put(path, to: server.url("b")).state == .completed)
            #expect(server.requests(for: "/b").map { $0.header("Expect") } == [nil])
        }
    }

    @Test func `a server that gives no leave is not asked again`() async throws {
        let server = try ScriptedServer(bodies: { _, _ in BodyTreatment(givesLeave: false) }) { _, _ in
            .text(201, "")
        }
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 2_000_000)
            for name in ["a", "b"] {
                #expect(try await scope.put(path, to: server.url(name)).state == .completed)
            }
            #expect(server.requests.map { $0.header("Expect") } == ["100-continue", nil])
        }
    }

    @Test func `the answer is written to a file`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, String(repeating: "x", count: 100_000)) }
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 10)
            let response = scope.folder.file("answer.txt")
            try scope.overwrite(response, [1, 2, 3])
            let job = try await scope.put(path, to: server.url("up")) { $0.responsePath = response }
            #expect(job.state == .completed)
            #expect(try scope.folder.read("answer.txt").count == 100_000)
            let kept = try #require(try await scope.answer(of: job.id))
            #expect(kept.body.utf8.count == 65_536)
            #expect(kept.isCut)
        }
    }

    // MARK: Redirects

    @Test(arguments: [307, 308, 301, 302]) func `a redirect gets the whole body again`(status: Int)
        async throws
    {
        let server = try ScriptedServer { request, _ in
            request.path == "/a" ? .redirect(status, to: "/b") : .text(201, "")
        }
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 300_000)
            let job = try await scope.put(path, to: server.url("a"))
            #expect(job.state == .completed)
            #expect(server.requests.map(\.method) == ["PUT", "PUT"])
            #expect(server.requests(for: "/b").map(\.body) == [bytes])
        }
    }

    @Test func `a form's 303 is looked at, and its end counts`() async throws {
        let server = try ScriptedServer { request, _ in
            request.path == "/a" ? .redirect(303, to: "/done") : .text(200, "thanks")
        }
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 3_000)
            let job = try await scope.put(path, to: server.url("a"), .post)
            #expect(job.state == .completed)
            #expect(server.requests.map(\.method) == ["POST", "GET"])
            #expect(job.resultURL == server.url("done"))
        }
    }

    @Test func `no body goes to another origin`() async throws {
        let other = try ScriptedServer { _, _ in .text(201, "") }
        let server = try ScriptedServer { _, _ in .redirect(307, to: other.url("b")) }
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 3_000)
            let job = try await scope.put(path, to: server.url("a"))
            #expect(job.failureReason == .policy)
            #expect(other.requests.isEmpty)
        }
    }

    // MARK: The source

    @Test func `a service that may use some folders reads nothing elsewhere, and clears its own`()
        async throws
    {
        let server = try ScriptedServer { _, _ in .text(201, "") }
        try await withTemporaryFolder { allowed in
            var configuration = EngineConfiguration()
            configuration.allowedFolders = AllowedFolders([allowed.path])
            try await withEngine(configuration: configuration) { scope in
                let (outside, bytes) = try scope.source("b.bin", size: 3_000)
                let inside = allowed.file("a.bin")
                try scope.overwrite(inside, bytes)
                let url = server.url("a")
                for body in [
                    UploadOrder.Body.file(path: outside), .spool(path: inside), .spool(path: outside),
                    .form([FormPart(name: "f", content: .file(path: outside))]),
                ] {
                    await #expect(throws: FerryError.self, "\(body)") {
                        try await scope.send(inside, to: url) { $0.body = body }
                    }
                }
                #expect(server.requests.isEmpty)

                let parts = [FormPart(name: "f", content: .file(path: inside))]
                let job = try await scope.put(inside, to: url, .multipart) { $0.body = .form(parts) }
                #expect(job.state == .completed)
                #expect(server.requests.count == 1)
                try await scope.waitForNoCleanups()
                #expect(try scope.folder.names(in: "state/spool") == [])
            }
        }
    }

    /// What happens to a source.
    enum Change: CaseIterable {
        case grown, shrunk, replaced, touched, removed
    }

    @Test(arguments: Change.allCases) func `a source that changed before its turn is not sent`(change: Change)
        async throws
    {
        let server = try ScriptedServer { _, _ in .text(201, "") }
        try await withEngine(mode: .attached) { scope in
            let (path, bytes) = try scope.source(size: 3_000)
            let id = try await scope.send(path, to: server.url("a"))
            switch change {
            case .grown: try scope.overwrite(path, bytes + [1])
            case .shrunk: try scope.overwrite(path, Array(bytes.dropLast()))
            case .replaced:
                let (other, _) = try scope.source("other", size: 3_000)
                #expect(rename(other, path) == 0)
            case .touched:
                #expect(utimes(path, [timeval(tv_sec: 1, tv_usec: 0), timeval(tv_sec: 1, tv_usec: 0)]) == 0)
            case .removed: #expect(unlink(path) == 0)
            }
            try await scope.engine.attach(Engine.ClientKey(rawValue: 1), jobs: [id])
            let job = try await scope.end(of: id)
            #expect(job.failureReason == .sourceChanged)
            #expect(job.message?.contains(path) == true)
            #expect(server.requests.isEmpty)
        }
    }

    @Test(arguments: [false, true]) func `a source that changes while it is sent never arrives whole`(
        shrinks: Bool
    )
        async throws
    {
        let changed = Mutex<(@Sendable () -> Void)?>(nil)
        // The body is taken in steps: a change is made when its head has come, long before its last byte.
        let server = try ScriptedServer(
            bodies: { _, _ in
                changed.withLock { $0 }?()
                return BodyTreatment()
            },
            handler: { _, _ in .text(201, "") }
        )
        try await withEngine { scope in
            let (path, bytes) = try scope.source(size: 12_000_000)
            changed.withLock { change in
                change = {
                    if shrinks {
                        #expect(truncate(path, 6_000_000) == 0)
                    } else {
                        try? scope.overwrite(path, bytes)
                    }
                }
            }
            let job = try await scope.put(path, to: server.url("a"))
            #expect(job.failureReason == .sourceChanged)
            #expect(!server.requests.contains { $0.bodyLength == 12_000_000 })
        }
    }

    @Test func `what is no file is refused at once`() async throws {
        try await withEngine { scope in
            let fifo = scope.folder.file("pipe")
            #expect(mkfifo(fifo, 0o600) == 0)
            for path in [scope.folder.file("missing"), fifo, scope.folder.path] {
                await #expect(throws: FerryError.self) {
                    try await scope.send(path, to: "http://localhost:1/")
                }
            }
            let counts = try await scope.engine.counts()
            #expect(counts.values.allSatisfy { $0 == 0 })
        }
    }

    @Test func `the same upload twice is one job, until it is over`() async throws {
        let gate = Gate()
        let server = try ScriptedServer { _, _ in Reply(201).with(.hold(gate)) }
        try await withEngine { scope in
            let (path, _) = try scope.source(size: 3_000)
            let (other, _) = try scope.source("b.bin", size: 3_000)
            let first = try await scope.send(path, to: server.url("a"))
            #expect(try await scope.send(path, to: server.url("a")) == first)
            #expect(try await scope.send(other, to: server.url("a")) != first)
            #expect(try await scope.send(path, to: server.url("b")) != first)
            gate.open()
            #expect(try await scope.end(of: first).state == .completed)
            #expect(try await scope.send(path, to: server.url("a")) != first)
        }
    }
}
