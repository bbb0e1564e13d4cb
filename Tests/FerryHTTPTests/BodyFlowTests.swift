import FerryCore
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTP

/// When body bytes flow, and that none is lost or doubled.
@Suite(.timeLimit(.minutes(5))) struct BodyFlowTests {
    private let object = TestObject(size: 8 << 20, seed: 7)

    @Test func `the head comes first and the body stands still until there is a sink`() async throws {
        let size: Int64 = 64 << 20
        let server = try ScriptedServer { request, _ in
            Reply(200, body: .generated(size: request.path == "/large" ? size : 10, seed: 1))
        }
        try await withLoop { loop in
            let exchange = loop.open(HTTPRequest(url: server.url("large")))
            let head = try await exchange.head()
            #expect(head.status == 200)
            #expect(head.first("content-length") == "\(size)")
            // The loop turns, and still no more is taken than the sockets hold.
            for _ in 1...20 {
                #expect(try await loop.fetch(HTTPRequest(url: server.url("small"))).end.code == 0)
            }
            #expect(server.bytesSent < size / 2)
            let sink = RecordingSink()
            exchange.receive(into: sink)
            let end = await exchange.end()
            #expect(end.code == 0)
            #expect(end.bodyBytes == size)
            #expect(sink.bytes.count == Int(size))
        }
    }

    @Test(arguments: [UInt64.random(in: 0...UInt64.max), 1])
    func `pauses lose nothing and double nothing`(seed: UInt64) async throws {
        let object = self.object
        let server = try ScriptedServer { request, _ in .object(object, for: request) }
        try await withLoop { loop in
            let exchange = loop.open(HTTPRequest(url: server.url("file")))
            _ = try await exchange.head()
            let generator = Mutex(SeededGenerator(seed: seed))
            let refused = Mutex<[UInt8]?>(nil)
            let changed = Atomic(0)
            let pauses = Atomic(0)
            let sink = RecordingSink { bytes in
                let again = refused.withLock { kept in
                    defer { kept = nil }
                    return kept
                }
                if let again, !bytes.starts(with: again) { changed.add(1, ordering: .relaxed) }
                guard generator.withLock({ $0.next() % 3 == 0 }) else { return .taken }
                refused.withLock { $0 = Array(bytes) }
                pauses.add(1, ordering: .relaxed)
                exchange.resume()
                return .pause
            }
            exchange.receive(into: sink)
            #expect(await exchange.end().code == 0)
            #expect(changed.load(ordering: .relaxed) == 0, "the same bytes come again")
            #expect(pauses.load(ordering: .relaxed) > 10)
            #expect(sink.bytes == object.bytes(0..<object.size))
        }
    }

    @Test func `a paused body goes on only when told`() async throws {
        let object = self.object
        let server = try ScriptedServer { request, _ in .object(object, for: request) }
        try await withLoop { loop in
            let exchange = loop.open(HTTPRequest(url: server.url("file")))
            _ = try await exchange.head()
            let calls = Watched(0)
            let sink = RecordingSink { _ in
                calls.update {
                    $0 += 1; return $0 == 1 ? .pause : .taken
                }
            }
            exchange.receive(into: sink)
            try await calls.wait(for: "the first piece") { $0 == 1 ? () : nil }
            for _ in 1...5 { _ = try await loop.fetch(HTTPRequest(url: server.url("other"))) }
            #expect(calls.value == 1)
            exchange.resume()
            exchange.resume()
            #expect(await exchange.end().code == 0)
            #expect(sink.bytes.count == Int(object.size))
        }
    }

    @Test func `a sink that stops ends the exchange with a write error`() async throws {
        let object = self.object
        let server = try ScriptedServer { request, _ in .object(object, for: request) }
        try await withLoop { loop in
            let exchange = loop.open(HTTPRequest(url: server.url("file")))
            _ = try await exchange.head()
            let calls = Atomic(0)
            exchange.receive(
                into: RecordingSink { _ in
                    calls.add(1, ordering: .relaxed).newValue == 3 ? .stop : .taken
                }
            )
            let end = await exchange.end()
            #expect(end.code == 23)
            #expect(calls.load(ordering: .relaxed) == 3, "it is not called again")
        }
    }

    @Test func `an empty body needs no sink to end`() async throws {
        let server = try ScriptedServer { _, _ in Reply(204) }
        try await withLoop { loop in
            let exchange = loop.open(HTTPRequest(url: server.url("nothing")))
            let head = try await exchange.head()
            #expect(head.status == 204)
            #expect(await exchange.end().code == 0)
        }
    }

    @Test func `a hundred exchanges run at once`() async throws {
        let gate = Gate()
        let server = try ScriptedServer { request, _ in
            let size = Int64(request.path.dropFirst()) ?? 0
            return Reply(200, body: .generated(size: size, seed: 3)).with(.hold(gate))
        }
        try await withLoop { loop in
            let exchanges = (1...100).map { loop.open(HTTPRequest(url: server.url("\($0 * 100)"))) }
            _ = try await server.waitForRequests(100)
            gate.open()
            for (index, exchange) in exchanges.enumerated() {
                #expect(try await exchange.head().status == 200)
                let sink = RecordingSink()
                exchange.receive(into: sink)
                #expect(await exchange.end().code == 0)
                #expect(sink.bytes == TestObject(size: 10_000, seed: 3).bytes(0..<Int64(index + 1) * 100))
            }
        }
    }
}
