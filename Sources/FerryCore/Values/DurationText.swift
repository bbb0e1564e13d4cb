/// Durations as users type and read them.
public enum DurationText {
    /// The longest that is taken, in seconds: about 3,000 years.
    private static let limit: Int128 = 100_000_000_000
    private static let units: [(name: String, nanoseconds: Int128)] = [
        ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ]

    /// Reads a DURATION: `90s`, `10m`, `8h`, `2d`, `500ms`, `1.5h`, `1h30m`; a bare number is seconds.
    public static func parse(_ text: String) -> Duration? {
        var rest = Array(text.utf8)[...]
        var total: Int128 = 0
        guard !rest.isEmpty else { return nil }
        while !rest.isEmpty {
            let isFirst = rest.startIndex == 0
            guard let (number, tail) = DecimalNumber.read(rest) else { return nil }
            let name = String(decoding: tail.prefix(while: ASCII.isLetter), as: UTF8.self)
            rest = tail.drop(while: ASCII.isLetter)
            let isBare = name.isEmpty && isFirst && rest.isEmpty
            guard let unit = self.units.first(where: { $0.name == (isBare ? "s" : name) }) else { return nil }
            total += number.times(unit.nanoseconds)
            guard total <= self.limit * 1_000_000_000 else { return nil }
            if rest.first == 32, rest.count > 1 { rest = rest.dropFirst() }
        }
        return Duration(
            secondsComponent: Int64(total / 1_000_000_000),
            attosecondsComponent: Int64(total % 1_000_000_000) * 1_000_000_000
        )
    }

    /// For people, in at most two units: `2d 03h`, `1h 02m`, `3m 05s`, `12s`, `500ms`; below zero `0s`.
    public static func format(_ d: Duration) -> String {
        let (seconds, attoseconds) = d.components
        guard seconds > 0 || attoseconds > 0 else { return "0s" }
        switch seconds {
        case ..<1: return "\(attoseconds / 1_000_000_000_000_000)ms"
        case ..<60: return "\(seconds)s"
        case ..<3_600: return "\(seconds / 60)m \(pad(Int(seconds % 60), 2))s"
        case ..<86_400: return "\(seconds / 3_600)h \(pad(Int(seconds / 60 % 60), 2))m"
        default: return "\(seconds / 86_400)d \(pad(Int(seconds / 3_600 % 24), 2))h"
        }
    }
}
