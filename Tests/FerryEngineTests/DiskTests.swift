import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryEngine

/// What becomes of a job when the disk does not do what it should; one after the other, for there are many.
@Suite(.serialized, .timeLimit(.minutes(10))) struct DiskTests {
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

        /// Whether all of them have failed.
        var hasStruck: Bool { self.calls.load(ordering: .relaxed) >= self.failing.upperBound }

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

    /// A call that fails once.
    struct Fault: Sendable, CustomTestStringConvertible {
        /// A call on the partial or its folder.
        enum Call: Sendable, CaseIterable {
            case pwrite, fdatasync, fsync
        }
        let call: Call
        let code: Int32
        var testDescription: String { "\(self.call): \(self.code == EIO ? "EIO" : "ENOSPC")" }

        static let all = Call.allCases.flatMap { call in [EIO, ENOSPC].map { Fault(call: call, code: $0) } }
    }

    /// Each try brings some bytes, in several writes, with a sync at its end and one of the inode.
    @Test(arguments: Fault.all)
    func `a disk that fails once costs no durable byte and makes no wrong file`(fault: Fault) async throws {
        for k in 1...20 { try await self.fetch(fault, failing: k) }
    }

    private func fetch(_ fault: Fault, failing k: Int) async throws {
        let failure = Failure(k...k, fault.code)
        let server = try ScriptedServer { request, _ in
            let reply = Reply.object(Self.object, for: request)
            return failure.hasStruck ? reply : reply.with(.cut(after: 45_000))
        }
        var calls = FileCalls.real
        switch fault.call {
        case .pwrite: calls.pwrite = { failure.strikes() ? -1 : FileCalls.real.pwrite($0, $1, $2, $3) }
        case .fdatasync: calls.fdatasync = { failure.strikes() ? -1 : FileCalls.real.fdatasync($0) }
        case .fsync: calls.fsync = { failure.strikes() ? -1 : FileCalls.real.fsync($0) }
        }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("file.bin"))
            var durable: Int64 = 0
            var ranges: [Int64?] = [nil]
            while true {
                let job = try await scope.next(id, .waiting, .failed, .completed)
                // Where nothing is there but an empty partial, it is made again.
                #expect(job.bytesDurable >= durable)
                durable = job.bytesDurable
                if job.state == .completed { break }
                if durable < Self.size { ranges.append(durable == 0 ? nil : durable) }
                if job.state == .failed {
                    #expect(job.failureReason == .localIO && fault.code == EIO)
                    try await scope.steer(.retry, id)
                } else {
                    #expect(job.waitReason == .retry || fault.code == ENOSPC)
                    try await scope.passWait(of: job)
                }
            }
            #expect(failure.hasStruck)
            #expect(server.ranges == ranges, "\(k)")
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            // A name that could not be made durable is not taken back.
            let names = try scope.names.filter { $0.hasSuffix(".bin") }
            #expect(names == ["file.bin"])
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

    /// The next attempt did not know its own file, fetched everything again and made a `file (2).bin`.
    @Test(arguments: [EIO, ENOSPC])
    func `a folder that cannot be synced after the rename leaves the file for the next try`(code: Int32)
        async throws
    {
        let failure = Failure(1...1, code)
        let renames = Failure(1...1, 0)
        let server = try self.server()
        var calls = FileCalls.real
        calls.renameNoReplace = {
            _ = renames.strikes()  // counts only
            return FileCalls.real.renameNoReplace($0, $1, $2)
        }
        calls.fsync = { renames.hasStruck && failure.strikes() ? -1 : FileCalls.real.fsync($0) }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("file.bin"))
            let job = try await scope.next(id, .waiting, .failed, .completed)
            #expect(job.bytesDurable == Self.size)
            if code == EIO {
                #expect(job.failureReason == .localIO)
                try await scope.steer(.retry, id)
            } else {
                #expect(job.waitReason == .disk)
                try await scope.passWait(of: job)
            }
            let done = try await scope.end(of: id)
            #expect(done.state == .completed)
            #expect(done.path == scope.folder.file("data/file.bin"))
            #expect(server.requests.count == 1, "nothing is fetched again")
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }
}
