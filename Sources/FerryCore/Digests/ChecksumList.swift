/// The lists of checksums that `sha256sum`, `md5sum`, `shasum` and the BSD tools write.
public enum ChecksumList {
    /// A file's name as the list has it, and its checksum.
    public struct Entry: Hashable, Sendable {
        /// The name, escapes decoded; may be a path.
        public let name: String
        /// The checksum.
        public let checksum: Checksum

        /// Makes an entry.
        public init(name: String, checksum: Checksum) {
            self.name = name
            self.checksum = checksum
        }
    }

    /// A line that is no entry.
    public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// The line's number, from 1.
        public let line: Int
        /// What is wrong with it, as it reads after "line N: ".
        public let reason: String

        /// `line 3: …`.
        public var description: String { "line \(self.line): \(self.reason)" }
    }

    /// Reads a whole list, in order.
    ///
    /// Empty lines and those that begin with `#` are passed over, `\n` and `\r\n` both end a line.
    public static func parse(_ bytes: some Collection<UInt8>) throws(Failure) -> [Entry] {
        var entries: [Entry] = []
        var number = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            if let entry = try self.entry(line, number: number) { entries.append(entry) }
        }
        return entries
    }

    /// Reads one line without its `\n`; nil if it is empty or a comment.
    ///
    /// - `HEX  NAME` and `HEX *NAME` of GNU, `HEX NAME` of BSD's `-r`: the length tells the algorithm.
    /// - `SHA256 (NAME) = HEX` of BSD, of GNU's `--tag`, and without the blanks of OpenSSL.
    /// - A backslash before either: `\\`, `\n` and `\r` in the name are escapes (GNU coreutils manual, md5sum).
    public static func entry(_ line: some Collection<UInt8>, number: Int) throws(Failure) -> Entry? {
        var bytes = Array(line)[...]
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        bytes = bytes.drop(while: ASCII.isBlank)
        guard let first = bytes.first, first != UInt8(ascii: "#") else { return nil }
        let isEscaped = first == UInt8(ascii: "\\")
        if isEscaped { bytes.removeFirst() }
        do throws(Problem) {
            let (raw, checksum) = try self.parts(bytes)
            return Entry(name: try self.name(raw, isEscaped: isEscaped), checksum: checksum)
        } catch {
            throw Failure(line: number, reason: error.reason)
        }
    }

    private struct Problem: Error {
        let reason: String

        init(_ reason: String) {
            self.reason = reason
        }
    }

    private typealias Parts = (name: ArraySlice<UInt8>, checksum: Checksum)

    private static func parts(_ line: ArraySlice<UInt8>) throws(Problem) -> Parts {
        if let parts = try self.tagged(line) { return parts }
        return try self.untagged(line)
    }

    /// `ALGO (NAME) = HEX`; nil if the line does not have this form.
    private static func tagged(_ line: ArraySlice<UInt8>) throws(Problem) -> Parts? {
        guard let open = line.firstIndex(of: UInt8(ascii: "(")),
            let close = line.lastIndex(of: UInt8(ascii: ")")), open < close
        else { return nil }
        let label = ASCII.trimmed(line[..<open])
        let value = line[(close + 1)...].drop(while: ASCII.isBlank)
        // A name may hold parentheses too: only a word that is no digest before, and "=" behind, make it this form.
        guard label.contains(where: { ASCII.hexValue($0) == nil }), !label.contains(where: ASCII.isBlank),
            value.first == UInt8(ascii: "=")
        else { return nil }
        let algorithmName = String(decoding: label, as: UTF8.self)
        guard let algorithm = DigestAlgorithm(userName: algorithmName) else {
            throw Problem("the algorithm \"\(algorithmName.prefix(20))\" is not known")
        }
        guard let digest = Hex.decode(ASCII.trimmed(value.dropFirst())),
            let checksum = Checksum(algorithm: algorithm, bytes: digest)
        else { throw Problem("a \(algorithm.rawValue) has \(2 * algorithm.byteCount) hexadecimal digits") }
        return (line[(open + 1)..<close], checksum)
    }

    /// `HEX  NAME`, `HEX *NAME` or `HEX NAME`.
    private static func untagged(_ line: ArraySlice<UInt8>) throws(Problem) -> Parts {
        let digits = line.prefix { ASCII.hexValue($0) != nil }
        var name = line[digits.endIndex...]
        guard let blank = name.popFirst(), ASCII.isBlank(blank) else {
            throw Problem("neither \"HEX  NAME\" nor \"ALGORITHM (NAME) = HEX\"")
        }
        if name.first == UInt8(ascii: " ") || name.first == UInt8(ascii: "*") { name.removeFirst() }
        guard let digest = Hex.decode(digits), let algorithm = DigestAlgorithm(byteCount: digest.count),
            let checksum = Checksum(algorithm: algorithm, bytes: digest)
        else { throw Problem("no known checksum has \(digits.count) hexadecimal digits") }
        return (name, checksum)
    }

    private static func name(_ raw: ArraySlice<UInt8>, isEscaped: Bool) throws(Problem) -> String {
        var bytes: [UInt8] = []
        var rest = raw
        while let byte = rest.popFirst() {
            guard isEscaped, byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "\\"): bytes.append(byte)
            case UInt8(ascii: "n"): bytes.append(UInt8(ascii: "\n"))
            case UInt8(ascii: "r"): bytes.append(UInt8(ascii: "\r"))
            default: throw Problem("a backslash in the name begins no known escape")
            }
        }
        guard !bytes.isEmpty, !bytes.contains(0) else { throw Problem("the name is empty or holds a NUL") }
        guard let name = String(validating: bytes, as: UTF8.self) else {
            throw Problem("the name is not UTF-8")
        }
        return name
    }
}
