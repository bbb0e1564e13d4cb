import FerryCore
import FerryHTTP
import FoundationEssentials
import Synchronization

/// What is kept of the server's last answer to an upload, for `show`.
public struct KeptAnswer: Sendable, Equatable, Codable {
    /// How much of the body is kept in the database.
    static let bodyLimit = 64 * 1_024
    /// How much of it a file can get (`--response`).
    static let fileLimit = 16 * 1_024 * 1_024
    /// How much of it an error message shows.
    static let wordsLimit = 2_048

    /// The status.
    public let status: Int
    /// The main header fields, `Name: value` each, redacted.
    public let headers: [String]
    /// The body's beginning as text; bytes that are no UTF-8 are replaced.
    public let body: String
    /// Whether the body was longer.
    public let isCut: Bool

    private static let shown: Set<String> = [
        "content-type", "content-length", "date", "etag", "last-modified", "location", "retry-after",
        "server",
        "tus-resumable", "tus-version", "upload-offset", "upload-length", "upload-expires", "upload-complete",
        "upload-limit", "repr-digest",
    ]

    init(head: ResponseHead, body: [UInt8], isCut: Bool) {
        self.status = head.status
        self.headers = head.fields.filter { Self.shown.contains($0.name.lowercased()) }.map { field in
            let isURL = field.name.lowercased() == "location"
            return "\(field.name): \(isURL ? URLRedaction.redact(field.value) : field.value)"
        }
        self.body = String(decoding: body.prefix(Self.bodyLimit), as: UTF8.self)
        self.isCut = isCut || body.count > Self.bodyLimit
    }

    /// Reads what ``json`` wrote.
    public init?(json: String?) {
        guard let json, let answer = try? JSONDecoder().decode(KeptAnswer.self, from: Data(json.utf8)) else {
            return nil
        }
        self = answer
    }

    var json: String? {
        (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The sentences for people in a body, nil if it is a web page or nothing; fit for a terminal.
    static func words(_ head: ResponseHead, _ body: [UInt8]) -> String? {
        let type = head.first("Content-Type")?.lowercased() ?? ""
        var text = String(decoding: body.prefix(Self.wordsLimit), as: UTF8.self)
        if type.contains("xml"), !type.contains("html"), let message = Self.message(xml: text) {
            text = message
        } else if !type.isEmpty, !type.hasPrefix("text/plain"), !type.contains("json") {
            return nil
        }
        let line = FileName.display(text.split(whereSeparator: \.isNewline).joined(separator: " "))
        return line.isEmpty ? nil : line
    }

    /// What object stores say in the element `Message` of an error.
    private static func message(xml: String) -> String? {
        guard let start = xml.firstRange(of: "<Message>"),
            let end = xml[start.upperBound...].firstRange(of: "</Message>")
        else { return nil }
        return String(xml[start.upperBound..<end.lowerBound])
    }
}

/// Keeps the beginning of an answer's body.
final class AnswerSink: BodySink {
    private struct State {
        var kept: [UInt8] = []
        var seen = 0
    }
    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = limit
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        self.state.withLock { state in
            state.seen += bytes.count
            state.kept += bytes.prefix(max(0, self.limit - state.kept.count))
            // A long one is read to its end within reason, so that its connection can be used again.
            return state.seen > self.limit + 256 * 1_024 ? .stop : .taken
        }
    }

    var bytes: [UInt8] { self.state.withLock { $0.kept } }
    var isCut: Bool { self.state.withLock { $0.seen > $0.kept.count } }
}
