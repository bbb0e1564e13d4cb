/// Reads the new URL that a program has printed (`--renew`).
public enum RenewedLink {
    /// What a program's output says.
    public enum Answer: Hashable, Sendable {
        /// The new URL; whether it may be used is still to be judged.
        case url(String)
        /// Nothing that can be used, and why: the end of a sentence that begins with the program.
        case refused(String)
    }

    /// The most that a program may print, in bytes: more than any server takes as a URL.
    public static let limitBytes = 16_384

    /// Reads the output: the URL has to be its only line.
    public static func read(_ output: [UInt8]) -> Answer {
        var line = output[...]
        if line.last == UInt8(ascii: "\n") {
            line.removeLast()
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
        }
        guard !line.isEmpty else { return .refused("printed nothing") }
        guard output.count <= self.limitBytes else { return .refused("printed too much") }
        guard !line.contains(UInt8(ascii: "\n")) else { return .refused("printed more than one line") }
        guard line.allSatisfy({ $0 > 32 && $0 != 127 }), let text = String(validating: line, as: UTF8.self),
            FileName.display(text) == text
        else { return .refused("printed characters that no URL has") }
        let scheme = ASCII.lowercased(String(text.prefix { $0 != ":" }))
        guard ["https", "http"].contains(scheme), text.dropFirst(scheme.count).hasPrefix("://") else {
            return .refused("printed no URL that begins with https:// or http://")
        }
        return .url(text)
    }

    /// The last line that a program wrote on standard error, fit for a message: URLs in it are redacted.
    public static func lastWords(_ output: [UInt8]) -> String? {
        let lines = String(decoding: output, as: UTF8.self).split(whereSeparator: \.isNewline)
        let line = lines.last { line in line.contains { !$0.isWhitespace } }
        guard let line else { return nil }
        let words = FileName.display(String(line)).split(separator: " ").map { word in
            word.contains("://") ? URLRedaction.redact(String(word)) : String(word)
        }
        let text = String(words.joined(separator: " ").prefix(200))
        return text.isEmpty ? nil : text
    }
}
