import FerryTestSupport
import Glibc
import Testing

/// Lets the kernel's answers fail below the service, by strace; needs ptrace.
@Suite(.timeLimit(.minutes(5))) struct DiskFaultTests {
    /// A call on the partial, and the state that its failure leads to.
    struct Fault: Sendable, CustomTestStringConvertible {
        let call: String
        let error: String
        /// Which call of a thread fails.
        let when: Int
        /// How the attempt that meets it ends.
        let outcome: String

        var testDescription: String { "\(self.call) \(self.when): \(self.error)" }

        static let all: [Fault] =
            (1...5).map {
                Fault(call: "pwrite64", error: "ENOSPC", when: $0, outcome: "disk")
            }
            + (1...5).map {
                Fault(call: "pwrite64", error: "EIO", when: $0, outcome: "local-io")
            }
            + ["fdatasync", "fsync"].flatMap { call in
                [("EIO", "local-io"), ("ENOSPC", "disk")].map {
                    Fault(call: call, error: $0.0, when: 1, outcome: $0.1)
                }
            }
    }

    @Test(arguments: Fault.all)
    func `a failing disk never makes a wrong file`(fault: Fault) async throws {
        let object = TestObject(size: 34 << 20, seed: 19)
        let server = try ScriptedServer { request, _ in Reply.object(object, for: request) }
        try await withCrashScope { scope in
            let partial = "\(scope.target)/.object.bin.1.ferry-part"
            let inject = "inject=\(fault.call):error=\(fault.error):when=\(fault.when)"
            let daemon = try await scope.tracedDaemon(
                ["-P", partial, "-e", "trace=\(fault.call)", "-e", inject],
                into: scope.folder.file("trace")
            )
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            let met = try await scope.show(1) { !["queued", "running"].contains($0.state) }
            #expect(try scope.folder.text("trace").contains("(INJECTED)"), "nothing failed")
            // A job that waits for the disk looks again after five seconds: only the log tells how it was.
            #expect(try await scope.attempts(of: 1).first?.outcome == fault.outcome)
            if met.state == "completed" {
                #expect(fault.outcome == "disk")
                #expect(try object.matches("\(scope.target)/object.bin") == nil)
            } else {
                #expect(met.reason == fault.outcome)
                #expect(met.state == (fault.outcome == "disk" ? "waiting" : "failed"))
                #expect(met.bytesDurable < object.size || fault.call == "fsync")
            }

            // The next service has a healthy disk; what was committed is still true.
            try scope.probe.kill(SIGTERM)
            _ = try await daemon.waitForExit()
            let before = server.requests.count
            _ = try await scope.ferry("retry", "1")  // refused if it is done
            #expect(try await scope.ferry("wait", "1").status == 0)
            #expect(server.requests.dropFirst(before).allSatisfy { $0.rangeStart ?? 0 >= met.bytesDurable })
            #expect(try await scope.list().map(\.state) == ["completed"])
            #expect(try scope.targetNames == ["object.bin"])
            #expect(try object.matches("\(scope.target)/object.bin") == nil)
        }
    }

    /// File systems that cannot rename without replacing get a second name, then lose the first one.
    @Test(arguments: [nil, "linkat", "unlinkat"])
    func `a file system without exclusive renames gives one file as well`(killedIn call: String?) async throws
    {
        let object = TestObject(size: 300_000, seed: 31)
        let server = try ScriptedServer { request, _ in Reply.object(object, for: request) }
        try await withCrashScope { scope in
            let partial = "\(scope.target)/.object.bin.1.ferry-part"
            let kill = call.map { ["-e", "inject=\($0):signal=KILL"] } ?? []
            let daemon = try await scope.tracedDaemon(
                ["-P", partial, "-P", scope.target, "-e", "trace=renameat2,linkat,unlinkat"]
                    + ["-e", "inject=renameat2:error=EINVAL"] + kill,
                into: scope.folder.file("trace"),
                isFast: call == nil
            )
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            if call != nil {
                #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            }
            #expect(try await scope.ferry("wait", "1").status == 0)
            #expect(try scope.folder.text("trace").contains("renameat2"), "nothing failed")
            #expect(server.requests.count == 1)
            #expect(try await scope.list().map(\.state) == ["completed"])
            #expect(try scope.targetNames == ["object.bin"])
            #expect(try object.matches("\(scope.target)/object.bin") == nil)
        }
    }

    @Test(arguments: ["fdatasync", "pwrite64"], 1...5)
    func `a failing disk under the database forgets no job`(call: String, when: Int) async throws {
        let object = TestObject(size: 300_000, seed: 23)
        let server = try ScriptedServer { request, _ in Reply.object(object, for: request) }
        try await withCrashScope { scope in
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            let log = scope.folder.file("trace")
            let paths = ["", "-wal"].flatMap { ["-P", "\(scope.stateFolder)/jobs.db\($0)"] }
            let inject = "inject=\(call):error=EIO:when=\(when)"
            let daemon = try await self.startFaulty(
                scope,
                paths + ["-e", "trace=\(call)", "-e", inject],
                into: log
            )
            // The job may have to wait for the disk. That is over when a healthy service takes over.
            let met = try await scope.show(1) { !["queued", "running"].contains($0.state) || daemon == nil }
            if daemon != nil { #expect(["completed", "waiting", "failed"].contains(met.state)) }
            if try scope.targetNames.contains("object.bin") {
                #expect(try object.matches("\(scope.target)/object.bin") == nil)
            }
            #expect(try scope.folder.text("trace").contains("(INJECTED)"), "nothing failed")
            try scope.probe.kill(SIGTERM)
            _ = try await daemon?.waitForExit()

            _ = try await scope.ferry("retry", "1")  // refused if it is done
            #expect(try await scope.ferry("wait", "1").status == 0)
            #expect(try await scope.list().map(\.state) == ["completed"])
            #expect(try scope.targetNames == ["object.bin"])
            #expect(try object.matches("\(scope.target)/object.bin") == nil)
        }
    }

    /// Starts a daemon whose database fails; nil if it has refused to serve, with the documented status.
    private func startFaulty(
        _ scope: CrashScope,
        _ options: [String],
        into log: String
    ) async throws -> RunningTool? {
        do {
            return try await scope.tracedDaemon(options, into: log)
        } catch {
            let text = try scope.folder.text("trace")
            guard text.contains("(INJECTED)") else { throw error }
            return nil
        }
    }
}
