/// A point in wall time: milliseconds since 1970-01-01T00:00:00Z, as the database stores it.
public struct Timestamp: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// Milliseconds since the epoch, UTC, without leap seconds.
    public let milliseconds: Int64

    /// Wraps milliseconds since the epoch.
    public init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Makes the time of a civil UTC date; the parts are not checked for range, they add up.
    public init(year: Int, month: Int, day: Int, hour: Int = 0, minute: Int = 0, second: Int = 0) {
        let days = Timestamp.days(year: year, month: month, day: day)
        let seconds = Int64(days) * 86_400 + Int64(hour) * 3_600 + Int64(minute) * 60 + Int64(second)
        self.milliseconds = seconds * 1_000
    }

    /// Decodes the RFC 3339 text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = Timestamp(rfc3339: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an RFC 3339 time")
        }
        self = value
    }

    /// Encodes the RFC 3339 text in UTC.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.description)
    }

    /// Reads `2026-11-30T12:00:00Z`, with an optional fraction and any offset (RFC 3339 §5.6).
    public init?(rfc3339 text: String) {
        let bytes = Array(text.utf8)
        func number(_ at: Int, _ count: Int) -> Int? {
            guard at + count <= bytes.count else { return nil }
            var value = 0
            for byte in bytes[at..<at + count] {
                guard (48...57).contains(byte) else { return nil }
                value = value * 10 + Int(byte - 48)
            }
            return value
        }
        guard bytes.count >= 20, bytes[4] == 45, bytes[7] == 45, [84, 116, 32].contains(bytes[10]),
            bytes[13] == 58, bytes[16] == 58, let year = number(0, 4), let month = number(5, 2),
            let day = number(8, 2), let hour = number(11, 2), let minute = number(14, 2),
            let second = number(17, 2), (1...12).contains(month), (1...31).contains(day), hour < 24,
            minute < 60, second <= 60
        else { return nil }
        var index = 19
        var fraction: Int64 = 0
        if bytes[index] == 46 {
            index += 1
            var weight: Int64 = 100
            let first = index
            while index < bytes.count, (48...57).contains(bytes[index]) {
                fraction += Int64(bytes[index] - 48) * weight
                weight /= 10
                index += 1
            }
            guard index > first else { return nil }
        }
        guard index < bytes.count else { return nil }
        var offset: Int64 = 0
        switch bytes[index] {
        case 90, 122:
            guard index + 1 == bytes.count else { return nil }
        case 43, 45:
            guard index + 6 == bytes.count, bytes[index + 3] == 58, let hours = number(index + 1, 2),
                let minutes = number(index + 4, 2), hours < 24, minutes < 60
            else { return nil }
            offset = Int64(hours * 60 + minutes) * 60_000 * (bytes[index] == 43 ? 1 : -1)
        default:
            return nil
        }
        let base = Timestamp(
            year: year,
            month: month,
            day: day,
            hour: hour,
            minute: minute,
            second: second
        )
        let midnight = Timestamp(year: year, month: month, day: day)
        guard midnight.civil.date.day == day else { return nil }  // 30 February
        self.milliseconds = base.milliseconds + fraction - offset
        // An offset may lead out of the years that can be written.
        guard (0...9_999).contains(self.civil.date.year) else { return nil }
    }

    /// RFC 3339 in UTC with milliseconds: `2026-11-30T12:00:00.000Z`.
    public var description: String {
        let (date, time) = self.civil
        let fraction = Int((self.milliseconds % 1_000 + 1_000) % 1_000)
        return "\(pad(date.year, 4))-\(pad(date.month, 2))-\(pad(date.day, 2))T"
            + "\(pad(time.hour, 2)):\(pad(time.minute, 2)):\(pad(time.second, 2)).\(pad(fraction, 3))Z"
    }

    /// The UTC calendar date and time of day (proleptic Gregorian).
    public var civil: (date: (year: Int, month: Int, day: Int), time: (hour: Int, minute: Int, second: Int)) {
        let seconds = Int((self.milliseconds - ((self.milliseconds % 1_000 + 1_000) % 1_000)) / 1_000)
        let days = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
        let rest = seconds - days * 86_400
        return (Timestamp.date(days: days), (rest / 3_600, rest / 60 % 60, rest % 60))
    }

    /// The time `duration` later.
    public static func + (time: Timestamp, duration: Duration) -> Timestamp {
        let (seconds, attoseconds) = duration.components
        return Timestamp(
            milliseconds: time.milliseconds + seconds * 1_000 + attoseconds / 1_000_000_000_000_000
        )
    }

    /// The time from `earlier` to `later`; negative if they stand the other way.
    public static func - (later: Timestamp, earlier: Timestamp) -> Duration {
        .milliseconds(later.milliseconds - earlier.milliseconds)
    }

    /// Orders by time.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// Days from 1970-01-01 to a civil date: eras of 400 years that begin in March.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func date(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        let civilMonth = month < 10 ? month + 3 : month - 9
        return (yearOfEra + era * 400 + (civilMonth <= 2 ? 1 : 0), civilMonth, day)
    }
}

/// Decimal digits with leading zeros.
func pad(_ value: Int, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
}
