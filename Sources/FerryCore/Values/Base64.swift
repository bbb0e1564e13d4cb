/// Base64 with the standard alphabet (RFC 4648 §4).
public enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    private static let pad = UInt8(ascii: "=")

    /// Writes bytes, padded to whole groups of four characters.
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let group = rest.prefix(3)
            rest = rest.dropFirst(3)
            let bits = group.reduce(0 as UInt32) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
            for index in 0..<4 {
                let value = Int(bits >> UInt32(18 - 6 * index)) & 63
                text.append(index <= group.count ? self.alphabet[value] : self.pad)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads what ``encode(_:)`` writes and nothing else: no white space, no other alphabet.
    ///
    /// - Parameters:
    ///   - text: The characters.
    ///   - lenient: Whether the padding may be left out and the unused bits of the last character be set, as
    ///     structured fields ask for (RFC 8941 §4.2.7).
    /// - Returns: The bytes, or nil.
    public static func decode(_ text: some Collection<UInt8>, lenient: Bool = false) -> [UInt8]? {
        let body = text.prefix { $0 != self.pad }
        let padding = text[body.endIndex...]
        let missing = (4 - body.count % 4) % 4
        guard missing != 3, padding.allSatisfy({ $0 == self.pad }),
            padding.count == missing || (lenient && padding.isEmpty)
        else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(body.count / 4 * 3 + 2)
        var bits: UInt32 = 0
        var count = 0
        for character in body {
            guard let value = self.value(character) else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            bits &= (1 << UInt32(count)) - 1
        }
        return bits == 0 || lenient ? bytes : nil
    }

    private static func value(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - 65
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - 71
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character + 4
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
