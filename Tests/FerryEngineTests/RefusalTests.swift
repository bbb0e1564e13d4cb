import FerryCore
import FerryFiles
import FerryStore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryEngine

/// A database that refuses for a while just when a wait is to end: no timer of the job's own would wake it.
@Suite(.timeLimit(.minutes(5))) struct RefusalTests {
    private static let object = TestObject(size: 1_000_000, seed: 50)

    /// Changes the database behind the store's back.
    private static func change(_ scope: EngineScope, _ statement: String) async throws {
        let script = """
            import sqlite3, sys
            sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None).execute(sys.argv[2])
            """
        let result = try await ToolRunner.program("python3")
            .run(["-c", script, scope.folder.file("state/jobs.db"), statement])
        try #require(result.status == 0, "\(result.stderr)")
    }

    /// Refuses that a job leaves `waiting`.
    private static let refuse = """
        CREATE TRIGGER refusal BEFORE UPDATE ON job WHEN old.state = 'waiting' AND new.state <> 'waiting'
        BEGIN SELECT raise(ABORT, 'refused'); END
        """
    private static let allow = "DROP TRIGGER refusal"
    /// Lets all statements about jobs fail, reading ones too.
    private static let hide = "ALTER TABLE job RENAME COLUMN wait_reason TO hidden"
    private static let show = "ALTER TABLE job RENAME COLUMN hidden TO wait_reason"

    @Test(arguments: [(refuse, allow), (hide, show)])
    func `there is room again, and the database refuses`(refuse: String, allow: String) async throws {
        let free = Mutex<Int64>(100_000)
        var calls = FileCalls.real
        calls.freeSpace = { _ in FreeSpace(place: "/full", device: 1, bytes: free.withLock { $0 }) }
        calls.fallocate = { descriptor, offset, length in
            guard free.withLock({ $0 >= length }) else {
                errno = ENOSPC
                return -1
            }
            return FileCalls.real.fallocate(descriptor, offset, length)
        }
        let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
        try await withEngine { [calls] _ in
            calls
        } _: { scope in
            let id = try await scope.add(server.url("file.bin"))
            let waiting = try await scope.next(id, .waiting, .failed)
            #expect(waiting.waitReason == .disk && waiting.nextTry == nil)
            await scope.waitForLook()
            try await Self.change(scope, refuse)
            free.withLock { $0 = 2_000_000 }
            for _ in 0..<3 { try await scope.passLook() }
            await scope.waitForLook()
            try await Self.change(scope, allow)
            #expect(try await scope.job(id).state == .waiting)
            try await scope.passLook()
            #expect(try await scope.next(id, .waiting, .completed, .failed).state == .completed)
        }
    }

    @Test func `a link has expired, and the database does not say whose`() async throws {
        let server = try ScriptedServer { request, number in
            guard request.path == "/old" else { return .object(Self.object, for: request) }
            return number == 0 ? .object(Self.object, for: request).with(.cut(after: 300_000)) : Reply(403)
        }
        try await withEngine(mode: .attached) { scope in
            let hang = try scope.folder.write("hang", "")
            let program = try scope.folder.write(
                "renew",
                "#!/bin/sh\nif test -e '\(hang)'; then rm '\(hang)'; sleep 1000; fi\necho '\(server.url("new"))'\n"
            )
            try #require(chmod(program, 0o755) == 0)
            let id = try await scope.add(server.url("old")) { $0.renew = program }
            try await scope.engine.attachAll(Engine.ClientKey(rawValue: 1))
            var job = try await scope.next(id, .waiting)
            while job.waitReason != .auth {
                try await scope.passWait(of: job)
                job = try await scope.next(id, .waiting)
            }
            while scope.folder.exists("hang") { await Task.yield() }
            // The next service finds it waiting, and a client comes when the database cannot be read.
            try await scope.restart()
            try await Self.change(scope, Self.hide)
            try await scope.engine.attachAll(Engine.ClientKey(rawValue: 2))
            try await Self.change(scope, Self.show)
            #expect(try await scope.job(id).waitReason == .auth)
            while try await !scope.job(id).state.isEnded {
                if let next = scope.clock.wakeTimes.first {
                    scope.clock.advance(by: scope.clock.now.duration(to: next))
                }
                await Task.yield()
            }
            #expect(try await scope.job(id).state == .completed)
            #expect(server.requests(for: "/new").last?.rangeStart == 300_000)
        }
    }
}
