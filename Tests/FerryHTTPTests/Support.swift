import FerryCore
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTP

/// Runs a test with a network loop that is stopped at the end.
func withLoop<Result>(_ body: (NetworkLoop) async throws -> Result) async throws -> Result {
    let loop = try NetworkLoop(userAgent: "ferry-test")
    do {
        let result = try await body(loop)
        await loop.stop()
        return result
    } catch {
        await loop.stop()
        throw error
    }
}

extension NetworkLoop {
    /// Sends a request and takes all of its body.
    func fetch(_ request: HTTPRequest) async throws -> (head: ResponseHead, body: [UInt8], end: ExchangeEnd) {
        let exchange = self.open(request)
        let head = try await exchange.head()
        let sink = RecordingSink()
        exchange.receive(into: sink)
        let end = await exchange.end()
        return (head, sink.bytes, end)
    }

    /// How a request ends.
    func end(of request: HTTPRequest) async -> ExchangeEnd {
        let exchange = self.open(request)
        if (try? await exchange.head()) != nil { exchange.receive(into: RecordingSink()) }
        return await exchange.end()
    }
}

/// Keeps what it takes; a test decides on each delivery.
final class RecordingSink: BodySink {
    private let taken = Mutex<[UInt8]>([])
    private let count = Watched(0)
    private let decide: @Sendable (UnsafeRawBufferPointer) -> SinkAnswer

    init(_ decide: @escaping @Sendable (UnsafeRawBufferPointer) -> SinkAnswer = { _ in .taken }) {
        self.decide = decide
    }

    var bytes: [UInt8] { self.taken.withLock { $0 } }

    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        let answer = self.decide(bytes)
        guard answer == .taken else { return answer }
        let copy = Array(bytes)
        self.taken.withLock { $0 += copy }
        self.count.update { $0 += copy.count }
        return answer
    }

    func waitForBytes(_ wanted: Int) async throws {
        try await self.count.wait(for: "\(wanted) bytes") { $0 >= wanted ? () : nil }
    }
}

/// A generator whose seed a failing test shows.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        self.state = seed
    }

    /// SplitMix64.
    mutating func next() -> UInt64 {
        self.state &+= 0x9e37_79b9_7f4a_7c15
        var z = self.state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
