import FerryCore
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTP

/// Bodies of requests.
@Suite(.timeLimit(.minutes(5))) struct SendingTests {
    private func request(
        _ server: ScriptedServer,
        _ source: any RequestSource,
        _ method: String = "PUT",
        expects: Bool = false
    ) -> HTTPRequest {
        var request = HTTPRequest(url: server.url("up"), method: method)
        request.body = source
        request.expectsContinue = expects
        return request
    }

    @Test(arguments: ["PUT", "POST", "PATCH"], [0, 1, 65_535, 65_536, 65_537, 3_000_000])
    func `a body arrives whole, with its length`(method: String, size: Int) async throws {
        let server = try ScriptedServer { _, _ in .text(201, "thanks") }
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        let request = self.request(server, BytesSource(bytes), method)
        let answer = try await withLoop { try await $0.fetch(request) }
        let seen = try #require(server.requests.first)
        #expect(seen.method == method)
        #expect(seen.body == bytes)
        #expect(seen.header("Content-Length") == "\(size)")
        #expect(seen.header("Transfer-Encoding") == nil)
        #expect(seen.header("Expect") == nil)
        #expect(answer.head.status == 201)
        #expect(answer.body == Array("thanks".utf8))
        #expect(answer.end.code == 0)
        #expect(answer.end.sentBytes == Int64(size))
        #expect(answer.end.takenBytes == Int64(size))
    }

    @Test(arguments: [true, false])
    func `leave is asked for, and a server that gives none is known at the end`(givesLeave: Bool) async throws
    {
        let server = try ScriptedServer(bodies: { _, _ in BodyTreatment(givesLeave: givesLeave) }) { _, _ in
            .text(200, "")
        }
        let request = self.request(
            server,
            BytesSource([UInt8](repeating: 7, count: 2_000_000)),
            expects: true
        )
        let answer = try await withLoop { try await $0.fetch(request) }
        #expect(server.requests.first?.header("Expect") == "100-continue")
        #expect(server.requests.first?.bodyLength == 2_000_000)
        #expect(answer.end.ignoredExpect == !givesLeave)
    }

    @Test func `417 is the answer, and nothing is sent again by itself`() async throws {
        let server = try ScriptedServer(
            bodies: { _, _ in BodyTreatment(refusal: .text(417, "no")) },
            handler: { _, _ in .text(200, "") }
        )
        let request = self.request(
            server,
            BytesSource([UInt8](repeating: 7, count: 2_000_000)),
            expects: true
        )
        let head = try await withLoop { loop in
            let exchange = loop.open(request)
            let head = try await exchange.head()
            exchange.receive(into: RecordingSink())
            _ = await exchange.end()
            return head
        }
        #expect(head.status == 417)
        #expect(server.requests.count == 1)
    }

    @Test(arguments: [401, 403, 413], [true, false])
    func `an early refusal is read while the body is sent`(status: Int, expects: Bool) async throws {
        let server = try ScriptedServer(
            bodies: { _, _ in BodyTreatment(refusal: .text(status, "not that")) },
            handler: { _, _ in .text(200, "") }
        )
        let source = EndlessSource(length: 1 << 40)
        let request = self.request(server, source, expects: expects)
        let answer = try await withLoop { try await $0.fetch(request) }
        #expect(answer.head.status == status)
        #expect(answer.body == Array("not that".utf8))
        #expect(answer.end.sentBytes < 1 << 30)
        if expects { #expect(answer.end.takenBytes == 0) }
    }

    @Test func `a source that ends early ends the exchange`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "") }
        let request = self.request(server, EndlessSource(length: 5_000_000, end: 3_000_000))
        let end = try await withLoop { await $0.end(of: request) }
        #expect(end.code == 42)
        #expect(server.requests.isEmpty, "a short body is no request")
    }

    @Test func `a source that pauses goes on after resuming`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "") }
        let (pauses, pause) = AsyncStream.makeStream(of: Void.self)
        let source = EndlessSource(length: 1_000_000, pauseAt: 999_999) { pause.yield() }
        let request = self.request(server, source)
        let end = try await withLoop { loop in
            let exchange = loop.open(request)
            var turns = pauses.makeAsyncIterator()
            _ = await turns.next()
            #expect(server.requests.isEmpty)
            source.goOn()
            exchange.resume()
            _ = try await exchange.head()
            exchange.receive(into: RecordingSink())
            return await exchange.end()
        }
        #expect(end.code == 0)
        #expect(server.requests.first?.bodyLength == 1_000_000)
    }

    @Test(arguments: [false, true])
    func `a dead connection that was reused costs a new one, unless a fresh one is wanted`(fresh: Bool)
        async throws
    {
        let server = try ScriptedServer(
            bodies: { request, number in
                BodyTreatment(cutAfter: request.method == "PUT" && number == 0 ? 100_000 : nil)
            },
            handler: { _, _ in .text(200, "") }
        )
        let bytes = (0..<500_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        var put = self.request(server, BytesSource(bytes))
        put.freshConnection = fresh
        let (first, end) = try await withLoop { [put] loop in
            let first = try await loop.fetch(HTTPRequest(url: server.url("first")))
            return (first, await loop.end(of: put))
        }
        #expect(first.head.status == 200)
        if fresh {
            #expect([55, 56].contains(end.code))
            #expect(server.requests(for: "/up").map(\.bodyLength) == [100_000])
        } else {
            #expect(end.code == 0)
            #expect(server.requests(for: "/up").last?.body == bytes)
        }
    }

    @Test func `interim answers are told, 100 is not`() async throws {
        let interim = [
            "HTTP/1.1 103 Early Hints\r\nLink: </a>",
            "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /up/1\r\nUpload-Offset: 3",
        ]
        let server = try ScriptedServer(bodies: { _, _ in BodyTreatment(interim: interim) }) { _, _ in
            .text(200, "final")
        }
        let heads = Mutex<[ResponseHead]>([])
        var request = self.request(server, BytesSource([UInt8](repeating: 1, count: 100)), expects: true)
        request.onInterim = { head in heads.withLock { $0.append(head) } }
        let answer = try await withLoop { [request] in try await $0.fetch(request) }
        #expect(answer.head.status == 200)
        #expect(heads.withLock { $0.map(\.status) } == [103, 104])
        #expect(heads.withLock { $0.last?.first("location") } == "/up/1")
    }

    @Test func `HEAD waits for no body`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "1234567890") }
        let answer = try await withLoop {
            try await $0.fetch(HTTPRequest(url: server.url("file"), method: "HEAD"))
        }
        #expect(answer.head.first("Content-Length") == "10")
        #expect(answer.end.code == 0)
        #expect(server.requests.map(\.method) == ["HEAD"])
    }
}

/// Zeros, as many as wanted; can end early or pause.
private final class EndlessSource: RequestSource {
    let length: Int64
    private let end: Int64
    private let pauseAt: Int64?
    private let paused: @Sendable () -> Void
    private let mayGoOn = Mutex(false)

    init(length: Int64, end: Int64? = nil, pauseAt: Int64? = nil, paused: @escaping @Sendable () -> Void = {})
    {
        self.length = length
        self.end = end ?? length
        self.pauseAt = pauseAt
        self.paused = paused
    }

    func goOn() { self.mayGoOn.withLock { $0 = true } }

    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) -> SourceAnswer {
        var end = self.end
        if let pauseAt, !self.mayGoOn.withLock({ $0 }) {
            guard position < pauseAt else {
                self.paused()
                return .pause
            }
            end = pauseAt
        }
        let count = Int(min(Int64(buffer.count), end - position))
        guard count > 0 else { return .failed }
        buffer.prefix(count).initializeMemory(as: UInt8.self, repeating: 0)
        return .bytes(count)
    }
}

extension Slice<UnsafeMutableRawBufferPointer> {
    fileprivate func initializeMemory(as type: UInt8.Type, repeating value: UInt8) {
        UnsafeMutableRawBufferPointer(rebasing: self).initializeMemory(as: type, repeating: value)
    }
}
