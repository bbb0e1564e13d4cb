import Dispatch
import Synchronization

/// A few threads for calls that wait for the disk, so that neither tasks nor the network loop do.
final class BlockingPool: Sendable {
    private let queues: [DispatchQueue]
    private let next = Atomic<Int>(0)

    /// Makes a pool that lets `width` calls wait at once.
    init(label: String, width: Int) {
        self.queues = (0..<width).map { DispatchQueue(label: "\(label).\($0)") }
    }

    /// Runs a closure on one of the threads and gives its result.
    func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            self.start { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Lets one of the threads run a closure, in its turn.
    func start(_ body: @escaping @Sendable () -> Void) {
        let index = self.next.wrappingAdd(1, ordering: .relaxed).oldValue
        self.queues[Int(index.magnitude % UInt(self.queues.count))].async(execute: body)
    }
}
