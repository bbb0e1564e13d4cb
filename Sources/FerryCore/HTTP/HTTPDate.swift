/// The dates of HTTP, always GMT (RFC 9110 §5.6.7).
public enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]

    /// Reads one of the three forms: IMF-fixdate, RFC 850, asctime.
    ///
    /// A wrong day name is no reason to reject, and second 60 is read as the next minute's first. A year of
    /// two digits is the latest one that is not more than 50 years after `now`.
    public static func parse(_ text: String, now: Timestamp) -> Timestamp? {
        guard text.utf8.count <= 64 else { return nil }
        var words = text.utf8.split(whereSeparator: { $0 == 44 || ASCII.isBlank($0) }).map(Array.init)
        guard let weekday = words.first, weekday.count >= 3, weekday.allSatisfy(ASCII.isLetter) else {
            return nil
        }
        words.removeFirst()
        if words.count == 3 {  // 06-Nov-94 08:49:37 GMT
            let date = words[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
            guard date.count == 3 else { return nil }
            words.replaceSubrange(0..<1, with: date.map(Array.init))
        } else if words.count == 4, let letter = words[0].first, ASCII.isLetter(letter) {
            words = [words[1], words[0], words[3], words[2], Array("GMT".utf8)]  // Nov 6 08:49:37 1994
        }
        guard words.count == 5, ["gmt", "utc"].contains(ASCII.lowercased(string(words[4]))) else {
            return nil
        }
        return self.time(day: words[0], month: words[1], year: words[2], clock: words[3], now: now)
    }

    /// IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`.
    public static func format(_ t: Timestamp) -> String {
        let (date, time) = t.civil
        let midnight = Timestamp(year: date.year, month: date.month, day: date.day)
        let days = Int(midnight.milliseconds / 86_400_000)
        let weekday = self.weekdays[(days % 7 + 7) % 7]
        return "\(weekday), \(pad(date.day, 2)) \(self.months[date.month - 1]) \(pad(date.year, 4)) "
            + "\(pad(time.hour, 2)):\(pad(time.minute, 2)):\(pad(time.second, 2)) GMT"
    }

    private static func time(
        day: [UInt8],
        month: [UInt8],
        year: [UInt8],
        clock: [UInt8],
        now: Timestamp
    ) -> Timestamp? {
        let parts = clock.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        let name = ASCII.lowercased(self.string(month))
        guard parts.count == 3, parts.allSatisfy({ $0.count == 2 }), day.count <= 2,
            let hour = ASCII.number(parts[0]), let minute = ASCII.number(parts[1]),
            let second = ASCII.number(parts[2]), hour < 24, minute < 60, second <= 60,
            let monthIndex = self.months.firstIndex(where: { ASCII.lowercased($0) == name }),
            let day = ASCII.number(day), day >= 1, year.count == 2 || year.count == 4,
            let written = ASCII.number(year)
        else { return nil }
        func moment(_ year: Int) -> Timestamp {
            Timestamp(
                year: year,
                month: monthIndex + 1,
                day: Int(day),
                hour: Int(hour),
                minute: Int(minute),
                second: Int(second)
            )
        }
        var fullYear = Int(written)
        if year.count == 2 {
            let limit = now.civil.date.year + 50
            fullYear += (limit - fullYear) / 100 * 100
            if fullYear == limit, moment(fullYear - 50) > now { fullYear -= 100 }
        }
        let midnight = Timestamp(year: fullYear, month: monthIndex + 1, day: Int(day))
        guard midnight.civil.date.day == Int(day) else { return nil }  // 30 February
        let time = moment(fullYear)
        return time.civil.date.year <= 9_999 ? time : nil  // its last second 60
    }

    private static func string(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
