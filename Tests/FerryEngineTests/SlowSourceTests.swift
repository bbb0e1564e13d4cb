import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

/// Sources on disks that are slow, fail, or do not tell what is in memory.
@Suite(.timeLimit(.minutes(5))) struct SlowSourceTests {
    /// The system's calls, without a page cache, and with a word about each read before it is made.
    private static func calls(_ before: @escaping @Sendable (_ size: off_t) -> Int32) -> FileCalls {
        var calls = FileCalls.real
        calls.preadCached = { _, _, _, _ in
            errno = EAGAIN
            return -1
        }
        calls.pread = { descriptor, buffer, count, offset in
            var info = stat()
            fstat(descriptor, &info)
            let problem = before(info.st_size)
            guard problem == 0 else {
                errno = problem
                return -1
            }
            return FileCalls.real.pread(descriptor, buffer, count, offset)
        }
        return calls
    }

    private static func server() throws -> ScriptedServer {
        try ScriptedServer { _, _ in .text(201, "stored") }
    }

    @Test func `a disk that does not answer holds up nobody else`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let calls = Self.calls { size in
            if size == 3_000_000 { gate.waitBlocking(timeout: .seconds(120)) }
            return 0
        }
        let server = try Self.server()
        try await withEngine { _ in
            calls
        } _: { scope in
            let (slow, bytes) = try scope.source("slow", size: 3_000_000)
            let (fast, others) = try scope.source("fast", size: 2_500_000)
            let waits = try await scope.send(slow, to: server.url("slow"))
            #expect(try await scope.put(fast, to: server.url("fast")).state == .completed)
            #expect(!gate.isOpen && server.requests(for: "/fast").map(\.body) == [others])
            gate.open()
            #expect(try await scope.end(of: waits).state == .completed)
            #expect(server.requests(for: "/slow").map(\.body) == [bytes])
        }
    }

    @Test func `a disk that fails is told, and the server has no whole body`() async throws {
        let calls = Self.calls { _ in EIO }
        let server = try Self.server()
        try await withEngine { _ in
            calls
        } _: { scope in
            let (path, _) = try scope.source("bad", size: 3_000_000)
            let job = try await scope.put(path, to: server.url("bad"))
            #expect(job.state == .failed && job.failureReason == .localIO)
            #expect(job.message?.contains(path) == true, "\(job.message ?? "")")
            #expect(server.requests.allSatisfy { $0.bodyLength < 3_000_000 })
        }
    }
}
