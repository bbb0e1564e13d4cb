/// The value of a `Content-Range` field in the unit `bytes` (RFC 9110 §14.4).
///
/// Only valid values exist: first ≤ last < total. What breaks that rule must not be combined with anything.
public enum ContentRange: Hashable, Sendable {
    /// `bytes FIRST-LAST/TOTAL`; the total is nil for `*`.
    case satisfied(first: Int64, last: Int64, total: Int64?)
    /// `bytes */TOTAL`, in a 416.
    case unsatisfied(total: Int64)

    /// Reads the field's value; nil for another unit, a sign, a comma, more than 18 digits or a broken order.
    ///
    /// The unit is compared without case, and more than one space may follow it; nothing else is forgiven.
    public init?(_ text: String) {
        let bytes = ASCII.trimmed(text.utf8)
        guard ASCII.lowercased(String(decoding: bytes.prefix(5), as: UTF8.self)) == "bytes" else {
            return nil
        }
        let value = bytes.dropFirst(5)
        guard let blank = value.first, ASCII.isBlank(blank) else { return nil }
        let parts = value.drop(while: ASCII.isBlank)
            .split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let total = ASCII.number(parts[1])
        if parts[0].elementsEqual([UInt8(ascii: "*")]) {
            guard let total else { return nil }
            self = .unsatisfied(total: total)
            return
        }
        let ends = parts[0].split(
            separator: UInt8(ascii: "-"),
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        guard total != nil || parts[1].elementsEqual([UInt8(ascii: "*")]), ends.count == 2,
            let first = ASCII.number(ends[0]), let last = ASCII.number(ends[1]), first <= last,
            total.map({ last < $0 }) ?? true
        else { return nil }
        self = .satisfied(first: first, last: last, total: total)
    }
}
