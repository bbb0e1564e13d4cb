/// How an upload is carried to the server (`--protocol`).
public enum UploadProtocol: String, Sendable, Codable, CaseIterable {
    /// The server is asked; else PUT, or POST for forms.
    case auto
    /// One PUT with the whole body (RFC 9110 §9.3.4).
    case put
    /// One POST with the whole body (RFC 9110 §9.3.3).
    case post
    /// One POST of multipart/form-data (RFC 7578).
    case multipart
    /// The tus protocol, version 1.0.0.
    case tus
    /// Resumable uploads of the IETF's HTTP working group (draft-ietf-httpbis-resumable-upload).
    case ietf
}

/// One part of a multipart/form-data body (`--form`, `--form-file`).
public struct FormPart: Hashable, Sendable, Codable {
    /// What stands in the part.
    public enum Content: Hashable, Sendable, Codable {
        /// A text.
        case value(String)
        /// The bytes of a file, by its absolute path.
        case file(path: String)
    }
    /// The field's name.
    public var name: String
    /// What stands in it.
    public var content: Content
    /// Its media type; nil for texts, and where the file's name tells it.
    public var contentType: String?
    /// The name that the server is told; nil for texts, and where it is the path's last component.
    public var fileName: String?

    /// Makes a part.
    public init(name: String, content: Content, contentType: String? = nil, fileName: String? = nil) {
        self.name = name
        self.content = content
        self.contentType = contentType
        self.fileName = fileName
    }
}

/// What an upload sends, and how.
public struct UploadOrder: Hashable, Sendable, Codable {
    /// Where the body comes from.
    public enum Body: Hashable, Sendable, Codable {
        /// The bytes of a file, by its absolute path.
        case file(path: String)
        /// Standard input, copied into a spool file of the queue that goes when the job is final.
        case spool(path: String)
        /// A form, built once into a spool file.
        case form([FormPart])
    }
    /// What is sent.
    public var body: Body
    /// `--protocol`.
    public var transport: UploadProtocol
    /// `--method`; nil lets the protocol choose.
    public var method: String?
    /// `Content-Type` of a body that is no form; nil lets the file's name tell it.
    public var contentType: String?
    /// `--idempotency-key`, `auto` resolved by the command: makes a repeated POST harmless.
    public var idempotencyKey: String?
    /// `--response`: the file that the server's answer is written to, absolute.
    public var responsePath: String?
    /// Whether the command added the file's name to a URL that ended in `/`.
    ///
    /// A server of tus that `auto` finds creates uploads at the URL as it was given: without its last component.
    public var nameWasAdded: Bool

    /// Makes an order; the defaults are those of a bare `ferry put FILE URL`.
    public init(
        body: Body,
        transport: UploadProtocol = .auto,
        method: String? = nil,
        contentType: String? = nil,
        idempotencyKey: String? = nil,
        responsePath: String? = nil,
        nameWasAdded: Bool = false
    ) {
        self.body = body
        self.transport = transport
        self.method = method
        self.contentType = contentType
        self.idempotencyKey = idempotencyKey
        self.responsePath = responsePath
        self.nameWasAdded = nameWasAdded
    }
}
