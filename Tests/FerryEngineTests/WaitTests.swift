import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryEngine

/// A machine whose network comes and goes as a test says.
private final class TestMachine: Sendable {
    private let connected = Mutex(true)
    private let changes = AsyncStream.makeStream(of: Void.self)

    var isConnected: Bool {
        get { self.connected.withLock { $0 } }
        set { self.connected.withLock { $0 = newValue } }
    }

    /// Tells that something was added.
    func change() { self.changes.continuation.yield() }

    var machine: Machine {
        Machine(
            hasRoute: { _ in self.isConnected },
            hasNetwork: { self.isConnected },
            answersNames: { self.isConnected },
            networkChanges: { self.changes.stream }
        )
    }
}

extension ScriptedServer {
    /// A URL that leads to this machine and does not look like it (ip(7), INADDR_ANY).
    fileprivate func remoteURL(_ path: String) -> String {
        self.url(path).replacing("localhost", with: "0.0.0.0")
    }
}

extension String {
    fileprivate func replacing(_ old: String, with new: String) -> String {
        self.split(separator: "/", omittingEmptySubsequences: false)
            .map { $0.hasPrefix(old) ? new + $0.dropFirst(old.count) : String($0) }
            .joined(separator: "/")
    }
}

/// What waits for the network, and for the machine to wake.
@Suite(.timeLimit(.minutes(5))) struct NetworkWaitTests {
    private static let object = TestObject(size: 1_000_000, seed: 6)

    /// A server that drops the first connections, as if the line had broken.
    private func server(dropping count: Int) throws -> ScriptedServer {
        try ScriptedServer { request, _ in
            let reply = Reply.object(Self.object, for: request)
            return request.index < count ? reply.with(.closeBeforeHead) : reply
        }
    }

    @Test func `without a network a job waits for it, no try is spent, and a new route wakes it at once`()
        async throws
    {
        let machine = TestMachine()
        machine.isConnected = false
        let server = try self.server(dropping: 1)
        try await withEngine(machine: machine.machine) { scope in
            let start = scope.now
            let id = try await scope.add(server.remoteURL("file.bin")) {
                $0.attempts = 1
                $0.allowHTTP = true
            }
            let waiting = try await scope.next(id, .waiting, .failed)
            #expect(waiting.waitReason == .network)
            #expect(waiting.nextTry == start + .seconds(30))
            #expect(waiting.message == "no network: 0.0.0.0 cannot be reached")
            #expect(waiting.transientTries == 0 && waiting.forgivenAttempts == 1)
            machine.isConnected = true
            machine.change()
            #expect(try await scope.next(id, .waiting, .failed, .completed).state == .completed)
            #expect(scope.now == start)
        }
    }

    @Test func `without an event a look each thirty seconds is the proof`() async throws {
        let machine = TestMachine()
        machine.isConnected = false
        let server = try self.server(dropping: 3)
        try await withEngine(machine: machine.machine) { scope in
            let start = scope.now
            let job = try await scope.fetch(server.remoteURL("file.bin")) { $0.allowHTTP = true }
            #expect(job.state == .completed, "that there seems to be no network forbids no try")
            #expect(job.attempts == 4)
            #expect(scope.now == start + .seconds(30 + 30 + 60))
        }
    }

    @Test func `one job of a host looks, and the others follow its answer`() async throws {
        let machine = TestMachine()
        machine.isConnected = false
        let server = try self.server(dropping: 3)
        try await withEngine(machine: machine.machine) { scope in
            var ids: [JobID] = []
            for name in ["a", "b", "c"] {
                ids.append(try await scope.add(server.remoteURL(name)) { $0.allowHTTP = true })
            }
            for id in ids { #expect(try await scope.next(id, .waiting).waitReason == .network) }
            try await scope.passWait(of: scope.job(ids[0]))
            for id in ids {
                while try await scope.next(id, .waiting, .completed).state != .completed {}
            }
            #expect(server.requests.count == 6)
            #expect(scope.now <= Timestamp(milliseconds: 1_800_000_000_000) + .seconds(31))
        }
    }

    @Test func `with a network a broken line is a try`() async throws {
        let machine = TestMachine()
        let server = try self.server(dropping: 1)
        try await withEngine(machine: machine.machine) { scope in
            let id = try await scope.add(server.remoteURL("file.bin")) { $0.allowHTTP = true }
            let waiting = try await scope.next(id, .waiting)
            #expect(waiting.waitReason == .retry)
            #expect(waiting.transientTries == 1)
        }
    }

    @Test func `a server on this machine needs no network`() async throws {
        let machine = TestMachine()
        machine.isConnected = false
        let server = try self.server(dropping: 1)
        try await withEngine(machine: machine.machine) { scope in
            let id = try await scope.add(server.url("file.bin"))
            #expect(try await scope.next(id, .waiting).waitReason == .retry)
        }
    }

    @Test func `what the machine's sleep has ended goes on, and no try is spent`() async throws {
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request)
            return number == 0 ? reply.with(.stall(after: 300_000)) : reply
        }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) {
                $0.attempts = 1
                $0.stallTimeout = .seconds(600)
            }
            try await scope.waitForBytes(300_000, of: id)
            try await scope.sleep(for: .seconds(3_600))
            let job = try await scope.next(id, .waiting, .failed, .completed)
            #expect(job.state == .completed)
            #expect(job.attempts == 2)
            #expect(server.ranges == [nil, 300_000])
            #expect(try await scope.events(of: id, "interrupted").count == 1)
        }
    }
}

/// A job whose transfer says nothing any more.
@Suite(.timeLimit(.minutes(5))) struct StalledJobTests {
    private static let object = TestObject(size: 1_000_000, seed: 7)

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let fault: Fault
        let kept: Int64
        let phase: ExchangePhase
    }

    @Test(arguments: [
        Case(testDescription: "accepts, and nothing", fault: .hold(Gate()), kept: 0, phase: .answer),
        Case(testDescription: "a head, and nothing", fault: .stall(after: 0), kept: 0, phase: .body),
        Case(testDescription: "99 %", fault: .stall(after: 990_000), kept: 990_000, phase: .body),
        Case(
            testDescription: "a trickle",
            fault: .trickle(chunk: 1, every: .milliseconds(250)),
            kept: 1,
            phase: .body
        ),
    ])
    func `the watchdog ends it, a try is spent, and the bytes are kept`(item: Case) async throws {
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request)
            return number == 0 ? reply.with(item.fault) : reply
        }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin")) { $0.stallTimeout = .seconds(1) }
            let waiting = try await scope.next(id, .waiting, .failed)
            #expect(waiting.waitReason == .retry)
            #expect(waiting.transientTries == 1)
            #expect(waiting.message?.hasSuffix("while \(item.phase.text)") == true)
            #expect(waiting.message?.hasPrefix("localhost: ") == true)
            #expect(waiting.bytesDurable >= item.kept && waiting.bytesDurable < Self.object.size)
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, waiting.bytesDurable == 0 ? nil : waiting.bytesDurable])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `the job's own limit of tries holds for stalls`() async throws {
        let server = try script([{ .object(Self.object, for: $0).with(.hold(Gate())) }])
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin")) {
                $0.attempts = 2
                $0.stallTimeout = .milliseconds(300)
            }
            #expect(job.state == .failed)
            #expect(job.failureReason == .gaveUp)
            #expect(server.requests.count == 2)
        }
    }
}

/// What waits for room on a disk.
@Suite(.timeLimit(.minutes(5))) struct DiskWaitTests {
    private static let object = TestObject(size: 1_000_000, seed: 8)

    /// Two disks of which one can be full.
    private final class Disks: Sendable {
        let free = Mutex<Int64>(100_000)
        let asked = Watched(0)

        var calls: FileCalls {
            var calls = FileCalls.real
            calls.freeSpace = { path in
                self.asked.update { count in count += 1 }
                return path.hasSuffix("/other")
                    ? FreeSpace(place: "/other", device: 2, bytes: .max)
                    : FreeSpace(place: "/full", device: 1, bytes: self.free.withLock { $0 })
            }
            calls.fallocate = { descriptor, offset, length in
                var link = [CChar](repeating: 0, count: 4_096)
                let count = readlink("/proc/self/fd/\(descriptor)", &link, link.count)
                let bytes = link.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
                let path = String(decoding: bytes, as: UTF8.self)
                guard path.contains("/other/") || self.free.withLock({ free in free >= length }) else {
                    errno = ENOSPC
                    return -1
                }
                return FileCalls.real.fallocate(descriptor, offset, length)
            }
            return calls
        }
    }

    private func server() throws -> ScriptedServer {
        try ScriptedServer { request, _ in .object(Self.object, for: request) }
    }

    @Test func `jobs of the full disk wait until there is room, and those of another run on`() async throws {
        let disks = Disks()
        let server = try self.server()
        try await withEngine(calls: { _ in disks.calls }) { scope in
            let id = try await scope.add(server.url("one.bin")) { $0.attempts = 1 }
            let waiting = try await scope.next(id, .waiting, .failed)
            #expect(waiting.waitReason == .disk)
            #expect(waiting.nextTry == nil)
            #expect(waiting.message == "no space left on /full: 976.6 KiB needed, 97.7 KiB free")
            let second = try await scope.add(server.url("two.bin"))
            #expect(try await scope.next(second, .waiting, .failed).waitReason == .disk)
            let folder = try scope.folder.makeFolder("other")
            let other = try await scope.fetch(server.url("three.bin")) { $0.directory = folder }
            #expect(other.state == .completed)
            // Looks bring no request.
            let requests = server.requests.count
            disks.free.withLock { $0 = 200_000 }
            for _ in 0..<3 { try await scope.passLook() }
            await scope.waitForLook()
            #expect(try await scope.job(id).message?.contains("195.3 KiB free") == true)
            #expect(server.requests.count == requests)
            // There is room for one of them.
            disks.free.withLock { $0 = 1_500_000 }
            try await scope.passLook()
            #expect(try await scope.next(id, .waiting, .completed, .failed).state == .completed)
            await scope.waitForLook()
            #expect(try await scope.job(second).state == .waiting)
            disks.free.withLock { $0 = 2_500_000 }
            try await scope.passLook()
            #expect(try await scope.next(second, .waiting, .completed, .failed).state == .completed)
            #expect(try Self.object.matches(scope.folder.file("data/two.bin")) == nil)
        }
    }

    @Test func `the wait for room survives the service`() async throws {
        let disks = Disks()
        let server = try self.server()
        try await withEngine(calls: { _ in disks.calls }) { scope in
            let id = try await scope.add(server.url("one.bin"))
            _ = try await scope.next(id, .waiting)
            try await scope.restart()
            #expect(try await scope.job(id).waitReason == .disk)
            disks.free.withLock { $0 = 2_000_000 }
            try await scope.passLook()
            #expect(try await scope.next(id, .waiting, .completed, .failed).state == .completed)
        }
    }

    @Test func `a disk that refuses although there is room is tried more and more rarely`() async throws {
        var calls = FileCalls.real
        calls.freeSpace = { _ in FreeSpace(place: "/", device: 1, bytes: .max) }
        calls.fallocate = { _, _, _ in
            errno = EDQUOT
            return -1
        }
        let server = try self.server()
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("one.bin")) { $0.attempts = 1 }
            for seconds in [5, 10, 20] {
                let waiting = try await scope.next(id, .waiting, .failed)
                #expect(waiting.waitReason == .disk)
                #expect(waiting.nextTry == scope.now + .seconds(seconds))
                #expect(waiting.message?.contains("quota") == true)
                try await scope.passWait(of: waiting)
            }
        }
    }

    @Test(arguments: [EROFS, EIO])
    func `a disk that cannot be written at all fails the job, with advice`(code: Int32) async throws {
        var calls = FileCalls.real
        calls.pwrite = { _, _, _, _ in
            errno = code
            return -1
        }
        let server = try self.server()
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let job = try await scope.fetch(server.url("one.bin"))
            #expect(job.state == .failed)
            #expect(job.failureReason == .localIO)
            #expect(job.advice?.contains("ferry retry \(job.id)") == true)
        }
    }
}
