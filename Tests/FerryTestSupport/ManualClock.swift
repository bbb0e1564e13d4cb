import Synchronization

/// A clock that stands still until a test moves it.
public final class ManualClock: Clock, Sendable {
    /// A point in time, counted from the clock's start.
    public struct Instant: InstantProtocol {
        /// The time since the clock's start.
        public var offset: Duration

        /// The instant so much later.
        public func advanced(by duration: Duration) -> Instant {
            Instant(offset: self.offset + duration)
        }

        /// The time from this instant to another.
        public func duration(to other: Instant) -> Duration {
            other.offset - self.offset
        }

        /// Whether one is earlier than the other.
        public static func < (left: Instant, right: Instant) -> Bool {
            left.offset < right.offset
        }
    }

    private struct State: Sendable {
        var now = Instant(offset: .zero)
        var sleepers: [UInt64: Instant] = [:]
        var lastID: UInt64 = 0
    }

    private let state = Watched(State())

    /// Makes a clock that shows zero.
    public init() {}

    /// The time that the clock shows.
    public var now: Instant {
        self.state.value.now
    }

    /// Every step counts.
    public var minimumResolution: Duration {
        .zero
    }

    /// The times at which sleepers will wake, earliest first.
    public var wakeTimes: [Instant] {
        self.state.value.sleepers.values.sorted()
    }

    /// Sleeps until a test has moved the clock that far; tolerance plays no part.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try Task.checkCancellation()
        let id = self.state.update { state in
            state.lastID += 1
            state.sleepers[state.lastID] = deadline
            return state.lastID
        }
        defer { self.state.update { $0.sleepers[id] = nil } }
        try await self.state.wait(for: "the clock to reach \(deadline.offset)", timeout: .seconds(600)) {
            state in
            state.now >= deadline ? () : nil
        }
    }

    /// Moves the clock and wakes all whose time has come.
    public func advance(by duration: Duration) {
        self.state.update { state in
            let now = state.now.advanced(by: duration)
            state.now = now
            state.sleepers = state.sleepers.filter { $0.value > now }
        }
    }

    /// Waits until at least so many sleep on this clock; their deadlines are in ``wakeTimes``.
    public func waitForSleepers(_ count: Int, timeout: Duration = .seconds(120)) async throws {
        try await self.state.wait(for: "\(count) sleepers", timeout: timeout) { state in
            state.sleepers.count >= count ? () : nil
        }
    }
}
