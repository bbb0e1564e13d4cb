public import FerryCore
import Glibc

/// The clocks of the engine, injected so that tests decide what time it is.
public struct EngineTime: Sendable {
    /// Wall time, for what is shown and stored.
    public var now: @Sendable () -> Timestamp
    /// Time that only goes forward, from an arbitrary start, for rates and short waits.
    public var monotonic: @Sendable () -> Duration
    /// The same with the time that the machine slept: nobody sets it, so it tells when the wall clock was set.
    public var boottime: @Sendable () -> Duration
    /// Waits; throws when the task is cancelled.
    public var sleep: @Sendable (Duration) async throws -> Void
    /// Seconds by which local time is ahead of UTC at a moment, for calendars.
    public var localOffset: @Sendable (Timestamp) -> Int

    /// Makes a set of clocks; without `boottime` the machine never sleeps.
    public init(
        now: @escaping @Sendable () -> Timestamp,
        monotonic: @escaping @Sendable () -> Duration,
        boottime: (@Sendable () -> Duration)? = nil,
        sleep: @escaping @Sendable (Duration) async throws -> Void,
        localOffset: @escaping @Sendable (Timestamp) -> Int = { EngineTime.offset(at: $0) }
    ) {
        self.now = now
        self.monotonic = monotonic
        self.boottime = boottime ?? monotonic
        self.sleep = sleep
        self.localOffset = localOffset
    }

    /// The offset of the service's own time zone (localtime(3)).
    public static func offset(at time: Timestamp) -> Int {
        var seconds = Int(time.milliseconds / 1_000)
        var parts = tm()
        tzset()
        return localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
    }

    /// The machine's.
    public static let real = EngineTime(
        now: {
            let time = Self.read(CLOCK_REALTIME)
            return Timestamp(milliseconds: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000)
        },
        monotonic: {
            let time = Self.read(CLOCK_MONOTONIC)
            return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
        },
        boottime: {
            let time = Self.read(CLOCK_BOOTTIME)
            return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
        },
        sleep: { try await Task.sleep(for: $0) }
    )

    private static func read(_ clock: clockid_t) -> timespec {
        var time = timespec()
        clock_gettime(clock, &time)  // it cannot fail for these clocks
        return time
    }
}

extension EngineTime {
    /// How long the machine has slept since it booted (clock_gettime(2)).
    var slept: Duration { self.boottime() - self.monotonic() }
}
