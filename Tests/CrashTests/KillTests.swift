import FerryTestSupport
import Glibc
import Testing

@testable import func FerryTestSupport.waitForEnd

/// Kills services and commands at any moment, as the kernel, a person or a power button would.
@Suite(.timeLimit(.minutes(5))) struct KillTests {
    private static let mebibyte: Int64 = 1 << 20
    private static let kills = 10

    @Test func `ten kills of the service cost no attempt and no committed byte`() async throws {
        let seed = UInt64.random(in: .min ... .max)
        print("kill loop: seed \(seed)")
        var random = SplitMix(state: seed)
        let object = TestObject(size: 64 * Self.mebibyte, seed: 11)
        // What each service gets before it is killed; one gets enough for a checkpoint by size.
        let portions = (0..<Self.kills).map { round in
            round == 8 ? 36 * Self.mebibyte : Int64.random(in: 1...(3 * Self.mebibyte), using: &random)
        }
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return number < portions.count ? reply.with(.stall(after: portions[number])) : reply
        }
        try await withCrashScope { scope in
            let get = try scope.startGet(server.url("object.bin"), "--attempts", "2")
            var committed: Int64 = 0
            var sent: Int64 = 0
            for (round, portion) in portions.enumerated() {
                let request = try await server.waitForRequests(round + 1)[round]
                #expect(request.rangeStart ?? 0 >= committed, "round \(round)")
                sent += portion
                try await server.waitForBytesSent(sent)
                // A checkpoint comes every two seconds: some services live to see one, the others do not.
                if round % 4 == 0 {
                    let end = (request.rangeStart ?? 0) + portion
                    _ = try await get.waitForLine { ProgressView(line: $0)?.bytesDurable == end }
                    committed = end
                }
                _ = try #require(try scope.probe.kill(), "round \(round): nobody serves")
            }
            let requests = try await server.waitForRequests(Self.kills + 1)
            #expect(requests[Self.kills].rangeStart ?? 0 >= committed)

            #expect(try await get.waitForExit().status == 0)
            print("kill loop: \(server.bytesSent) bytes were sent of an object of \(object.size)")
            #expect(server.bytesSent <= object.size + portions.reduce(0, +))
            #expect(server.requests.count == Self.kills + 1)
            let jobs = try await scope.list()
            #expect(jobs.map(\.id) == [1])
            #expect(jobs.map(\.state) == ["completed"])
            #expect(jobs.map(\.attempt) == [Self.kills + 1])
            #expect(try scope.targetNames == ["object.bin"])
            #expect(try object.matches("\(scope.target)/object.bin") == nil)
        }
    }

    @Test func `commands without a daemon go on with each other's services`() async throws {
        let slab: Int64 = 256 << 10
        let object = TestObject(size: 900_000, seed: 37)
        let server = try ScriptedServer { request, _ in
            let reply = Reply.object(object, for: request)
            return request.rangeStart ?? 0 < 2 * slab ? reply.with(.stall(after: slab)) : reply
        }
        let names = ["a.bin", "b.bin", "c.bin"]
        try await withCrashScope { scope in
            var gets: [RunningTool] = []
            for (number, name) in zip(1..., names) {
                gets.append(try scope.startGet(server.url(name)))
                try await scope.waitForPartial(number, of: name, size: slab)
            }
            gets[0].kill(SIGKILL)
            #expect(try await gets[0].waitForExit().ending == .signalled(SIGKILL))
            let left = try await scope.show(1) { $0.state != "running" }
            #expect(left.state == "queued")
            #expect(left.bytesDurable == slab)

            _ = try #require(try scope.probe.kill(), "nobody serves")
            for number in 2...3 {
                try await scope.waitForPartial(number, of: names[number - 1], size: 2 * slab)
            }
            _ = try #require(try scope.probe.kill(), "nobody serves")
            for (name, get) in zip(names, gets).dropFirst() {
                let result = try await get.waitForExit()
                #expect(result.status == 0)
                #expect(result.stderr.split(separator: "\n").count <= 1, "\(result.stderr)")
                #expect(try object.matches("\(scope.target)/\(name)") == nil)
                let starts = server.requests.filter { $0.path == "/\(name)" }.map(\.rangeStart)
                #expect(starts == [nil, slab, 2 * slab])
            }
            // The log tells of each service that owned the queue: one at a time, and no more than were needed.
            let log = try scope.folder.text("queue/ferryd.log")
            #expect(log.split(separator: "\n").filter { $0.contains("event=ready") }.count == 3)

            let kept = try await scope.show(1)
            #expect(kept.state == "queued")
            #expect(kept.bytesDurable == slab)
            #expect(server.requests.filter { $0.path == "/a.bin" }.count == 1)
        }
    }

    /// Less than a slab is written straight through; of more, the last part when the next checkpoint begins.
    @Test(arguments: [200_003, 1_300_003])
    func `a killed service fetches nothing again that was written`(size: Int64) async throws {
        let object = TestObject(size: 3 * Self.mebibyte, seed: 17)
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return number == 0 ? reply.with(.stall(after: size)) : reply
        }
        try await withCrashScope { scope in
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            let daemon = try await scope.readyDaemon()
            try await scope.waitForPartial(1, of: "object.bin", size: size)
            daemon.kill(SIGKILL)
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            try await Self.expectRest(of: object, from: size, server, scope)
        }
    }

    @Test func `what was written counts though nothing was ever committed`() async throws {
        let size: Int64 = 1_300_003
        let object = TestObject(size: 3 * Self.mebibyte, seed: 17)
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return number == 0 ? reply.with(.stall(after: size)) : reply
        }
        try await withCrashScope { scope in
            let daemon = try await scope.readyDaemon(dyingAt: "written")
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            // The first checkpoint comes after two seconds; the bytes take milliseconds.
            #expect(try scope.sizeOfPartial(1, of: "object.bin") == size)
            try await Self.expectRest(of: object, from: size, server, scope)
        }
    }

    @Test(arguments: [0, 100_000, 1_299_999] as [Int64])
    func `a partial that was changed while nobody served is fetched anew`(at offset: Int64) async throws {
        let size: Int64 = 1_300_003
        let object = TestObject(size: 3 * Self.mebibyte, seed: 17)
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return number == 0 ? reply.with(.stall(after: size)) : reply
        }
        try await withCrashScope { scope in
            let daemon = try await scope.readyDaemon(dyingAt: "checkpointed")
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            let file = open("\(scope.target)/.object.bin.1.ferry-part", O_RDWR)
            defer { close(file) }
            var byte = object.bytes(offset..<offset + 1)[0] ^ 1
            try #require(pwrite(file, &byte, 1, off_t(offset)) == 1)
            #expect(try await scope.ferry("wait", "1").status == 0)
            #expect(server.requests.map(\.rangeStart) == [nil, nil])
            #expect(try scope.targetNames == ["object.bin"])
            #expect(try object.matches("\(scope.target)/object.bin") == nil)
        }
    }

    @Test func `a digest that came as a trailer survives a kill`() async throws {
        let object = TestObject(size: 300_000, seed: 37)
        let digest = "sha-256=:\(String(repeating: "A", count: 43))=:"
        let server = try ScriptedServer { request, number in
            guard number == 0 else { return Reply.object(object, for: request) }
            return Reply(
                200,
                headers: ["Trailer: Repr-Digest", "ETag: \(object.etag)"],
                body: .sequence([
                    .bytes(Array("\(String(object.size, radix: 16))\r\n".utf8)),
                    .slice(object.changed(), 0..<object.size),
                    .bytes(Array("\r\n0\r\nRepr-Digest: \(digest)\r\n\r\n".utf8)),
                ]),
                declaredLength: .raw(["Transfer-Encoding: chunked"])
            )
        }
        try await withCrashScope { scope in
            let daemon = try await scope.readyDaemon(dyingAt: "body-ended")
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            #expect(try await daemon.waitForExit().ending == .signalled(SIGKILL))
            #expect(try await scope.ferry("wait", "1").status == 0)
            // Nothing is missing, but it is not what the trailer had named.
            #expect(server.requests.map(\.rangeStart) == [nil, object.size, nil])
            #expect(try object.matches("\(scope.target)/object.bin") == nil)
        }
    }

    /// The next service asks for exactly what is missing, and the file is right.
    private static func expectRest(
        of object: TestObject,
        from offset: Int64,
        _ server: ScriptedServer,
        _ scope: CrashScope
    ) async throws {
        #expect(try await scope.ferry("wait", "1").status == 0)
        #expect(server.requests.map(\.rangeStart) == [nil, offset])
        #expect(try scope.targetNames == ["object.bin"])
        #expect(try object.matches("\(scope.target)/object.bin") == nil)
    }

    @Test func `a killed command leaves its job queued and another's running`() async throws {
        let object = TestObject(size: 600_000, seed: 13)
        let gate = Gate()
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            guard number == 0 else { return reply }
            return reply.with(.stall(after: 300_000, until: request.path == "/other.bin" ? gate : nil))
        }
        try await withCrashScope { scope in
            let killed = try scope.startGet(server.url("killed.bin"))
            _ = try await server.waitForRequests(1)
            let service = try #require(try scope.probe.pid())
            let other = try scope.startGet(server.url("other.bin"))
            _ = try await server.waitForRequests(2)
            #expect(try scope.probe.pid() == service)
            for get in [killed, other] {
                _ = try await get.waitForLine { ProgressView(line: $0)?.bytesDone == 300_000 }
            }

            killed.kill(SIGKILL)
            #expect(try await killed.waitForExit().ending == .signalled(SIGKILL))
            let left = try await scope.show(1) { $0.state != "running" }
            #expect(left.state == "queued")
            #expect(left.bytesDurable == 300_000)
            #expect(try await scope.show(2).state == "running")
            #expect(try scope.probe.pid() == service)

            gate.open()
            #expect(try await other.waitForExit().status == 0)
            #expect(try object.matches("\(scope.target)/other.bin") == nil)
            #expect(waitForEnd(of: service, timeout: .seconds(30)), "the service stays without clients")

            #expect(try await scope.list().map(\.state) == ["queued", "completed"])
            #expect(server.requests.count == 2)
            let again = try scope.startGet(server.url("killed.bin"))
            #expect(try await again.waitForExit().status == 0)
            #expect(server.requests.last?.rangeStart == 300_000)
            #expect(try object.matches("\(scope.target)/killed.bin") == nil)
            #expect(try scope.targetNames == ["killed.bin", "other.bin"])
        }
    }
}

/// SplitMix64, so that a printed seed gives the same points again.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        self.state &+= 0x9e37_79b9_7f4a_7c15
        var z = self.state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
