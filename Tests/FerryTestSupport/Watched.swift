import Dispatch
import Synchronization

/// A value behind a lock whose changes can be awaited, so that no test sleeps.
public final class Watched<Value: Sendable>: Sendable {
    private struct Waiter: Sendable {
        let id: UInt64
        /// What to run once the value fulfils the condition, nil as long as it does not.
        let attempt: @Sendable (Value) -> (@Sendable () -> Void)?
        let fail: @Sendable (any Error) -> Void
    }

    private struct State {
        var value: Value
        var waiters: [Waiter] = []
    }

    private let state: Mutex<State>
    private let ids = Atomic<UInt64>(0)

    /// Starts with a value.
    public init(_ value: Value) {
        self.state = Mutex(State(value: value))
    }

    /// The present value.
    public var value: Value {
        self.state.withLock { $0.value }
    }

    /// Changes the value and wakes those who waited for what it is now.
    @discardableResult
    public func update<Result: Sendable>(_ change: @Sendable (inout Value) -> Result) -> Result {
        let (result, ready) = self.state.withLock { state in
            let result = change(&state.value)
            var ready: [@Sendable () -> Void] = []
            let value = state.value
            state.waiters.removeAll { waiter in
                guard let action = waiter.attempt(value) else { return false }
                ready.append(action)
                return true
            }
            return (result, ready)
        }
        for action in ready { action() }
        return result
    }

    /// Waits until `condition` returns something for the value, and returns that.
    ///
    /// - Throws: ``TestSupportError`` naming `what` when the time is over; `CancellationError`.
    public func wait<Result: Sendable>(
        for what: String,
        timeout: Duration = .seconds(120),
        until condition: @escaping @Sendable (Value) -> Result?
    ) async throws -> Result {
        let id = self.ids.add(1, ordering: .relaxed).newValue
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<Result, any Error>) in
                self.add(
                    Waiter(
                        id: id,
                        attempt: { value in
                            guard let result = condition(value) else { return nil }
                            return { continuation.resume(returning: result) }
                        },
                        fail: { continuation.resume(throwing: $0) }
                    )
                )
                if Task.isCancelled { self.fail(id, CancellationError()) }
                DispatchQueue.global().asyncAfter(deadline: .now() + timeout.dispatchInterval) {
                    [weak self] in
                    self?.fail(id, TestSupportError("waited \(timeout) in vain for \(what)"))
                }
            }
        } onCancel: {
            self.fail(id, CancellationError())
        }
    }

    /// As ``wait(for:timeout:until:)``, but blocks the calling thread; nil when the time is over.
    public func waitBlocking<Result: Sendable>(
        timeout: Duration,
        until condition: @escaping @Sendable (Value) -> Result?
    ) -> Result? {
        let id = self.ids.add(1, ordering: .relaxed).newValue
        let arrived = DispatchSemaphore(value: 0)
        let box = ResultBox<Result>()
        self.add(
            Waiter(
                id: id,
                attempt: { value in
                    guard let result = condition(value) else { return nil }
                    return {
                        box.result.withLock { $0 = result }
                        arrived.signal()
                    }
                },
                fail: { _ in arrived.signal() }
            )
        )
        if arrived.wait(timeout: .now() + timeout.dispatchInterval) == .timedOut {
            self.fail(id, CancellationError())
            arrived.wait()
        }
        return box.result.withLock { $0 }
    }

    /// Runs the action that `condition` returns, once, as soon as it returns one.
    func whenever(_ condition: @escaping @Sendable (Value) -> (@Sendable () -> Void)?) {
        self.add(Waiter(id: self.ids.add(1, ordering: .relaxed).newValue, attempt: condition, fail: { _ in }))
    }

    private func add(_ waiter: Waiter) {
        let action = self.state.withLock { state in
            let action = waiter.attempt(state.value)
            if action == nil { state.waiters.append(waiter) }
            return action
        }
        action?()
    }

    /// Ends a wait; one that has ended already is left alone.
    private func fail(_ id: UInt64, _ error: any Error) {
        let waiter = self.state.withLock { state -> Waiter? in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
            return state.waiters.remove(at: index)
        }
        waiter?.fail(error)
    }
}

private final class ResultBox<Result: Sendable>: Sendable {
    let result = Mutex<Result?>(nil)
}

extension Duration {
    /// The same length for Dispatch.
    var dispatchInterval: DispatchTimeInterval {
        let (seconds, attoseconds) = self.components
        return .nanoseconds(Int(clamping: seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000))
    }
}
