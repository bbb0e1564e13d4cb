import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryEngine

/// What becomes of a job when the disk does not do what it should.
@Suite(.timeLimit(.minutes(5))) struct DiskTests {
    private static let size: Int64 = 1_000_000
    private static let object = TestObject(size: size, seed: 3)

    private func server() throws -> ScriptedServer {
        try ScriptedServer { request, _ in .object(Self.object, for: request) }
    }

    /// Lets the k-th call fail with a code, and all others through.
    private final class Failure: Sendable {
        private let calls = Atomic(0)
        private let failing: ClosedRange<Int>
        private let code: Int32

        init(_ failing: ClosedRange<Int>, _ code: Int32) {
            self.failing = failing
            self.code = code
        }

        func strikes() -> Bool {
            guard self.failing.contains(self.calls.add(1, ordering: .relaxed).newValue) else { return false }
            errno = self.code
            return true
        }
    }

    @Test func `a sync that fails raises no offset, and what was written is fetched again`() async throws {
        let failure = Failure(1...1, EIO)
        let server = try self.server()
        var calls = FileCalls.real
        calls.fdatasync = { failure.strikes() ? -1 : FileCalls.real.fdatasync($0) }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .failed)
            #expect(job.failureReason == .localIO)
            #expect(job.bytesDurable == 0)
            #expect(job.message?.contains("cannot sync") == true)
            try await scope.steer(.retry, job.id)
            #expect(try await scope.end(of: job.id).state == .completed)
            #expect(server.ranges == [nil, nil])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test func `a sync that fails later keeps the offset of the one before`() async throws {
        let failure = Failure(2...2, EIO)
        let gate = Gate()
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request)
            return number == 0 ? reply.with(.stall(after: 600_000, until: gate)) : reply
        }
        var calls = FileCalls.real
        calls.fdatasync = { failure.strikes() ? -1 : FileCalls.real.fdatasync($0) }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.waitForBytes(600_000, of: id)
            // The checkpoint of every two seconds.
            try await scope.clock.waitForSleepers(1)
            scope.clock.advance(by: .seconds(2))
            while try await scope.job(id).bytesDurable == 0 { await Task.yield() }
            #expect(try await scope.job(id).bytesDurable == 600_000)
            gate.open()
            let job = try await scope.end(of: id)
            #expect(job.failureReason == .localIO)
            #expect(job.bytesDurable == 600_000)
            try await scope.steer(.retry, id)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, 600_000])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test(arguments: [ENOSPC, EDQUOT])
    func `a full disk is found before the first byte, and waited for`(code: Int32) async throws {
        let failure = Failure(1...3, code)
        let server = try self.server()
        var calls = FileCalls.real
        calls.fallocate = { failure.strikes() ? -1 : FileCalls.real.fallocate($0, $1, $2) }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.attempts = 1 }
            let waiting = try await scope.next(id, .waiting, .failed)
            #expect(waiting.waitReason == .disk)
            #expect(waiting.nextTry == scope.now + RetryPlan.diskInterval)
            #expect(server.bytesSent < Self.size || waiting.bytesDurable == 0)
            try await scope.passWait(of: waiting)
            let job = try await scope.end(of: id)
            #expect(job.state == .completed, "waiting for the disk is no try")
            #expect(job.attempts == 4)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    /// The first sixteen writes or more go straight through, the rest are slabs.
    @Test(arguments: 1...19)
    func `a disk that fills up in the middle keeps what is written`(failing k: Int) async throws {
        let failure = Failure(k...k, ENOSPC)
        let server = try self.server()
        let ends = Mutex<[Int64]>([])
        var calls = FileCalls.real
        calls.pwrite = { descriptor, bytes, count, offset in
            ends.withLock { $0.append(offset + Int64(count)) }
            return failure.strikes() ? -1 : FileCalls.real.pwrite(descriptor, bytes, count, offset)
        }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("file.bin"))
            let waiting = try await scope.next(id, .waiting, .failed)
            // Nothing is written after the one that failed.
            #expect(ends.withLock { $0.count } == k)
            let written = ends.withLock { $0.dropLast().last ?? 0 }
            #expect(waiting.waitReason == .disk)
            #expect(waiting.bytesDurable == written)
            #expect(waiting.message?.contains("No space left") == true)
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, written == 0 ? nil : written])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    /// The file's own sync, the folder's, and the rename: each fails once, at each of its calls.
    @Test(arguments: 1...4)
    func `a failing fsync never leaves a wrong file`(failing k: Int) async throws {
        let failure = Failure(k...k, EIO)
        let server = try self.server()
        var calls = FileCalls.real
        calls.fsync = { failure.strikes() ? -1 : FileCalls.real.fsync($0) }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            if job.state == .failed {
                #expect(job.failureReason == .localIO)
                try await scope.steer(.retry, job.id)
            }
            let last = job.state == .failed ? try await scope.end(of: job.id) : job
            #expect(last.state == .completed)
            for name in try scope.names {
                #expect(try Self.object.matches(scope.folder.file("data/\(name)")) == nil)
            }
            #expect(try scope.names.count(where: { !$0.hasPrefix(".") }) >= 1)
        }
    }

    @Test func `a rename that fails keeps the whole file for the next try`() async throws {
        let failure = Failure(1...1, EIO)
        let server = try self.server()
        var calls = FileCalls.real
        calls.renameNoReplace = { failure.strikes() ? -1 : FileCalls.real.renameNoReplace($0, $1, $2) }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.failureReason == .localIO)
            #expect(job.bytesDurable == Self.size)
            try await scope.steer(.retry, job.id)
            #expect(try await scope.end(of: job.id).state == .completed)
            #expect(server.requests.count == 1, "nothing is fetched again")
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }
}
