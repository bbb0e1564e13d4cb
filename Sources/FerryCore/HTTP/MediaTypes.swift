/// A table of media types by the extension of a file's name, as `/etc/mime.types` has it.
public struct MediaTypes: Hashable, Sendable {
    /// What a file is whose name tells nothing (RFC 2046 §4.5.1).
    public static let unknown = "application/octet-stream"

    private let types: [String: String]

    /// Reads the text of a mime.types file: a type a line, then the extensions that mean it; `#` begins a comment.
    ///
    /// Lines that are not so are passed over. Of an extension that stands there twice the first counts, and case
    /// does not matter.
    public init(_ bytes: some Collection<UInt8>) {
        var types: [String: String] = [:]
        for line in bytes.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            let words = line.prefix { $0 != UInt8(ascii: "#") }.split(whereSeparator: ASCII.isBlank)
            guard let type = words.first.map({ String(decoding: $0, as: UTF8.self) }),
                words.count > 1, Self.isPlain(type)
            else { continue }
            for word in words.dropFirst() {
                let key = ASCII.lowercased(String(decoding: word, as: UTF8.self))
                if types[key] == nil { types[key] = type }
            }
        }
        self.types = types
    }

    /// The type of a file by its name or path; ``unknown`` where there is no extension or none that is known.
    ///
    /// A dot in front makes a hidden file and no extension.
    public func type(of path: String) -> String {
        let name = path.utf8.split(separator: UInt8(ascii: "/")).last ?? path.utf8[...]
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else {
            return Self.unknown
        }
        let key = ASCII.lowercased(String(decoding: name[name.index(after: dot)...], as: UTF8.self))
        return self.types[key] ?? Self.unknown
    }

    /// Whether a text can stand in `Content-Type`: `type/subtype`, after it parameters in visible ASCII.
    public static func isValid(_ text: String) -> Bool {
        let parts = text.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)
        guard let type = parts.first, self.isPlain(ASCII.trimmed(type)) else { return false }
        return text.utf8.allSatisfy { (32...126).contains($0) }
    }

    /// Whether a text is `type/subtype` and nothing else.
    private static func isPlain(_ text: String) -> Bool {
        let halves = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return halves.count == 2 && halves.allSatisfy { HTTPToken.isValid($0) }
    }
}
