import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTP

@Suite(.timeLimit(.minutes(2))) struct NetworkLoopTests {
    @Test(arguments: [
        ("https://a.example/x", "https://a.example/y?z", true),
        ("https://a.example", "https://a.example/", true),
        ("https://a.example?q", "https://a.example#f", true),
        ("http://[::1]:80/a/b", "http://[::1]:80/", true),
        ("https://a.example/", "http://a.example/", false),
        ("https://a.example/", "https://a.example:444/", false),
        ("https://a.example/", "https://b.example/", false),
    ])
    func `an origin has one thread`(_ left: String, _ right: String, _ isSame: Bool) {
        let many = 1 << 30
        #expect(
            (NetworkLoop.index(of: left, among: many) == NetworkLoop.index(of: right, among: many)) == isSame
        )
        #expect(NetworkLoop.index(of: left, among: 1) == 0)
    }

    @Test func `origins spread over the threads`() {
        let used = Set((0..<64).map { NetworkLoop.index(of: "https://host\($0).example/", among: 4) })
        #expect(used == [0, 1, 2, 3])
    }

    @Test func `more threads carry out what one did`() async throws {
        try await withLoop { loop in
            let servers = try (0..<6).map { _ in
                try ScriptedServer { request, _ in Reply(200, body: .bytes(Array(request.path.utf8))) }
            }
            #expect(loop.threadCount == 1)
            loop.grow(to: 4)
            loop.grow(to: 2)
            #expect(loop.threadCount == 4)
            for server in servers {
                for path in ["one", "two"] {
                    let answer = try await loop.fetch(HTTPRequest(url: server.url(path)))
                    #expect(answer.body == Array("/\(path)".utf8))
                }
                #expect(server.connectionCount == 1)
            }
            await loop.ping()
            #expect(loop.exchangeCount == 0)
        }
    }

    @Test func `a ping is answered by every thread, and by none that is stopped`() async throws {
        let loop = try NetworkLoop(userAgent: "ferry-test")
        loop.grow(to: 3)
        let pings = Atomic<Int>(0)
        await loop.ping { pings.add(1, ordering: .relaxed) }
        #expect(pings.load(ordering: .relaxed) == 3)
        await loop.stop()
        await loop.ping { pings.add(1, ordering: .relaxed) }
        #expect(pings.load(ordering: .relaxed) == 3)
        loop.grow(to: 5)
        #expect(loop.threadCount == 3)
    }
}
