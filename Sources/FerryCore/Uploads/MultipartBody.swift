/// A multipart/form-data body, laid out before a byte of it is made (RFC 7578, RFC 2046 §5.1).
///
/// Parts stand in the order given; several may have the same name (RFC 7578 §4.3). Each has Content-Disposition
/// and, for files, Content-Type; nothing else (§4.7, §4.8), and never `filename*` (§4.2).
public struct MultipartBody: Hashable, Sendable {
    /// A run of the body's bytes.
    public enum Piece: Hashable, Sendable {
        /// These bytes: heads, texts and what stands between.
        case bytes([UInt8])
        /// All of a file, `size` bytes.
        case file(path: String, size: Int64)
    }

    /// What separates the parts.
    public let boundary: String
    /// The body, from its first byte to its last.
    public let pieces: [Piece]
    /// The body's exact length in bytes.
    public let length: Int64

    /// The value of `Content-Type`; the boundary needs no quotes.
    public var contentType: String { "multipart/form-data; boundary=\(self.boundary)" }

    /// Lays out a body; nil if its length does not fit in 64 bits.
    ///
    /// - Parameters:
    ///   - parts: The parts, in order.
    ///   - fileSizes: The size of each file among them, in the same order.
    ///   - boundary: From ``boundary(random:)``.
    ///   - mediaTypes: Names the type of a file that none was given for.
    public init?(_ parts: [FormPart], fileSizes: [Int64], boundary: String, mediaTypes: MediaTypes) {
        var sizes = fileSizes.makeIterator()
        var pieces: [Piece] = []
        var pending: [UInt8] = []
        var length = Self.closingLength(boundary)
        for part in parts {
            let head = Self.head(of: part, boundary: boundary, mediaTypes: mediaTypes)
            pending += head
            let size: Int64
            switch part.content {
            case .value(let text):
                size = Int64(text.utf8.count)
                pending += text.utf8
            case .file(let path):
                guard let known = sizes.next() else { preconditionFailure("a file without a size") }
                size = known
                pieces.append(.bytes(pending))
                pieces.append(.file(path: path, size: size))
                pending = []
            }
            pending += Self.lineEnd
            let fixed = Int64(head.count + Self.lineEnd.count)
            let (sum, isTooLong) = length.addingReportingOverflow(size)
            let (total, isTooLongNow) = sum.addingReportingOverflow(fixed)
            guard !isTooLong, !isTooLongNow else { return nil }
            length = total
        }
        pieces.append(.bytes(pending + "--\(boundary)--\r\n".utf8))
        self.boundary = boundary
        self.pieces = pieces
        self.length = length
    }

    /// Makes a boundary of letters and digits from random bytes, 16 to 32 of them.
    ///
    /// With 128 random bits nobody can put it into a file, so that files need not be searched for it.
    public static func boundary(random: some Collection<UInt8>) -> String {
        precondition((16...32).contains(random.count), "a boundary needs 16 to 32 random bytes")
        return "ferry" + Hex.encode(random)
    }

    /// A name as browsers write it between quotes: LF, CR and `"` as `%0A`, `%0D` and `%22`, all else as it is.
    ///
    /// Source: WHATWG HTML, "multipart/form-data encoding algorithm". The percent sign stays, so that this cannot
    /// be undone; it keeps a name from ending its line or its quotes.
    public static func escaped(_ name: String) -> String {
        var bytes: [UInt8] = []
        for byte in name.utf8 {
            switch byte {
            case 10: bytes += "%0A".utf8
            case 13: bytes += "%0D".utf8
            case 34: bytes += "%22".utf8
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let lineEnd: [UInt8] = [13, 10]

    /// `--`, boundary, `--`, CRLF.
    private static func closingLength(_ boundary: String) -> Int64 { Int64(2 + boundary.utf8.count + 2 + 2) }

    /// The delimiter and the part's header fields, up to the first byte of its content.
    private static func head(of part: FormPart, boundary: String, mediaTypes: MediaTypes) -> [UInt8] {
        var fileName = part.fileName
        var type = part.contentType
        if case .file(let path) = part.content {
            fileName = fileName ?? path.split(separator: "/").last.map(String.init) ?? path
            type = type ?? mediaTypes.type(of: path)
        }
        var text = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.escaped(part.name))\""
        if let fileName { text += "; filename=\"\(Self.escaped(fileName))\"" }
        text += "\r\n"
        if let type { text += "Content-Type: \(type)\r\n" }
        return Array((text + "\r\n").utf8)
    }
}
