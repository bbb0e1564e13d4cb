import FerryCore
import Glibc

/// The caller's clock: local time as TZ and the system have it.
enum LocalTime {
    /// Seconds by which local time is ahead of UTC at a moment (localtime(3)).
    static func offset(at time: Timestamp) -> Int {
        var seconds = Int(time.milliseconds / 1_000)
        var parts = tm()
        tzset()
        return localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
    }

    /// Reads a TIME as a user types it; see ``TimeText``.
    static func parse(_ text: String) -> Timestamp? {
        TimeText.parse(text, now: .now, offset: Self.offset)
    }
}
