import FerryCore

/// Collects the lines that libcurl's header callback delivers into the head of the final answer.
///
/// The callback sees every block: 1xx, then the final one, and trailers after the body (protocols: each
/// block begins with a status line and ends with an empty line; folded lines come as calls of their own).
struct HeadParser {
    enum Event {
        /// Nothing to report.
        case none
        /// The head of the final answer is complete.
        case head(ResponseHead)
        /// The head of an interim answer (1xx) is complete; another one follows.
        case interim(ResponseHead)
        /// More lines came than any honest server sends.
        case tooLarge
    }

    /// All heads and trailers of one exchange together may have this many bytes.
    static let limit = 256 * 1_024

    private var size = 0
    private var head: ResponseHead?
    private var isComplete = false
    private(set) var trailers: [ResponseHead.Field] = []

    /// Takes one line with its line end.
    mutating func take(_ line: UnsafeRawBufferPointer) -> Event {
        self.size += line.count
        guard self.size <= Self.limit else { return .tooLarge }
        var bytes = line[...]
        while let last = bytes.last, last == 10 || last == 13 { bytes = bytes.dropLast() }
        if !self.isComplete, bytes.starts(with: [72, 84, 84, 80, 47]) {
            self.head = Self.statusLine(Self.text(bytes))
            return .none
        }
        guard bytes.isEmpty else {
            self.field(bytes)
            return .none
        }
        guard !self.isComplete, let head else { return .none }
        if (100..<200).contains(head.status), head.status != 101 {
            self.head = nil
            return .interim(head)
        }
        self.isComplete = true
        return .head(head)
    }

    private mutating func field(_ bytes: Slice<UnsafeRawBufferPointer>) {
        if let first = bytes.first, first == 32 || first == 9 {
            self.fold(Self.trimmed(bytes))
            return
        }
        guard let colon = bytes.firstIndex(of: 58) else { return }
        let field = ResponseHead.Field(
            name: Self.text(bytes[..<colon]),
            value: Self.trimmed(bytes[bytes.index(after: colon)...])
        )
        if self.isComplete {
            self.trailers.append(field)
        } else {
            self.head?.fields.append(field)
        }
    }

    /// Appends an obsolete continuation line to the value before it (RFC 9112 §5.2).
    private mutating func fold(_ text: String) {
        guard !self.isComplete, let last = self.head?.fields.popLast() else { return }
        // A value may begin on the folded line, which may be blank too: no white space is left around it.
        let separator = last.value.isEmpty || text.isEmpty ? "" : " "
        self.head?.fields.append(ResponseHead.Field(name: last.name, value: last.value + separator + text))
    }

    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        var bytes = bytes
        while let first = bytes.first, first == 32 || first == 9 { bytes = bytes.dropFirst() }
        while let last = bytes.last, last == 32 || last == 9 { bytes = bytes.dropLast() }
        return self.text(bytes)
    }

    /// UTF-8, else each byte as Latin-1.
    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    /// `HTTP/1.1 200 OK`; a status that is not three digits is 0, which nothing accepts.
    private static func statusLine(_ text: String) -> ResponseHead {
        let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: true)
        let version = parts.first.map { String($0.dropFirst(5)) } ?? ""
        let digits = parts.count > 1 && parts[1].utf8.count == 3 ? Int(parts[1]) ?? 0 : 0
        let status = digits >= 100 ? digits : 0  // "+20" and "-20" are numbers too
        return ResponseHead(
            status: status,
            httpVersion: version,
            reasonPhrase: parts.count > 2 ? String(parts[2]) : ""
        )
    }
}
