import FerryCore
import FerryTestSupport
import Glibc
import Testing

/// Kills the service in each gap between two effects, and lets the next one go on.
@Suite(.timeLimit(.minutes(5))) struct CrashPointTests {
    private static let mebibyte: Int64 = 1 << 20
    private static let slab: Int64 = 256 << 10

    /// What a job goes through on the way to a gap, and what it has behind it then.
    private enum Course {
        /// A download; the first body stops after so many bytes, nil flows to its end.
        case download(size: Int64, stop: Int64?, after: Recovered)
        /// A download that is cancelled on its way.
        case cancel
    }

    /// What the next service finds.
    private enum Recovered {
        /// Nothing is committed but the job.
        case nothing
        /// All that was written, which is not the whole: if not committed, the board has proved it.
        case beginning
        /// The file is known to be whole: no request is needed any more.
        case wholeFile
        /// The file has its name: the job is completed before anything runs.
        case publishedFile
    }

    private static func course(to point: CrashPoint) -> Course {
        func small(_ after: Recovered) -> Course { .download(size: 300_000, stop: nil, after: after) }
        // Large enough for a checkpoint on the way, and held so that it is not the last one.
        func large(_ after: Recovered) -> Course {
            .download(size: 36 * self.mebibyte, stop: 34 * self.mebibyte, after: after)
        }
        return switch point {
        case .jobCommitted, .claimed, .partialPlanned, .partialCreated, .partialCommitted: small(.nothing)
        case .written, .synced, .checkpointed: large(.beginning)
        case .bodyEnded, .fileSynced, .finishing: small(.wholeFile)
        case .renamed, .folderSynced, .completed: small(.publishedFile)
        case .cancelCommitted, .cancelUnlinked: .cancel
        // These have tests of their own.
        case .uploadSpooled, .uploadURLCommitted, .uploadOffsetKnown, .uploadOffsetCommitted, .uploadSent,
            .uploadAnswered, .uploadAbandoned:
            .cancel
        }
    }

    @Test(arguments: CrashPoint.allCases.filter { !$0.isOfUploads })
    func `a service killed in any gap is followed by one that finishes the job`(point: CrashPoint)
        async throws
    {
        switch Self.course(to: point) {
        case .download(let size, let stop, let after):
            try await self.download(killedAt: point.rawValue, size: size, stop: stop, after: after)
        case .cancel:
            try await self.cancel(killedAt: point, paused: false)
        }
    }

    @Test(arguments: ["written:2", "synced:2", "checkpointed:2"])
    func `what was written after an earlier checkpoint is not fetched again`(point: String) async throws {
        // More than may be written and not durable, so that one checkpoint cannot cover all of it.
        let size = 100 * Self.mebibyte
        try await self.download(killedAt: point, size: size, stop: size - Self.mebibyte, after: .beginning)
    }

    @Test(arguments: [CrashPoint.cancelCommitted, .cancelUnlinked])
    func `a paused job's cancelling survives a kill`(point: CrashPoint) async throws {
        try await self.cancel(killedAt: point, paused: true)
    }

    @Test(
        arguments: [
            CrashPoint.claimed, .partialPlanned, .partialCreated, .partialCommitted, .written, .synced,
            .fileSynced, .finishing,
        ]
    )
    func `being killed again and again spends no attempt and leaves no file behind`(
        point: CrashPoint
    ) async throws {
        let object = TestObject(size: 300_000, seed: 7)
        // What was written is kept: each service needs some bytes of its own to come to a write.
        let writes = point == .written || point == .synced
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return writes && number < 5 ? reply.with(.cut(after: 40_001)) : reply
        }
        try await withCrashScope { scope in
            #expect(try await scope.add(server.url("object.bin"), "--attempts", "1") == "1\n")
            // More often than an object may change under a download.
            for _ in 1...5 {
                let daemon = try scope.startDaemon(dyingAt: point.rawValue)
                #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            }
            #expect(try await scope.ferry("wait", "1").status == 0)
            if writes {
                let starts = server.requests.map { $0.rangeStart ?? 0 }
                #expect(starts == (0...5).map { Int64($0) * 40_001 })
            }
            try await Self.expectFinished(scope, object)
        }
    }

    // MARK: Courses

    private func download(killedAt point: String, size: Int64, stop: Int64?, after: Recovered) async throws {
        let object = TestObject(size: size, seed: 3)
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            guard number == 0, let stop else { return reply }
            return reply.with(.stall(after: stop))
        }
        try await withCrashScope { scope in
            let daemon = try await scope.readyDaemon(dyingAt: point)
            // Killed before it has said the number, the service is asked again by the command, and has the job.
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL), "\(point) was not reached")

            // Looking makes nothing run: this is what the crash has left.
            let before = server.requests.count
            let found = try await scope.show(1)
            #expect(server.requests.count == before)
            switch after {
            case .nothing: #expect(found.state == "queued" && found.bytesDurable == 0)
            case .beginning:
                #expect(found.state == "queued" && (1..<size).contains(found.bytesDurable))
                // Exactly what was written, but for a slab that the kill has caught half in the file.
                let left = try scope.sizeOfPartial(1, of: "object.bin")
                #expect((0..<Self.slab).contains(left - found.bytesDurable))
            case .wholeFile: #expect(found.state == "queued" && found.bytesDurable == size)
            case .publishedFile: #expect(found.state == "completed" && found.bytesDurable == size)
            }

            #expect(try await scope.ferry("wait", "1").status == 0)
            let asked = server.requests.dropFirst(before)
            switch after {
            case .nothing, .beginning:
                #expect(asked.count == 1)
                #expect(asked.first?.rangeStart ?? 0 == found.bytesDurable)
            case .wholeFile, .publishedFile:
                #expect(asked.isEmpty)
            }
            try await Self.expectFinished(scope, object)
        }
    }

    private func cancel(killedAt point: CrashPoint, paused: Bool) async throws {
        let object = TestObject(size: 600_000, seed: 5)
        let server = try ScriptedServer { request, _ in
            Reply.object(object, for: request).with(.stall(after: 300_000))
        }
        try await withCrashScope { scope in
            let daemon = try await scope.readyDaemon(dyingAt: point.rawValue)
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            try await server.waitForBytesSent(300_000)
            // The server's bytes can be in the kernel's buffers before the partial exists.
            while try scope.targetNames.isEmpty { _ = try await scope.show(1) }
            if paused {
                #expect(try await scope.ferry("pause", "1").status == 0)
                #expect(try await scope.show(1).state == "paused")
            }
            #expect(try scope.targetNames.count == 1, "there is no partial to remove")
            // The command asks the next service when this one dies under it.
            #expect(try await scope.ferry("cancel", "1").status == 0)
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL), "\(point) was not reached")

            #expect(try await scope.list().map(\.state) == ["cancelled"])
            #expect(try scope.targetNames == [])
            #expect(server.requests.count == 1)
        }
    }

    /// Exactly one job, completed, and exactly its file.
    private static func expectFinished(_ scope: CrashScope, _ object: TestObject) async throws {
        let jobs = try await scope.list()
        #expect(jobs.map(\.id) == [1])
        #expect(jobs.map(\.state) == ["completed"])
        #expect(jobs.map(\.path) == ["\(scope.target)/object.bin"])
        #expect(try scope.targetNames == ["object.bin"])
        #expect(try object.matches("\(scope.target)/object.bin") == nil)
    }
}
