/// Bytes as hexadecimal digits, two a byte.
public enum Hex {
    /// Writes bytes with small letters.
    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
            as: UTF8.self
        )
    }

    /// Reads pairs of digits, small or capital; nil for an odd number of them or anything else.
    public static func decode(_ digits: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = digits.makeIterator()
        while let first = rest.next() {
            guard let high = ASCII.hexValue(first), let low = rest.next().flatMap(ASCII.hexValue) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}
