/// Points in time as users type them.
public enum TimeText {
    /// Reads a TIME: RFC 3339, a date, `HH:MM`, or `+DURATION`.
    ///
    /// A date means its first minute and `HH:MM` the next time that a clock shows it, both in the caller's local
    /// time. A local time that a clock skips is taken an hour later, as mktime(3) does.
    ///
    /// - Parameters:
    ///   - text: What was typed.
    ///   - now: The present time.
    ///   - offset: Seconds by which local time is ahead of UTC at a moment.
    /// - Returns: Nil if it is none of these.
    public static func parse(_ text: String, now: Timestamp, offset: (Timestamp) -> Int) -> Timestamp? {
        if text.hasPrefix("+") { return DurationText.parse(String(text.dropFirst())).map { now + $0 } }
        if let time = Timestamp(rfc3339: text) { return time }
        if let midnight = Timestamp(rfc3339: "\(text)T00:00:00Z") { return self.utc(midnight, offset) }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2 else {
            return nil
        }
        let clock = String(repeating: "0", count: 2 - parts[0].utf8.count) + "\(parts[0]):\(parts[1])"
        for days in 0...1 {
            let day = now + .seconds(offset(now) + days * 86_400)
            let date = day.description.prefix(10)
            guard let local = Timestamp(rfc3339: "\(date)T\(clock):00Z") else { return nil }
            let time = self.utc(local, offset)
            if time > now { return time }
        }
        return nil
    }

    /// The moment at which a clock shows a local time, which is given as if it were UTC.
    private static func utc(_ local: Timestamp, _ offset: (Timestamp) -> Int) -> Timestamp {
        let guess = local + .seconds(-offset(local))
        return local + .seconds(-offset(guess))
    }
}
