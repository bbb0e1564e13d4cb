import FerryCore
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTP

/// The ways in which an exchange ends.
@Suite(.timeLimit(.minutes(5))) struct ExchangeEndTests {
    // MARK: Cancelling

    @Test func `cancelled before its head`() async throws {
        let server = try ScriptedServer { _, _ in Reply(200).with(.hold(Gate())) }
        try await withLoop { loop in
            let exchange = loop.open(HTTPRequest(url: server.url("file")))
            _ = try await server.waitForRequests(1)
            exchange.cancel()
            let error = await #expect(throws: ExchangeEnd.self) { try await exchange.head() }
            #expect(error?.code == ExchangeEnd.cancelledCode)
            #expect(await exchange.end().code == ExchangeEnd.cancelledCode)
        }
    }

    @Test func `cancelled in the middle of its body`() async throws {
        let server = try ScriptedServer { _, _ in
            Reply(200, body: .generated(size: 1 << 20, seed: 1)).with(.stall(after: 100_000))
        }
        try await withLoop { loop in
            let exchange = loop.open(HTTPRequest(url: server.url("file")))
            _ = try await exchange.head()
            let sink = RecordingSink()
            exchange.receive(into: sink)
            try await sink.waitForBytes(100_000)
            exchange.cancel()
            let end = await exchange.end()
            #expect(end.code == ExchangeEnd.cancelledCode)
            #expect(end.bodyBytes == 100_000)
            // What was cut short must not be answered on the next request's connection.
            #expect(try await loop.open(HTTPRequest(url: server.url("next"))).head().status == 200)
            #expect(server.connectionCount == 2)
        }
    }

    @Test(arguments: [100, 3_000])
    func `a head without end is cut off`(lines: Int) async throws {
        let server = try ScriptedServer { _, _ in
            Reply(200, headers: (0..<lines).map { "X-Field-\($0): \(String(repeating: "x", count: 100))" })
        }
        try await withLoop { loop in
            let end = await loop.end(of: HTTPRequest(url: server.url("file")))
            #expect(end.code == (lines == 100 ? 0 : 8))
            if lines != 100 { #expect(end.detail.contains("256 KiB")) }
        }
    }

    @Test func `cancelled, resumed and given a sink after its end`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "hello") }
        try await withLoop { loop in
            let exchange = loop.open(HTTPRequest(url: server.url("file")))
            _ = try await exchange.head()
            exchange.receive(into: RecordingSink())
            #expect(await exchange.end().code == 0)
            exchange.cancel()
            exchange.resume()
            exchange.receive(into: RecordingSink())
            #expect(try await loop.fetch(HTTPRequest(url: server.url("next"))).body == Array("hello".utf8))
            #expect(await exchange.end().code == 0)
        }
    }

    @Test func `a loop that stops ends all exchanges and refuses new ones`() async throws {
        let server = try ScriptedServer { request, _ in
            request.path == "/held"
                ? Reply(200).with(.hold(Gate()))
                : Reply(200, body: .generated(size: 1 << 20, seed: 1)).with(.stall(after: 1_000))
        }
        let loop = try NetworkLoop(userAgent: "ferry-test")
        let held = loop.open(HTTPRequest(url: server.url("held")))
        let withoutSink = loop.open(HTTPRequest(url: server.url("stalled")))
        let flowing = loop.open(HTTPRequest(url: server.url("stalled")))
        _ = try await server.waitForRequests(3)
        _ = try await withoutSink.head()
        _ = try await flowing.head()
        let sink = RecordingSink()
        flowing.receive(into: sink)
        try await sink.waitForBytes(1_000)
        await loop.stop()
        for exchange in [held, withoutSink, flowing] {
            #expect(await exchange.end().code == ExchangeEnd.cancelledCode)
        }
        let late = loop.open(HTTPRequest(url: server.url("late")))
        await #expect(throws: ExchangeEnd.self) { try await late.head() }
        #expect(await late.end().code == ExchangeEnd.cancelledCode)
        #expect(server.requests.count == 3)
    }

    // MARK: Faults

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let reply: Reply
        let code: Int32
        let bodyBytes: Int64
    }

    private static let body = BodySource.generated(size: 50_000, seed: 1)

    @Test(arguments: [
        Case(testDescription: "whole", reply: Reply(200, body: body), code: 0, bodyBytes: 50_000),
        Case(
            testDescription: "cut, with a length",
            reply: Reply(200, body: body, fault: .cut(after: 20_000)),
            code: 18,
            bodyBytes: 20_000
        ),
        Case(
            testDescription: "shorter than its length",
            reply: Reply(200, body: body, declaredLength: .lie(60_000)),
            code: 18,
            bodyBytes: 50_000
        ),
        Case(
            testDescription: "longer than its length",
            reply: Reply(200, body: body, declaredLength: .lie(40_000)),
            code: 0,
            bodyBytes: 40_000
        ),
        Case(
            testDescription: "cut, in chunks",
            reply: Reply(200, body: body, declaredLength: .chunked, fault: .cut(after: 20_000)),
            code: 18,
            bodyBytes: 20_000
        ),
        Case(
            testDescription: "whole, in chunks",
            reply: Reply(200, body: body, declaredLength: .chunked),
            code: 0,
            bodyBytes: 50_000
        ),
        Case(
            testDescription: "until the connection ends",
            reply: Reply(200, body: body, declaredLength: .none),
            code: 0,
            bodyBytes: 50_000
        ),
        Case(
            testDescription: "cut, where the end of the connection is the end",
            reply: Reply(200, body: body, declaredLength: .none, fault: .cut(after: 20_000)),
            code: 0,
            bodyBytes: 20_000
        ),
        Case(
            testDescription: "closed before the head",
            reply: Reply(200, fault: .closeBeforeHead),
            code: 52,
            bodyBytes: 0
        ),
    ])
    func `libcurl's code tells what happened to the body`(_ item: Case) async throws {
        let server = try ScriptedServer { _, _ in item.reply }
        let end = try await withLoop { await $0.end(of: HTTPRequest(url: server.url("file"))) }
        #expect(end.code == item.code, "\(end.detail)")
        #expect(end.bodyBytes == item.bodyBytes)
        #expect((item.code == 0) == end.detail.isEmpty)
        #expect(end.address?.hasSuffix(":\(server.port)") == true)
    }

    @Test func `a reset connection is told as such`() async throws {
        let server = try ScriptedServer { _, _ in
            Reply(200, body: .generated(size: 50_000, seed: 1)).with(.reset(after: 20_000))
        }
        let end = try await withLoop { await $0.end(of: HTTPRequest(url: server.url("file"))) }
        #expect(end.code == 56)
    }

    @Test func `a body that stands still ends with a time-out`() async throws {
        let server = try ScriptedServer { _, _ in
            Reply(200, body: .generated(size: 50_000, seed: 1)).with(.stall(after: 20_000))
        }
        var request = HTTPRequest(url: server.url("file"))
        request.stallTimeout = .seconds(1)
        let end = try await withLoop { [request] in await $0.end(of: request) }
        #expect(end.code == 28)
        #expect(end.bodyBytes == 20_000)
    }

    @Test func `a server that says nothing ends with a time-out`() async throws {
        let server = try ScriptedServer { _, _ in Reply(200).with(.hold(Gate())) }
        var request = HTTPRequest(url: server.url("file"))
        request.stallTimeout = .seconds(1)
        let end = try await withLoop { [request] in await $0.end(of: request) }
        #expect(end.code == 28)
    }

    @Test func `a port on which nobody listens`() async throws {
        let url = "http://127.0.0.1:\(try freePort())/file"
        let end = try await withLoop { await $0.end(of: HTTPRequest(url: url)) }
        #expect(end.code == 7)
        #expect(end.firstByte == nil)
    }

    @Test func `only http and https are spoken`() async throws {
        let end = try await withLoop { await $0.end(of: HTTPRequest(url: "file:///etc/passwd")) }
        #expect(end.code == 1)
    }

    // MARK: TLS

    @Test func `a certificate needs an authority that is trusted`() async throws {
        try await withTemporaryFolder { folder in
            let certificates = try TestCertificates.make(in: folder.path)
            let server = try ScriptedServer(tls: certificates) { _, _ in .text(200, "secret") }
            try await withLoop { loop in
                var trusting = HTTPRequest(url: server.url("file"))
                trusting.caFile = certificates.authorityPath
                let answer = try await loop.fetch(trusting)
                #expect(answer.body == Array("secret".utf8))
                trusting.tlsMinimum = .v13
                #expect(try await loop.fetch(trusting).end.code == 0)
                #expect(await loop.end(of: HTTPRequest(url: server.url("file"))).code == 60)
            }
        }
    }
}
