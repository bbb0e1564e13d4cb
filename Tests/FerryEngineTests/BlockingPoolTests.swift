import Testing

@testable import FerryEngine

/// Regression tests of the pool's threads.
@Suite struct BlockingPoolTests {
    private actor Caller {
        private let pool = BlockingPool(label: "ferry.test", width: 2)

        /// Ends the process where it goes on beside the actor.
        func call<Value: Sendable & Equatable>(_ value: Value) async throws -> Bool {
            let first = try await self.pool.run { value }
            self.preconditionIsolated()
            let second = try await self.pool.run { [value] }
            self.preconditionIsolated()
            return first == value && second == [value]
        }
    }

    /// An optimized build went on on no actor after a call: the engine crashed, or two of its tasks ran at once.
    @Test(.timeLimit(.minutes(1)))
    func `who has called from an actor goes on on it`() async throws {
        let caller = Caller()
        #expect(try await caller.call(1))
        #expect(try await caller.call("two"))
    }
}
