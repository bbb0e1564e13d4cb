import FerryTestSupport
import Glibc
import Testing

/// Checks that everything is synced before something else relies on it; needs strace and ptrace.
@Suite(.timeLimit(.minutes(5))) struct SyncOrderTests {
    @Test(
        arguments: [
            // One checkpoint at the end; one on the way; a second connection after a broken one.
            (300_000, nil), (36 << 20, nil), (600_000, 300_000),
        ] as [(Int64, Int64?)]
    )
    func `a download syncs before it renames, and names before it commits`(size: Int64, cut: Int64?)
        async throws
    {
        let object = TestObject(size: size, seed: 17)
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            guard number == 0, let cut else { return reply }
            return reply.with(.cut(after: cut))
        }
        try await withCrashScope { scope in
            let log = scope.folder.file("trace")
            let daemon = try await scope.tracedDaemon(["-e", "trace=\(SyncTrace.calls)"], into: log)
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            #expect(try await scope.ferry("wait", "1").status == 0)
            try scope.probe.kill(SIGTERM)
            #expect(try await daemon.waitForExit().status == 0)

            let trace = SyncTrace(try scope.folder.text("trace"))
            #expect(trace.violations == [])
            // A small body has ended before its only checkpoint.
            if size == 300_000 { #expect(trace.dirtyCommits == []) }
            #expect(trace.renames == 1)
            #expect(trace.dataSyncs >= 2)
            #expect(trace.commits >= 4)
            #expect(try object.matches("\(scope.target)/object.bin") == nil)
        }
    }

    /// Traces with one step left out, and the rule that this breaks.
    private static let flawed: [(trace: [String], rule: String?)] = [
        (Self.steps, nil),
        (Self.steps.filter { !$0.contains("fsync(5") }, "R1"),
        (Self.steps.filter { $0 != Self.folderSync }, "R2"),
        (Array(Self.steps.prefix(9)), "R2"),
        (Self.steps.map { $0.contains("fsync(5") ? $0.replacing("= 0", with: "= -1 EIO") : $0 }, "R4"),
    ]

    private static let folderSync = "7 fsync(4</d>) = 0"
    private static let steps = [
        #"7 openat(4</d>, ".o.1.ferry-part", O_RDWR|O_CREAT|O_EXCL, 0600) = 5</d/.o.1.ferry-part>"#,
        Self.folderSync,
        "8 fdatasync(3</q/jobs.db-wal>) = 0",
        "7 pwrite64(5</d/.o.1.ferry-part>, \"\"..., 100, 0 <unfinished ...>",
        "8 fdatasync(3</q/jobs.db-wal>) = 0",
        "7 <... pwrite64 resumed>) = 100",
        "8 fdatasync(3</q/jobs.db-wal>) = 0",
        "7 fsync(5</d/.o.1.ferry-part>) = 0",
        #"7 renameat2(4</d>, ".o.1.ferry-part", 4</d>, "o", RENAME_NOREPLACE) = 0"#,
        Self.folderSync,
        "8 fdatasync(3</q/jobs.db-wal>) = 0",
    ]

    @Test(arguments: Self.flawed)
    func `the check of a trace finds a missing sync`(trace: [String], rule: String?) {
        let read = SyncTrace(trace.joined(separator: "\n"))
        #expect(read.dirtyCommits.count == 1)  // the commit between the write's begin and its sync
        let found = read.violations
        #expect(Set(found.map { String($0.prefix(2)) }).contains(rule ?? "") == (rule != nil))
        if rule == nil { #expect(found == []) }
    }
}
