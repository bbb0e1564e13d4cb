/// Byte-wise helpers for the texts of the protocols, whose grammar is ASCII.
enum ASCII {
    /// `0`–`9`.
    static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    /// `A`–`Z`, `a`–`z`.
    static func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte) || (97...122).contains(byte) }

    /// Space or tab: the white space of HTTP (RFC 9110 §5.6.3).
    static func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 }

    /// The value of a hexadecimal digit.
    static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }

    /// Reads 1 to 18 decimal digits and nothing else; 18 nines and one fit in 64 bits.
    static func number(_ bytes: some Collection<UInt8>) -> Int64? {
        guard !bytes.isEmpty, bytes.count <= 18 else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            guard isDigit(byte) else { return nil }
            value = value * 10 + Int64(byte - 48)
        }
        return value
    }

    /// Without spaces and tabs at both ends.
    static func trimmed(_ bytes: some BidirectionalCollection<UInt8>) -> [UInt8] {
        Array(Array(bytes.drop(while: isBlank)).reversed().drop(while: isBlank).reversed())
    }

    /// The text without spaces and tabs at both ends.
    static func trimmed(_ text: some StringProtocol) -> String {
        String(decoding: trimmed(Array(text.utf8)), as: UTF8.self)
    }

    /// The text with `A`–`Z` made small and all else kept, unlike `lowercased()`.
    static func lowercased(_ text: some StringProtocol) -> String {
        String(decoding: text.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
    }

    /// Decodes `%XX` once; nil if an escape is broken.
    static func percentDecoded(_ bytes: some Collection<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            guard byte == 37 else {
                result.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(hexValue), let low = rest.next().flatMap(hexValue) else {
                return nil
            }
            result.append(high << 4 | low)
        }
        return result
    }
}
