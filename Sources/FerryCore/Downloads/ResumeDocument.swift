/// What a file of resume data holds: a stopped download's or a stopped upload's.
public enum ResumeDocument: Sendable, Equatable {
    /// A download's; its object has no field `kind`.
    case download(ResumeData)
    /// An upload's.
    case upload(UploadResumeData)

    /// Whether something secret was left out.
    public var isRedacted: Bool {
        switch self {
        case .download(let document): document.isRedacted
        case .upload(let document): document.isRedacted
        }
    }

    /// Leaves out the query of the URL and, of an upload, where it is on the server.
    public mutating func redact() {
        switch self {
        case .download(var document):
            document.redact()
            self = .download(document)
        case .upload(var document):
            document.redact()
            self = .upload(document)
        }
    }

    /// The request that goes on with it, its file in a folder, nil is its old one; what the machine adds is the
    /// caller's.
    public func request(in directory: String?) -> JobRequest {
        switch self {
        case .download(let document): document.request(in: directory)
        case .upload(let document): document.request(in: directory)
        }
    }
}

extension ResumeDocument: Codable {
    private enum Key: String, CodingKey {
        case format, kind
    }

    /// Reads a document of either kind, with every check.
    ///
    /// - Throws: ``ResumeData/Refusal``, or an error of the decoder, for which that has words.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Key.self)
        guard try fields.decodeIfPresent(String.self, forKey: .format) == ResumeData.formatName else {
            throw ResumeData.Refusal("is something else: its format is not \"\(ResumeData.formatName)\"")
        }
        switch try fields.decodeIfPresent(String.self, forKey: .kind) {
        case nil, JobKind.download.rawValue?: self = .download(try ResumeData(from: decoder))
        case UploadResumeData.kind?: self = .upload(try UploadResumeData(from: decoder))
        case .some: throw ResumeData.Refusal("has a kind that this Ferry does not know")
        }
    }

    /// Writes the document.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .download(let document): try document.encode(to: encoder)
        case .upload(let document): try document.encode(to: encoder)
        }
    }
}
