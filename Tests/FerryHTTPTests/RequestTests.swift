import CCurl
import FerryCore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryHTTP

/// What goes over the wire.
@Suite(.timeLimit(.minutes(5))) struct RequestTests {
    @Test func `fields are sent exactly as given`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "hello") }
        let fields = [
            ("X-Empty", ""), ("X-Twice", "1"), ("X-Twice", "2; a=b"), ("Accept-Encoding", "identity"),
        ]
        let request = HTTPRequest(
            url: server.url("file?a=1&b=%20"),
            fields: fields.map { ResponseHead.Field(name: $0.0, value: $0.1) }
        )
        _ = try await withLoop { try await $0.fetch(request) }
        let seen = try #require(server.requests.first)
        #expect(seen.method == "GET")
        #expect(seen.target == "/file?a=1&b=%20")
        let expected =
            [("Host", "localhost:\(server.port)"), ("User-Agent", "ferry-test"), ("Accept", "*/*")] + fields
        #expect(seen.headers.map { "\($0.0): \($0.1)" } == expected.map { "\($0.0): \($0.1)" })
    }

    @Test func `a field of the user's replaces the default of that name`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "hello") }
        let fields = [ResponseHead.Field(name: "User-Agent", value: "mine")]
        _ = try await withLoop { try await $0.fetch(HTTPRequest(url: server.url("file"), fields: fields)) }
        #expect(server.requests.first?.headers.filter { $0.0 == "User-Agent" }.map(\.1) == ["mine"])
    }

    @Test func `nothing of one request is left in the next`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "hello") }
        try await withLoop { loop in
            let fields = [ResponseHead.Field(name: "Authorization", value: "secret")]
            _ = try await loop.fetch(HTTPRequest(url: server.url("a"), method: "DELETE", fields: fields))
            _ = try await loop.fetch(HTTPRequest(url: server.url("b")))
        }
        #expect(server.requests.map(\.method) == ["DELETE", "GET"])
        #expect(server.requests.last?.header("Authorization") == nil)
    }

    @Test func `requests one after the other share a connection`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "hello") }
        try await withLoop { loop in
            for number in 1...5 { _ = try await loop.fetch(HTTPRequest(url: server.url("\(number)"))) }
        }
        #expect(server.requests.count == 5)
        #expect(server.connectionCount == 1)
    }

    // MARK: Proxies

    @Test func `the environment's proxies play no part`() async {
        await #expect(processExitsWith: .success) {
            for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"] {
                setenv(name, "http://127.0.0.1:1", 1)
            }
            let server = try ScriptedServer { _, _ in .text(200, "direct") }
            let body = try await withLoop { try await $0.fetch(HTTPRequest(url: server.url("file"))).body }
            try #require(body == Array("direct".utf8))
        }
    }

    @Test func `a proxy that is given is asked`() async throws {
        let proxy = try ScriptedServer { _, _ in .text(200, "through the proxy") }
        var request = HTTPRequest(url: "http://example.invalid/file?q=1")
        request.proxy = "http://127.0.0.1:\(proxy.port)"
        let answer = try await withLoop { [request] in try await $0.fetch(request) }
        #expect(answer.body == Array("through the proxy".utf8))
        #expect(proxy.requests.map(\.target) == ["http://example.invalid/file?q=1"])
    }

    @Test func `hosts without proxy are asked directly`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "direct") }
        var request = HTTPRequest(url: server.url("file"))
        request.proxy = "http://127.0.0.1:\(try freePort())"
        request.noProxy = "example.org,localhost"
        let answer = try await withLoop { [request] in try await $0.fetch(request) }
        #expect(answer.body == Array("direct".utf8))
    }

    // MARK: Heads

    @Test func `an interim answer is not the head`() async throws {
        let server = try ScriptedServer { _, _ in .text(200, "final") }
        let fields = [ResponseHead.Field(name: "Expect", value: "100-continue")]
        let answer = try await withLoop {
            try await $0.fetch(HTTPRequest(url: server.url("file"), fields: fields))
        }
        #expect(answer.head.status == 200)
        #expect(answer.body == Array("final".utf8))
    }

    @Test func `trailers are told at the end, folded lines are joined`() async throws {
        let server = try ScriptedServer { _, _ in
            Reply(
                200,
                headers: ["X-Folded: one\r\n  two"],
                body: .bytes(Array("5\r\nhello\r\n0\r\nX-Trailer: yes\r\n\r\n".utf8)),
                declaredLength: .raw(["Transfer-Encoding: chunked"])
            )
        }
        let answer = try await withLoop { try await $0.fetch(HTTPRequest(url: server.url("file"))) }
        #expect(answer.head.first("x-folded") == "one two")
        #expect(answer.body == Array("hello".utf8))
        #expect(answer.end.trailers == [ResponseHead.Field(name: "X-Trailer", value: "yes")])
        #expect(answer.head.first("x-trailer") == nil)
    }

    // MARK: Options

    /// An option and the types of its wrapper, in libcurl's terms.
    struct Option: Sendable, CustomTestStringConvertible {
        let option: CURLoption
        let types: [curl_easytype]
        var testDescription: String {
            curl_easy_option_by_id(self.option).map { String(cString: $0.pointee.name) } ?? "unknown"
        }
    }

    private static var options: [Option] {
        var request = HTTPRequest(url: "https://example.org/")
        request.caFile = "/ca.pem"
        request.body = BytesSource()
        let numbers =
            LoopTransfer.numbers(request) + [1, 60].flatMap { LoopTransfer.reuse(awake: .seconds($0)) }
        return numbers.map {
            Option(option: $0.0, types: [CURLOT_LONG, CURLOT_VALUES])
        }
            + LoopTransfer.texts(request, userAgent: "").map { Option(option: $0.0, types: [CURLOT_STRING]) }
            + LoopTransfer.lists.map { Option(option: $0, types: [CURLOT_SLIST]) }
            + LoopTransfer.buffers.map { Option(option: $0, types: [CURLOT_OBJECT]) }
            + LoopTransfer.contexts.map { Option(option: $0, types: [CURLOT_CBPTR]) }
            + LoopTransfer.callbacks.map { Option(option: $0.0, types: [CURLOT_FUNCTION]) }
            + LoopTransfer.seekCallbacks.map { Option(option: $0.0, types: [CURLOT_FUNCTION]) }
            + LoopTransfer.socketCallbacks.map { Option(option: $0.0, types: [CURLOT_FUNCTION]) }
            + LoopTransfer.openSocketCallbacks.map { Option(option: $0.0, types: [CURLOT_FUNCTION]) }
            + LoopTransfer.connectionCallbacks.map { Option(option: $0.0, types: [CURLOT_FUNCTION]) }
            + LoopTransfer.offsets(request).map { Option(option: $0.0, types: [CURLOT_OFF_T]) }
    }

    @Test(arguments: options)
    func `each option goes through the wrapper of its type`(_ item: Option) throws {
        let known = try #require(curl_easy_option_by_id(item.option))
        #expect(item.types.contains(known.pointee.type))
    }
}
