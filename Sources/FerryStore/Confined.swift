import Dispatch

/// A value that only one serial queue touches, such as a connection.
///
/// Unchecked: `value` is read and written in blocks of `queue` alone, and set before the first of them.
final class Confined<Value>: @unchecked Sendable {
    private let queue: DispatchQueue
    private var value: Value

    init(_ label: String, _ value: sending Value) {
        self.queue = DispatchQueue(label: label)
        self.value = value
    }

    /// Runs a block on the queue, later.
    func async(_ body: @escaping @Sendable (inout Value) -> Void) {
        self.queue.async { body(&self.value) }
    }

    /// Runs a block on the queue after all that were given before, and waits for it.
    func sync(_ body: @Sendable (inout Value) -> Void) {
        self.queue.sync { body(&self.value) }
    }
}
