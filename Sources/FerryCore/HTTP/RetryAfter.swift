/// The value of a `Retry-After` field (RFC 9110 §10.2.3).
public enum RetryAfter {
    /// The longest pause that is taken from a server; the policy's cap is applied on top.
    public static let limit = Duration.seconds(365 * 86_400)

    /// Reads seconds or a date; nil for rubbish, zero for what is over, at most a year.
    ///
    /// A date is measured against the answer's own `Date`, so that a skewed clock on either side does no harm.
    ///
    /// - Parameters:
    ///   - text: The field's value.
    ///   - responseDate: The `Date` field of the same answer, if it had a good one.
    ///   - now: Our own clock, used where there is no `responseDate`.
    /// - Returns: The pause, from zero to ``limit``.
    public static func parse(_ text: String, responseDate: Timestamp?, now: Timestamp) -> Duration? {
        let bytes = ASCII.trimmed(text.utf8)
        let isNegative = bytes.first == UInt8(ascii: "-")
        let digits = isNegative ? bytes.dropFirst() : bytes[...]
        if !digits.isEmpty, digits.allSatisfy(ASCII.isDigit) {
            guard !isNegative else { return .zero }
            let seconds = ASCII.number(digits.drop { $0 == UInt8(ascii: "0") }) ?? .max
            if digits.allSatisfy({ $0 == UInt8(ascii: "0") }) { return .zero }
            return seconds >= self.limit.components.seconds ? self.limit : .seconds(seconds)
        }
        guard let date = HTTPDate.parse(text, now: now) else { return nil }
        return min(max(date - (responseDate ?? now), .zero), self.limit)
    }
}
