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
        let index = self.next.wrappingAdd(1, ordering: .relaxed).oldValue
        let queue = self.queues[Int(index.magnitude % UInt(self.queues.count))]
        return try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }
}
