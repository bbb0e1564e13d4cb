import Glibc

/// Ends the process when a stop takes too long: what is not done by then is done by the next start.
///
/// Nothing is lost: a job that is still `running` in the database goes back to the queue without having spent an
/// attempt, and what was written is proved by the progress board.
enum StopGuard {
    /// How long a stop may make bytes durable.
    static let syncing = Duration.milliseconds(2_500)
    /// How long a stop may take at all; the manual says five seconds.
    static let limit = Duration.milliseconds(4_500)

    /// Starts the guard; a process that has ended by itself takes it along.
    static func arm(_ log: ServiceLog, within limit: Duration = Self.limit) {
        _ = startThread("ferry-stop") {
            let (seconds, attoseconds) = limit.components
            var left = timespec(
                tv_sec: Int(seconds),
                tv_nsec: Int(attoseconds / 1_000_000_000)
            )
            var rest = left
            while nanosleep(&left, &rest) != 0 { left = rest }  // EINTR
            log.write(
                .warning,
                ["event": "stopped", "message": "the disk is slow; the next start makes up for it"]
            )
            _exit(0)
        }
    }
}
