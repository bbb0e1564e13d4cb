import FerryTestSupport
import Glibc
import Testing

/// Cuts the power of a real file system under a working service, and lets the next one go on.
///
/// `Tests/Benchmarks/power-cut.py` does the same at random moments, a hundred times and on xfs too.
@Suite(
    .enabled(if: LoopDisk.isPossible, "mounting needs root and loop devices"),
    .timeLimit(.minutes(2))
)
struct PowerCutTests {
    private static let mebibyte: Int64 = 1 << 20
    private static let object = TestObject(size: 40 * mebibyte, seed: 23)

    /// What a command has been told when the power goes.
    enum Told: String, CaseIterable, Sendable {
        case number, durableBytes, completed, cancelled
    }

    @Test(arguments: Told.allCases)
    func `what was told before a power cut is true after it`(told: Told) async throws {
        let object = Self.object
        // The first body stops short of a second checkpoint, so that bytes are written and not yet durable.
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(object, for: request)
            return number == 0 && told != .completed ? reply.with(.stall(after: 36 * Self.mebibyte)) : reply
        }
        try await withLoopDisk { scope, disk in
            let daemon = try await scope.readyDaemon()
            #expect(try await scope.add(server.url("object.bin")) == "1\n")
            var durable: Int64 = 0
            switch told {
            case .number:
                break
            case .durableBytes:
                durable = try await scope.show(1) { $0.bytesDurable > 0 }.bytesDurable
            case .completed:
                _ = try await scope.show(1) { $0.state == "completed" }
            case .cancelled:
                _ = try await scope.show(1) { $0.bytesDurable > 0 }
                #expect(try await scope.ferry("cancel", "1").status == 0)
            }
            try disk.cut()
            daemon.kill(SIGKILL)
            _ = try await daemon.waitForExit()
            let before = server.requests.count
            try await disk.boot()

            let names = try scope.targetNames.filter { !$0.hasPrefix(".") }
            if told == .number || told == .durableBytes { #expect(names == []) }
            let next = try await scope.readyDaemon()
            let ended = try await scope.show(1) { ["completed", "cancelled"].contains($0.state) }
            #expect(ended.state == (told == .cancelled ? "cancelled" : "completed"))
            #expect(try await scope.list().map(\.id) == [1])
            #expect(try scope.targetNames == (told == .cancelled ? [] : ["object.bin"]))
            if told != .cancelled { #expect(try object.matches("\(scope.target)/object.bin") == nil) }
            let requests = server.requests.dropFirst(before)
            #expect(requests.allSatisfy { $0.rangeStart ?? 0 >= durable })
            if told == .completed || told == .cancelled { #expect(requests.isEmpty) }
            next.kill(SIGTERM)
            _ = try await next.waitForExit()
        }
    }
}
