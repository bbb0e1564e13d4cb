import CCurl
import FerryCore
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTP

/// Limits on bytes a second, as transfers feel them.
///
/// A byte a second is as good as a stop, which no test has to wait for: only the burst passes.
@Suite(.timeLimit(.minutes(5))) struct RateLimitTests {
    private let object = TestObject(size: 1_000_000, seed: 17)
    private static let stop = RateSet(total: 1)
    /// A burst, and what a piece may have more.
    private static let most = 2 * 16_384

    private func server() throws -> ScriptedServer {
        let object = self.object
        return try ScriptedServer { request, _ in .object(object, for: request) }
    }

    /// Takes the body of an exchange.
    private func start(
        _ loop: NetworkLoop,
        _ request: HTTPRequest,
        _ sink: RecordingSink = RecordingSink()
    ) async throws -> (exchange: Exchange, sink: RecordingSink) {
        let exchange = loop.open(request)
        _ = try await exchange.head()
        exchange.receive(into: sink)
        return (exchange, sink)
    }

    @Test func `a limited body stands still, and goes on when the limit goes`() async throws {
        let server = try self.server()
        try await withLoop { loop in
            loop.limiter.set(RateLimits(all: Self.stop))
            let (exchange, sink) = try await self.start(loop, HTTPRequest(url: server.url("file")))
            try await sink.waitForBytes(8_192)
            for _ in 1...100 { await loop.ping() }
            #expect(sink.bytes.count <= Self.most)
            loop.limiter.set(RateLimits())
            #expect(await exchange.end().code == 0)
            #expect(sink.bytes == self.object.bytes(0..<self.object.size))
            #expect(!loop.limiter.isActive)
        }
    }

    @Test func `a limit reaches a transfer that runs`() async throws {
        let server = try ScriptedServer { _, _ in Reply(200, body: .generated(size: 1 << 40, seed: 1)) }
        try await withLoop { loop in
            let count = Watched(0)
            let sink = CountingSink(count)
            let exchange = loop.open(HTTPRequest(url: server.url("endless")))
            _ = try await exchange.head()
            exchange.receive(into: sink)
            try await count.wait(for: "some megabytes") { $0 > 5_000_000 ? () : nil }
            loop.limiter.set(RateLimits(all: RateSet(down: 1)))
            await loop.ping()
            let before = count.value
            for _ in 1...100 { await loop.ping() }
            #expect(count.value - before <= Self.most)
            loop.limiter.set(RateLimits(all: RateSet(up: 1)))
            try await count.wait(for: "more") { $0 > before + 5_000_000 ? () : nil }
            exchange.cancel()
            #expect(await exchange.end().code == ExchangeEnd.cancelledCode)
        }
    }

    @Test func `a job's limit holds no other job`() async throws {
        let server = try self.server()
        try await withLoop { loop in
            loop.limiter.set(1, of: JobID(rawValue: 1))
            var request = HTTPRequest(url: server.url("file"))
            request.job = JobID(rawValue: 1)
            let (slow, slowSink) = try await self.start(loop, request)
            request.job = JobID(rawValue: 2)
            let (fast, fastSink) = try await self.start(loop, request)
            #expect(await fast.end().code == 0)
            #expect(fastSink.bytes.count == 1_000_000)
            #expect(slowSink.bytes.count <= Self.most)
            loop.limiter.set(nil, of: JobID(rawValue: 1))
            #expect(await slow.end().code == 0)
        }
    }

    @Test(arguments: ["localhost", "localhost:80", "other"])
    func `a host's limit holds for its port or for all`(host: String) async throws {
        let server = try self.server()
        try await withLoop { loop in
            loop.limiter.set(RateLimits(hosts: [host: Self.stop]))
            var request = HTTPRequest(url: server.url("file"))
            request.limitHosts = ["localhost:\(server.port)"]
            let (exchange, sink) = try await self.start(loop, request)
            if host == "localhost" {
                try await sink.waitForBytes(8_192)
                for _ in 1...20 { await loop.ping() }
                #expect(sink.bytes.count <= Self.most)
                loop.limiter.set(RateLimits())
            }
            #expect(await exchange.end().code == 0)
        }
    }

    @Test func `a rate is kept in real time`() async throws {
        let server = try self.server()
        try await withLoop { loop in
            loop.limiter.set(RateLimits(all: RateSet(total: 800_000)))
            let begun = ContinuousClock.now
            let answer = try await loop.fetch(HTTPRequest(url: server.url("file")))
            // All but the burst of a tenth of a second and a last piece.
            #expect(ContinuousClock.now - begun >= .milliseconds(1_100))
            #expect(answer.end.code == 0)
            #expect(answer.body.count == 1_000_000)
        }
    }

    @Test(arguments: [UInt64.random(in: 0...UInt64.max), 1])
    func `pauses of sink and limit together lose nothing`(seed: UInt64) async throws {
        let server = try self.server()
        try await withLoop { loop in
            loop.limiter.set(RateLimits(all: RateSet(total: 4_000_000)))
            let exchange = loop.open(HTTPRequest(url: server.url("file")))
            _ = try await exchange.head()
            let generator = Mutex(SeededGenerator(seed: seed))
            let sink = RecordingSink { _ in
                guard generator.withLock({ $0.next() % 3 == 0 }) else { return .taken }
                exchange.resume()
                return .pause
            }
            exchange.receive(into: sink)
            #expect(await exchange.end().code == 0)
            #expect(sink.bytes == self.object.bytes(0..<self.object.size))
        }
    }

    @Test func `a stop ends those who wait`() async throws {
        let server = try self.server()
        let end = try await withLoop { loop in
            loop.grow(to: 3)
            loop.limiter.set(RateLimits(all: Self.stop))
            let (exchange, sink) = try await self.start(loop, HTTPRequest(url: server.url("file")))
            try await sink.waitForBytes(8_192)
            await loop.stop()
            return await exchange.end()
        }
        #expect(end.code == ExchangeEnd.cancelledCode)
    }

    // MARK: Sending

    @Test func `a limited upload stands still, and goes on when the limit goes`() async throws {
        let server = try ScriptedServer { _, _ in .text(201, "thanks") }
        let bytes = self.object.bytes(0..<self.object.size)
        try await withLoop { loop in
            loop.limiter.set(RateLimits(all: RateSet(up: 1)))
            let source = WatchedSource(bytes)
            var request = HTTPRequest(url: server.url("up"), method: "PUT")
            request.body = source
            let exchange = loop.open(request)
            try await source.position.wait(for: "the burst") { $0 >= 8_192 ? () : nil }
            for _ in 1...100 { await loop.ping() }
            #expect(source.position.value <= Self.most)
            loop.limiter.set(RateLimits(all: RateSet(down: 1)))
            let head = try await exchange.head()
            #expect(head.status == 201)
            exchange.receive(into: RecordingSink())
            let end = await exchange.end()
            #expect(end.code == 0)
            #expect(end.sentBytes == 1_000_000)
            #expect(server.requests.first?.body == bytes)
        }
    }

    @Test func `an upload that runs is slowed down, and the answer is read all the same`() async throws {
        let server = try ScriptedServer(
            bodies: { _, _ in BodyTreatment(refusal: .text(403, "no")) },
            handler: { _, _ in .text(200, "") }
        )
        try await withLoop { loop in
            loop.limiter.set(RateLimits(all: Self.stop))
            var request = HTTPRequest(url: server.url("up"), method: "PUT")
            request.body = BytesSource([UInt8](repeating: 1, count: 1_000_000))
            let exchange = loop.open(request)
            let head = try await exchange.head()
            #expect(head.status == 403)
            exchange.cancel()
            _ = await exchange.end()
        }
    }

    // MARK: Parts

    @Test func `who is held is known`() {
        let limiter = RateLimiter()
        let flow = RateLimiter.Flow(thread: 0, exchange: 7, isUpload: false)
        let pace = RatePace(limiter, flow, .init(isUpload: false))
        #expect(pace.take(1 << 30) && !pace.isHeld)
        #expect(pace.share == nil)
        limiter.set(RateLimits(all: Self.stop))
        #expect(pace.share == 1)
        #expect(pace.take(20_000) && !pace.isHeld, "a piece may be larger than what is there")
        #expect(!pace.take(1) && pace.isHeld)
        #expect(limiter.grant(to: 0).wait != nil)
        limiter.set(RateLimits())
        #expect(limiter.isActive)
        #expect(limiter.grant(to: 1).exchanges.isEmpty)
        #expect(limiter.isActive, "the other thread has not asked yet")
        #expect(limiter.grant(to: 0).exchanges == [7])
        #expect(!limiter.isActive)
        #expect(pace.take(1) && !pace.isHeld)
        pace.leave()
    }

    @Test(
        arguments: [
            (1, 1_024, 16_384), (4_096, 1_024, 16_384), (1 << 20, 16_384, 131_072),
            (8 << 20, 131_072, 1 << 20),
            (1 << 40, 131_072, 1 << 37),
        ] as [(Int64, Int, Int)]
    )
    func `buffers of this process suit the rate`(share: Int64, buffer: Int, unsent: Int) {
        #expect(LoopTransfer.bufferBytes(at: share, atMost: 131_072) == buffer)
        #expect(LoopTransfer.bufferBytes(at: share, atMost: 32_768) == min(buffer, 32_768))
        #expect(LoopTransfer.unsentBytes(at: share) == unsent)
    }

    @Test(arguments: [(0, true), (1_999, true), (2_000, false), (60_000, false)])
    func `a slow transfer takes no connection that a fast one has used`(milliseconds: Int, isFresh: Bool) {
        let quiet = Duration.milliseconds(milliseconds)
        let slow = LoopTransfer.reuse(at: LoopTransfer.reuseRate - 1, quiet: quiet)
        #expect(slow.map(\.0) == [isFresh ? CURLOPT_FRESH_CONNECT : CURLOPT_MAXLIFETIME_CONN])
        #expect(slow.map(\.1) == [isFresh ? 1 : milliseconds / 1_000 - 1])
        #expect(LoopTransfer.reuse(at: LoopTransfer.reuseRate, quiet: quiet).isEmpty)
    }

    @Test func `a connection is used again where its window suits the limit`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "hello") }
        try await withLoop { loop in
            loop.limiter.set(RateLimits(all: RateSet(down: 20_000)))
            for _ in 1...3 { _ = try await loop.fetch(HTTPRequest(url: server.url("a"))) }
            #expect(server.connectionCount == 1)
            loop.limiter.set(RateLimits())
            for _ in 1...3 { _ = try await loop.fetch(HTTPRequest(url: server.url("b"))) }
            #expect(server.connectionCount == 1, "it is made wide")
            loop.limiter.set(RateLimits(all: RateSet(down: 20_000)))
            _ = try await loop.fetch(HTTPRequest(url: server.url("c")))
            #expect(server.connectionCount == 2, "and stays so")
            loop.limiter.set(RateLimits(all: RateSet(down: 10_000_000)))
            _ = try await loop.fetch(HTTPRequest(url: server.url("d")))
            #expect(server.connectionCount == 2, "one window more or less is nothing at such a rate")
        }
    }

    @Test func `a server is held back by what the kernel holds, until the limit goes`() async throws {
        let size: Int64 = 16 << 20
        let server = try ScriptedServer { _, _ in Reply(200, body: .generated(size: size, seed: 1)) }
        try await withLoop { loop in
            loop.limiter.set(RateLimits(all: Self.stop))
            let (exchange, sink) = try await self.start(loop, HTTPRequest(url: server.url("file")))
            try await sink.waitForBytes(8_192)
            for _ in 1...20 { await loop.ping() }
            #expect(sink.bytes.count <= Self.most)
            loop.limiter.set(RateLimits())
            #expect(await exchange.end().code == 0)
            #expect(sink.bytes.count == Int(size))
        }
    }
}

/// Counts what comes.
private final class CountingSink: BodySink {
    private let count: Watched<Int>

    init(_ count: Watched<Int>) {
        self.count = count
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        let size = bytes.count
        self.count.update { $0 += size }
        return .taken
    }
}

/// Bytes in memory, and how far they were read.
private final class WatchedSource: RequestSource {
    let position = Watched(0)
    private let bytes: BytesSource

    init(_ bytes: [UInt8]) {
        self.bytes = BytesSource(bytes)
    }

    var length: Int64 { self.bytes.length }

    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) -> SourceAnswer {
        let answer = self.bytes.read(into: buffer, at: position)
        if case .bytes(let count) = answer { self.position.update { $0 = Int(position) + count } }
        return answer
    }
}
