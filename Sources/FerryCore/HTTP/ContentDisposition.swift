/// The file name in a `Content-Disposition` field (RFC 6266), read as leniently as real servers need it.
public struct ContentDisposition: Hashable, Sendable {
    /// The name, already ``FileName/safe(_:)``; nil if the field gives none that can be used.
    public let fileName: String?

    /// Reads the field's value; any text is taken.
    ///
    /// `filename*` (RFC 8187, UTF-8 or ISO-8859-1, also in quotes) wins if it can be decoded, then `filename`,
    /// which is not percent-decoded. The type does not matter, the first of equal parameters wins, values
    /// without quotes may hold spaces, an unfinished quote ends at the end.
    public init(_ text: String) {
        let parameters = Self.parameters(Array(text.utf8))
        let extended = parameters["filename*"].flatMap(Self.decode)
        self.fileName =
            extended.flatMap(FileName.safe)
            ?? parameters["filename"].flatMap { FileName.safe(FileName.text($0)) }
    }

    private static func parameters(_ bytes: [UInt8]) -> [String: [UInt8]] {
        let semicolon = UInt8(ascii: ";")
        var found: [String: [UInt8]] = [:]
        var rest = bytes[...]
        while !rest.isEmpty {
            let name = rest.prefix { $0 != semicolon && $0 != UInt8(ascii: "=") }
            rest = rest[name.endIndex...]
            guard rest.first == UInt8(ascii: "=") else {
                rest = rest.dropFirst()  // the type, or a parameter without a value
                continue
            }
            rest = rest.dropFirst().drop(while: ASCII.isBlank)
            let value: [UInt8]
            if rest.first == UInt8(ascii: "\"") {
                value = self.quoted(&rest)
            } else {
                let plain = rest.prefix { $0 != semicolon }
                value = ASCII.trimmed(plain)
            }
            rest = rest.drop { $0 != semicolon }.dropFirst()
            let key = ASCII.lowercased(String(decoding: ASCII.trimmed(name), as: UTF8.self))
            if found[key] == nil { found[key] = value }
        }
        return found
    }

    /// Takes a quoted string: `\` before `"` or `\` is an escape, else it stays, as in Windows paths.
    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        let quote = UInt8(ascii: "\"")
        let backslash = UInt8(ascii: "\\")
        var value: [UInt8] = []
        rest = rest.dropFirst()
        while let byte = rest.popFirst(), byte != quote {
            if byte == backslash, let next = rest.first, next == quote || next == backslash {
                value.append(next)
                rest = rest.dropFirst()
            } else {
                value.append(byte)
            }
        }
        return value
    }

    /// `charset'language'percent-encoded`; nil for an unknown charset, a broken escape or invalid UTF-8.
    private static func decode(_ value: [UInt8]) -> String? {
        let parts = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = ASCII.percentDecoded(parts[2]) else { return nil }
        switch ASCII.lowercased(String(decoding: parts[0], as: UTF8.self)) {
        case "utf-8", "utf8":
            return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1":
            var scalars = String.UnicodeScalarView()
            scalars.append(contentsOf: bytes.lazy.map { Unicode.Scalar($0) })
            return String(scalars)
        default:
            return nil
        }
    }
}
