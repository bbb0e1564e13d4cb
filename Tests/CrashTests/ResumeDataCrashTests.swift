import FerryTestSupport
import Glibc
import Testing

/// Kills the service while resume data are taken up, and lets the next one go on.
@Suite(.timeLimit(.minutes(5))) struct ResumeDataCrashTests {
    private static let object = TestObject(size: 900_000, seed: 8)
    private static let fetched: Int64 = 500_000

    @Test(arguments: ["job-committed", "claimed", "written", "file-synced", "finishing", "renamed"])
    func `an import survives a kill as one job with its offset`(point: String) async throws {
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request)
            return number == 0 ? reply.with(.stall(after: Self.fetched)) : reply
        }
        try await withCrashScope { scope in
            let file = scope.folder.file("x.json")
            let first = try await scope.readyDaemon()
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            try await scope.waitForPartial(1, of: "object.bin", size: Self.fetched)
            #expect(try await scope.ferry("cancel", "1", "--resume-data", file).status == 0)
            first.kill(SIGTERM)
            _ = try await first.waitForExit()

            let daemon = try await scope.readyDaemon(dyingAt: point)
            // The command asks the next service when this one dies under it, and gets the same job.
            let imported = try await scope.ferry("resume-data", "import", file)
            #expect(imported.stdout == "2\n", "\(imported.stderr)")
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL), "\(point) was not reached")
            #expect(try await scope.ferry("wait", "2").status == 0)
            #expect(try await scope.list().map(\.state) == ["cancelled", "completed"])
            #expect(try scope.targetNames == ["object.bin"])
            #expect(try Self.object.matches("\(scope.target)/object.bin") == nil)
            #expect(server.requests.dropFirst().allSatisfy { $0.rangeStart ?? 0 >= Self.fetched })
        }
    }
}
