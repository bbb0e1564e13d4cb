import FerryCore
import FerryTestSupport
import Testing

@testable import FerryHTTP

/// Exchanges in which nothing happens any more, or next to nothing.
@Suite(.timeLimit(.minutes(5))) struct StallTests {
    private static let body = BodySource.generated(size: 100_000, seed: 1)

    private func request(_ url: String, limit: Duration = .milliseconds(500)) -> HTTPRequest {
        var request = HTTPRequest(url: url)
        request.stallTimeout = limit
        return request
    }

    private func expectStall(_ end: ExchangeEnd, _ phase: ExchangePhase) {
        #expect(end.code == 28)
        #expect(end.phase == phase)
        guard case .silence = end.stall else {
            Issue.record("\(end)")
            return
        }
        #expect(end.detail.hasPrefix("no byte for ") && end.detail.hasSuffix("while \(phase.text)"))
    }

    @Test func `a connection that is not made`() async throws {
        let listener = try SilentListener(isFull: true)
        try await withLoop { loop in
            let end = await loop.end(of: self.request(listener.url("file")))
            self.expectStall(end, .connecting)
            #expect(end.tried == ["127.0.0.1"])
        }
    }

    @Test func `a TLS handshake that is not answered`() async throws {
        let listener = try SilentListener()
        try await withLoop { loop in
            self.expectStall(
                await loop.end(of: self.request(listener.url("file", scheme: "https"))),
                .securing
            )
        }
    }

    @Test func `a server that accepts and sends nothing`() async throws {
        let server = try ScriptedServer { _, _ in Reply(200).with(.hold(Gate())) }
        try await withLoop { loop in
            self.expectStall(await loop.end(of: self.request(server.url("file"))), .answer)
        }
    }

    @Test(arguments: [0, 99_000])
    func `a body that does not begin or does not end`(bytes: Int64) async throws {
        let server = try ScriptedServer { _, _ in Reply(200, body: Self.body).with(.stall(after: bytes)) }
        try await withLoop { loop in
            let end = await loop.end(of: self.request(server.url("file")))
            self.expectStall(end, .body)
            #expect(end.bodyBytes == bytes)
        }
    }

    @Test func `an upload that nobody reads`() async throws {
        let listener = try SilentListener()
        try await withLoop { loop in
            var request = self.request(listener.url("file"))
            request.method = "PUT"
            request.body = BytesSource([UInt8](repeating: 1, count: 16 << 20))
            self.expectStall(await loop.end(of: request), .sending)
        }
    }

    @Test func `an upload that is not answered has five times as long`() async throws {
        let server = try ScriptedServer { _, _ in Reply(200).with(.hold(Gate())) }
        try await withLoop { loop in
            var request = self.request(server.url("file"), limit: .milliseconds(300))
            request.method = "PUT"
            request.body = BytesSource([1, 2, 3])
            let end = await loop.end(of: request)
            self.expectStall(end, .answer)
            guard case .silence(let time) = end.stall else { return }
            #expect(time >= .milliseconds(1_500))
        }
    }

    @Test func `a trickle below the lowest rate`() async throws {
        let server = try ScriptedServer { _, _ in
            Reply(200, body: Self.body).with(.trickle(chunk: 1, every: .milliseconds(250)))
        }
        try await withLoop { loop in
            let end = await loop.end(of: self.request(server.url("file"), limit: .milliseconds(1_000)))
            #expect(end.code == 28)
            #expect(end.stall != nil)
            #expect(end.bodyBytes > 0)
            // A loaded machine may be silent for a second.
            if case .trickle(let time) = end.stall { #expect(time >= .seconds(5)) }
        }
    }

    @Test func `what the sink holds up is not stalled`() async throws {
        let server = try ScriptedServer { _, _ in Reply(200, body: Self.body) }
        try await withLoop { loop in
            let exchange = loop.open(self.request(server.url("file"), limit: .milliseconds(100)))
            _ = try await exchange.head()
            // Ten limits before anybody says where the body goes, and ten in the middle of it.
            try await self.pass(.seconds(1), loop)
            let held = Watched(0)
            let sink = RecordingSink { _ in
                let count = held.update { count in
                    count += 1
                    return count
                }
                return count == 1 ? .pause : .taken
            }
            exchange.receive(into: sink)
            try await held.wait(for: "a pause") { $0 > 0 ? () : nil }
            try await self.pass(.seconds(1), loop)
            exchange.resume()
            #expect(await exchange.end().code == 0)
            #expect(sink.bytes.count == 100_000)
        }
    }

    @Test func `without a limit silence is no stall`() async throws {
        let gate = Gate()
        let server = try ScriptedServer { _, _ in Reply(200, body: Self.body).with(.hold(gate)) }
        try await withLoop { loop in
            let exchange = loop.open(self.request(server.url("file"), limit: .zero))
            _ = try await server.waitForRequests(1)
            try await self.pass(.seconds(2), loop)
            gate.open()
            #expect(try await exchange.head().status == 200)
            exchange.cancel()
        }
    }

    /// Lets the loop see time pass: what is tested is that nothing happens in it.
    private func pass(_ time: Duration, _ loop: NetworkLoop) async throws {
        try await Task.sleep(for: time)
        await loop.ping()
    }

    // MARK: Sleep of the machine

    @Test func `connections from before a sleep are not used again`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "hello") }
        try await withLoop { loop in
            for path in ["one", "two"] { _ = try await loop.fetch(HTTPRequest(url: server.url(path))) }
            loop.wokeUp()
            for path in ["three", "four"] { _ = try await loop.fetch(HTTPRequest(url: server.url(path))) }
            let connections = server.requests.map(\.connection)
            #expect(connections[0] == connections[1])
            #expect(!connections[2...].contains(connections[0]))
        }
    }

    @Test func `what was silent since a sleep has not failed`() async throws {
        let server = try ScriptedServer { request, _ in
            Reply(200, body: Self.body).with(.stall(after: request.path == "/some" ? 5_000 : 0))
        }
        try await withLoop { loop in
            let exchange = loop.open(self.request(server.url("some"), limit: .seconds(100)))
            _ = try await exchange.head()
            let sink = RecordingSink()
            exchange.receive(into: sink)
            try await sink.waitForBytes(5_000)
            loop.wokeUp()
            let end = await exchange.end()
            #expect(end.code == 28)
            #expect(end.wasAsleep)
            #expect(await loop.end(of: self.request(server.url("none"))).wasAsleep == false)
        }
    }
}
