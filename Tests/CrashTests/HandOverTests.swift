import FerryTestSupport
import Glibc
import Testing

/// Starts daemons while another service comes or goes.
@Suite(.timeLimit(.minutes(5))) struct HandOverTests {
    @Test func `a daemon waits for a service that is on its way out`() async throws {
        try await withCrashScope { scope in
            #expect(mkdir(scope.stateFolder, 0o700) == 0)
            // The owner of the lock closes a connection without a word, as one does that stops.
            let owner = open(scope.stateFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            #expect(flock(owner, LOCK_EX | LOCK_NB) == 0)
            let listener = try self.listen(scope.probe.socketPath)
            let daemon = try scope.startDaemon()
            var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            #expect(poll(&waiting, 1, 30_000) == 1, "the daemon asks nobody")
            unlink(scope.probe.socketPath)
            close(listener)
            close(owner)
            _ = try await daemon.waitForLine(in: .stderr) { $0.contains("event=ready") }
            #expect(try scope.probe.kill(SIGTERM) != nil)
            #expect(try await daemon.waitForExit().status == 0)
        }
    }

    @Test func `a daemon takes the queue over from the service of a running command`() async throws {
        let object = TestObject(size: 600_000, seed: 29)
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return number == 0 ? reply.with(.stall(after: 300_000)) : reply
        }
        try await withCrashScope { scope in
            let get = try scope.startGet(server.url("object.bin"))
            _ = try await get.waitForLine { ProgressView(line: $0)?.bytesDone == 300_000 }
            let before = try scope.probe.pid()
            let daemon = try await scope.readyDaemon()
            #expect(try scope.probe.pid() != before)
            let result = try await get.waitForExit()
            #expect(result.status == 0, "\(result.stderr)")
            // The command may start another service in between, which is asked for the queue in its turn, maybe
            // before its first byte: each goes on after the last byte that there is.
            let starts = server.requests.map { $0.rangeStart ?? 0 }
            #expect(starts.prefix(2) == [0, 300_000])
            #expect(zip(starts, starts.dropFirst()).allSatisfy { $0 <= $1 }, "\(starts)")
            #expect(try object.matches("\(scope.target)/object.bin") == nil)

            // A second daemon is refused, and leaves the first one alone.
            #expect(try await scope.startDaemon().waitForExit().status == 10)
            #expect(!daemon.hasEnded)
        }
    }

    @Test func `a command leaves the queue to a daemon that is about to take it`() async throws {
        let object = TestObject(size: 1_000, seed: 29)
        let server = try ScriptedServer { request, _ in Reply.object(object, for: request) }
        try await withCrashScope { scope in
            #expect(mkdir(scope.stateFolder, 0o700) == 0)
            let heir = open("\(scope.stateFolder)/daemon.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            #expect(flock(heir, LOCK_EX | LOCK_NB) == 0)
            let refused = try await scope.service.run(["--on-demand", "--state-dir", scope.stateFolder])
            #expect(refused.status == 10 && refused.stderr.contains("a daemon owns"), "\(refused.stderr)")
            close(heir)

            let daemon = try await scope.readyDaemon()
            let get = try scope.startGet(server.url("object.bin"))
            #expect(try await get.waitForExit().status == 0)
            #expect(try scope.probe.pid() == daemon.pid)
        }
    }

    private func listen(_ path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0, Glibc.listen(descriptor, 1) == 0 else {
            throw TestSupportError("cannot listen at \(path)")
        }
        return descriptor
    }
}
