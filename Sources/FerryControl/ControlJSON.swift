import FoundationEssentials

/// JSON as the control socket and `--json` carry it: one line, snake_case names, slashes as they are.
public enum ControlJSON {
    /// Encodes a value as one line without its newline.
    ///
    /// Names are sorted, so that equal values give equal lines; a newline inside a string is escaped.
    ///
    /// - Throws: `EncodingError` for a number that JSON cannot hold.
    public static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return [UInt8](try encoder.encode(value))
    }

    /// Decodes one line, with or without its newline.
    ///
    /// - Throws: `DecodingError` if it is no JSON or lacks a field; unknown fields are ignored.
    public static func decode<T: Decodable>(_ type: T.Type, from line: [UInt8]) throws -> T {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .custom { path in
            Name(stringValue: camelCase(path.last?.stringValue ?? ""))
        }
        return try decoder.decode(type, from: Data(line))
    }

    /// The Swift name of a snake_case one: `rate_bytes_per_s` is `rateBytesPerS`, `allow_http` is `allowHTTP`.
    ///
    /// Foundation's own conversion has no capital abbreviations, and the way back would miss `allowHTTP`.
    static func camelCase(_ name: String) -> String {
        let words = name.split(separator: "_")
        guard words.count > 1 else { return name }
        var result = String(name.prefix(while: { $0 == "_" })) + words[0]
        for word in words.dropFirst() {
            if word == "http" {
                result += "HTTP"
            } else {
                result += word.prefix(1).uppercased() + word.dropFirst()
            }
        }
        return result
    }

    /// A field's name.
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) {
            self.stringValue = stringValue
        }

        init?(intValue: Int) {
            return nil
        }
    }
}
