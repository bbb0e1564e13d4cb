/// What one version of the IETF's resumable uploads asks of a client (draft-ietf-httpbis-resumable-upload).
///
/// The versions are told apart by an interop number that goes along with every request; the servers in use speak
/// one of these four.
struct ResumableUploadVersion: Hashable, Sendable {
    /// `Upload-Draft-Interop-Version`.
    let number: Int
    /// Says `Upload-Incomplete` where later ones say `Upload-Complete` (-01).
    let isInverted: Bool
    /// Knows `Upload-Length` (-05).
    let hasLength: Bool
    /// `Upload-Complete` in the answer to an append can be believed (-09); servers of older ones mix it up.
    let tellsCompleteness: Bool

    /// The field that carries the number.
    static let field = "Upload-Draft-Interop-Version"

    /// Those that we speak, the newest first.
    static let all = [
        ResumableUploadVersion(number: 8, isInverted: false, hasLength: true, tellsCompleteness: true),
        ResumableUploadVersion(number: 6, isInverted: false, hasLength: true, tellsCompleteness: false),
        ResumableUploadVersion(number: 5, isInverted: false, hasLength: false, tellsCompleteness: false),
        ResumableUploadVersion(number: 3, isInverted: true, hasLength: false, tellsCompleteness: false),
    ]

    /// The newest one.
    static let newest = Self.all[0]

    /// The version of a number; the newest for none and for one that is not known.
    static func of(_ number: Int?) -> ResumableUploadVersion {
        self.all.first { $0.number == number } ?? self.newest
    }

    /// The version that an answer names, if it is one of ours (a structured integer, RFC 8941 §3.3.1).
    static func named(in head: ResponseHead) -> ResumableUploadVersion? {
        guard let text = head.first(self.field),
            case .integer(let number)? = StructuredItem(text: text)?.value
        else { return nil }
        return self.all.first { Int64($0.number) == number }
    }

    /// The field that says whether an upload is complete with this request.
    func completeness(_ isComplete: Bool) -> (String, String) {
        let flag = isComplete != self.isInverted
        return (self.isInverted ? "Upload-Incomplete" : "Upload-Complete", flag ? "?1" : "?0")
    }

    /// Whether an answer says that the upload is complete; nil if it says nothing, or not in this version's words.
    func isComplete(_ head: ResponseHead) -> Bool? {
        let name = self.isInverted ? "Upload-Incomplete" : "Upload-Complete"
        guard let text = head.first(name), case .boolean(let flag)? = StructuredItem(text: text)?.value
        else { return nil }
        return flag != self.isInverted
    }
}

/// The limits that a server has announced (`Upload-Limit`, -05 and later).
struct UploadLimits: Hashable, Sendable {
    var maxSize: Int64?
    var minSize: Int64?
    var maxAppend: Int64?
    var minAppend: Int64?

    /// Reads the field; nil if it is missing, broken, or has a known key of another type.
    init?(_ head: ResponseHead) {
        let lines = head.values("Upload-Limit")
        guard !lines.isEmpty, let dictionary = StructuredDictionary(lines: lines) else { return nil }
        var numbers: [String: Int64] = [:]
        for key in ["max-size", "min-size", "max-append-size", "min-append-size", "max-age", "expires"] {
            guard dictionary.members[key] != nil else { continue }
            guard case .integer(let number)? = dictionary[key], number >= 0 else { return nil }
            numbers[key] = number
        }
        self.maxSize = numbers["max-size"]
        self.minSize = numbers["min-size"]
        self.maxAppend = numbers["max-append-size"]
        self.minAppend = numbers["min-append-size"]
    }
}
