import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// Redirects, what goes along with them, and other hosts.
@Suite(.timeLimit(.minutes(5))) struct RedirectTests {
    private static let object = TestObject(size: 10_000, seed: 4)
    private static let fields = [
        RequestHeader(name: "Authorization", value: "Bearer secret"),
        RequestHeader(name: "Cookie", value: "a=b"),
        RequestHeader(name: "X-Api-Key", value: "secret"),
        RequestHeader(name: "Accept-Language", value: "de"),
    ]

    @Test func `credentials stay with their origin, even when it is met again`() async throws {
        let back = Watched("")
        let second = try ScriptedServer { request, _ in
            request.path == "/over" ? .redirect(307, to: back.value) : .object(Self.object, for: request)
        }
        let first = try ScriptedServer { request, _ in
            switch request.path {
            case "/start": .redirect(302, to: "/same")
            case "/same": .redirect(301, to: second.url("over"))
            default: .object(Self.object, for: request)
            }
        }
        back.update { $0 = first.url("back.bin") }
        try await withEngine { scope in
            let job = try await scope.fetch(first.url("start")) { $0.headers = Self.fields }
            #expect(job.state == .completed, "\(job.message ?? "")")
            let requests = first.requests.prefix(2) + second.requests + first.requests.suffix(1)
            #expect(requests.map(\.path) == ["/start", "/same", "/over", "/back.bin"])
            for name in ["Authorization", "Cookie", "X-Api-Key"] {
                #expect(requests.map { $0.header(name) != nil } == [true, true, false, false])
            }
            #expect(requests.allSatisfy { $0.header("Accept-Language") == "de" })
            #expect(requests.allSatisfy { $0.header("Accept-Encoding") == "identity" })
            #expect(try Self.object.matches(scope.folder.file("data/back.bin")) == nil)
        }
    }

    @Test func `user info becomes a field and leaves with no other origin`() async throws {
        let second = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        let first = try ScriptedServer { _, _ in .redirect(to: second.url("file.bin")) }
        try await withEngine { scope in
            let job = try await scope.fetch("http://me:p%40ss@localhost:\(first.port)/file")
            #expect(job.state == .completed)
            #expect(first.requests.map { $0.header("Authorization") } == ["Basic bWU6cEBzcw=="])
            #expect(second.requests.map { $0.header("Authorization") } == [nil])
        }
    }

    @Test(arguments: [
        ("/circle", FailureReason.badResponse), ("/nowhere", .badResponse), ("/endless", .badResponse),
        ("/plain", .policy), ("/user", .policy), ("/file", .badResponse),
    ])
    func `a redirect that must not be followed`(_ path: String, _ reason: FailureReason) async throws {
        let server = try ScriptedServer { request, number in
            switch request.path {
            case "/circle": .redirect(to: "/circle")
            case "/nowhere": Reply(302)
            case "/plain": .redirect(to: "http://example.org/file")
            case "/user": .redirect(to: "http://me:pw@localhost/file")
            case "/file": .redirect(to: "file:///etc/passwd")
            default: .redirect(to: "/endless?\(number)")
            }
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url(path)) { $0.attempts = 1 }
            #expect(job.state == .failed)
            #expect(job.failureReason == reason, "\(job.message ?? "")")
            #expect(job.message?.contains("pw") != true)
            #expect(server.requests.count <= 11)
            #expect(try scope.names.isEmpty)
        }
    }

    @Test func `a login page is not saved`() async throws {
        let server = try ScriptedServer { request, _ in
            request.path == "/login"
                ? .text(200, "<html>log in</html>", type: "text/html") : .redirect(to: "/login")
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .failed)
            #expect(job.failureReason == .badResponse)
            #expect(try scope.names.isEmpty)
        }
    }

    @Test func `a resume goes through the redirect again`() async throws {
        let server = try ScriptedServer { request, number in
            if request.path == "/start" { return .redirect(to: "/file.bin") }
            let reply = Reply.object(Self.object, for: request)
            return number == 0 ? reply.with(.cut(after: 4_000)) : reply
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("start"))
            #expect(job.state == .completed)
            #expect(server.requests.map(\.path) == ["/start", "/file.bin", "/start", "/file.bin"])
            #expect(server.requests(for: "/file.bin").map(\.rangeStart) == [nil, 4_000])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `the caller's proxy is used`() async throws {
        let proxy = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { scope in
            let job = try await scope.fetch("http://example.invalid/file.bin") {
                $0.allowHTTP = true
                $0.proxy.http = "http://127.0.0.1:\(proxy.port)"
            }
            #expect(job.state == .completed)
            #expect(proxy.requests.map(\.target) == ["http://example.invalid/file.bin"])
        }
    }
}
