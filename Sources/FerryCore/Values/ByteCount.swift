/// A number of bytes, as users type and read it.
public struct ByteCount: Hashable, Comparable, Sendable {
    /// The bytes.
    public let bytes: Int64

    /// Wraps a number.
    public init(bytes: Int64) {
        self.bytes = bytes
    }

    /// Reads a RATE or SIZE: `10`, `10K`, `1.5M`, `10MiB` in powers of 1024, `10KB` in powers of 1000.
    ///
    /// Case does not matter and one space may stand before the unit. Nil for anything else, for a fraction of
    /// a byte without a unit, and beyond 64 bits.
    public init?(text: String) {
        let bytes = Array(text.utf8)
        guard let (number, rest) = DecimalNumber.read(bytes[...]) else { return nil }
        let unit = ASCII.lowercased(
            String(decoding: rest.first == 32 ? rest.dropFirst() : rest, as: UTF8.self)
        )
        guard rest.isEmpty || !unit.isEmpty else { return nil }
        let power: Int
        switch unit.first {
        case nil, "b": power = 0
        case "k": power = 1
        case "m": power = 2
        case "g": power = 3
        case "t": power = 4
        case "p": power = 5
        default: return nil
        }
        let base: Int128
        switch unit.dropFirst(power == 0 ? 0 : 1) {
        case "", "ib": base = 1_024
        case "b": base = power == 0 ? 1 : 1_000
        default: return nil
        }
        guard power > 0 || number.fraction == 0 else { return nil }
        let scale = (0..<power).reduce(Int128(1)) { product, _ in product * base }
        guard let value = Int64(exactly: number.times(scale)) else { return nil }
        self.bytes = value
    }

    /// For people: `512 B`, `1.5 MiB`.
    public var text: String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        let magnitude = Int128(self.bytes.magnitude)
        let sign = self.bytes < 0 ? "-" : ""
        guard magnitude >= 1_024 else { return "\(self.bytes) B" }
        var unit = 1
        var scale: Int128 = 1_024
        // Rounded to a tenth, 1023.95 of a unit is one of the next.
        while (magnitude * 10 + scale / 2) / scale >= 10_240, unit < units.count - 1 {
            scale *= 1_024
            unit += 1
        }
        let tenths = (magnitude * 10 + scale / 2) / scale
        return "\(sign)\(tenths / 10).\(tenths % 10) \(units[unit])"
    }

    /// For people: `1.5 MiB/s`.
    public static func rate(_ bytesPerSecond: Int64) -> String {
        ByteCount(bytes: bytesPerSecond).text + "/s"
    }

    /// Orders by size.
    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }
}

/// A decimal number with an exact fraction, as it stands in sizes and durations.
struct DecimalNumber {
    let whole: Int64
    let fraction: Int64
    /// What ``fraction`` is divided by.
    let denominator: Int64

    /// Reads digits, and after a point more digits, from the front; up to 18 of each.
    static func read(_ bytes: ArraySlice<UInt8>) -> (DecimalNumber, rest: ArraySlice<UInt8>)? {
        let whole = bytes.prefix(while: ASCII.isDigit)
        guard let value = ASCII.number(whole) else { return nil }
        let rest = bytes[whole.endIndex...]
        guard rest.first == UInt8(ascii: ".") else {
            return (DecimalNumber(whole: value, fraction: 0, denominator: 1), rest)
        }
        let digits = rest.dropFirst().prefix(while: ASCII.isDigit)
        guard let fraction = ASCII.number(digits) else { return nil }
        let denominator = digits.reduce(Int64(1)) { product, _ in product * 10 }
        return (
            DecimalNumber(whole: value, fraction: fraction, denominator: denominator),
            rest[digits.endIndex...]
        )
    }

    /// The product with a factor of at most 10^18, cut to a whole number.
    func times(_ factor: Int128) -> Int128 {
        Int128(self.whole) * factor + Int128(self.fraction) * factor / Int128(self.denominator)
    }
}
