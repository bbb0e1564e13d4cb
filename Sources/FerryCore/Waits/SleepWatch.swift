/// Notices that the machine has slept, from the time that its boot clock is ahead of its monotonic one.
///
/// The one counts while the machine sleeps, the other does not (clock_gettime(2)); nobody can set either.
public struct SleepWatch: Hashable, Sendable {
    /// A shorter sleep changes nothing for anybody.
    public static let shortest = Duration.seconds(5)

    private var slept: Duration

    /// Begins with what was slept before.
    public init(slept: Duration) {
        self.slept = slept
    }

    /// Takes the time slept since boot, and tells how long the machine has slept since the last call; nil if it has
    /// not.
    public mutating func look(slept: Duration) -> Duration? {
        let sleep = slept - self.slept
        guard sleep >= Self.shortest else { return nil }
        self.slept = slept
        return sleep
    }
}
