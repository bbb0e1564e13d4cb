/// How the end of an answer's body is told (RFC 9112 §6.3), read strictly.
///
/// libcurl takes `+5` and `5abc` as 5 and the last of two differing lengths; here these are contradictions.
public enum MessageLength: Hashable, Sendable {
    /// `Content-Length` bytes.
    case length(Int64)
    /// The last chunk ends it.
    case chunked
    /// The end of the connection or stream ends it; a cut cannot be told from the end.
    case untilClose
    /// There is no body: 1xx, 204, 304.
    case none
    /// The length fields cannot be believed; what is wrong, as a sentence fragment.
    case contradictory(String)

    /// Reads the head of an answer to a request other than HEAD.
    ///
    /// `Transfer-Encoding` wins over any `Content-Length`, a broken one included.
    public init(head: ResponseHead) {
        if (100..<200).contains(head.status) || head.status == 204 || head.status == 304 {
            self = .none
            return
        }
        let codings = head.values("Transfer-Encoding")
            .flatMap { $0.split(separator: ",") }
            .map { ASCII.lowercased(ASCII.trimmed($0)) }
            .filter { !$0.isEmpty && $0 != "identity" }
        if let last = codings.last {
            self = last == "chunked" ? .chunked : .untilClose
            return
        }
        let lengths = head.values("Content-Length")
            .flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
            .map { ASCII.trimmed($0) }
        guard let first = lengths.first else {
            self = .untilClose
            return
        }
        var value: Int64?
        for text in lengths {
            guard let number = ASCII.number(Array(text.utf8)) else {
                self = .contradictory("a Content-Length that is no number")
                return
            }
            guard number == value ?? number else {
                self = .contradictory("two different lengths, \(first) and \(text)")
                return
            }
            value = number
        }
        self = value.map(Self.length) ?? .untilClose
    }
}
