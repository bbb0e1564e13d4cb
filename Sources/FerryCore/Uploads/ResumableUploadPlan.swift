/// The client's side of the IETF's resumable uploads (draft-ietf-httpbis-resumable-upload), any method and body.
///
/// An upload is made carefully, empty and before any data, where the server is known to speak the protocol and
/// the file is worth a round trip; else the whole body goes along at once, which an ordinary server takes as an
/// ordinary upload.
public struct ResumableUploadPlan: UploadPlan {
    /// Files up to this size go up at once: an upload that is lost then costs little.
    static let small: Int64 = 4 << 20
    /// The media type of a piece (-04 and later; earlier ones take any).
    static let partialType = "application/partial-upload"

    /// What has to be remembered.
    public internal(set) var memory: UploadMemory
    let facts: UploadFacts
    var call: Call = .none
    /// Appends in a row after which the server's offset has not grown.
    var stalls = 0
    /// An earlier attempt may have been cut off while it sent a piece.
    var isResumed = false
    /// The next piece is a small one: the offset may be old, and the server about to have more.
    var isProbing = false
    /// A limit on the whole that this body breaks: the most, or the least made negative.
    private var brokenLimit: Int64?

    enum Call: Hashable, Sendable {
        case none
        case discovery
        case creation(isCareful: Bool)
        case head
        case patch(Range<Int64>)
    }

    /// Goes on with what is remembered.
    public init(facts: UploadFacts, memory: UploadMemory = UploadMemory()) {
        self.facts = facts
        self.memory = memory
    }

    var version: ResumableUploadVersion { .of(self.memory.version) }
    private var versionField: (String, String) { (ResumableUploadVersion.field, "\(self.version.number)") }

    /// Asks for the offset of an upload that exists; else what the server can do, or makes the upload.
    public mutating func begin() -> UploadStep {
        if self.memory.url != nil {
            self.isResumed = true
            return self.askOffset()
        }
        if self.memory.version != nil { return self.create() }
        self.call = .discovery
        return .call(Self.discovery)
    }

    /// Takes the answer to the last call.
    public mutating func take(_ answer: UploadAnswer) -> UploadStep {
        switch self.call {
        case .none: .failed(.badResponse("an answer to no question"))
        case .discovery: self.takeDiscovery(answer)
        case .creation(let isCareful): self.takeCreation(answer, isCareful: isCareful)
        case .head: self.takeOffset(answer)
        case .patch(let range): self.takeAppended(answer, range)
        }
    }

    /// Takes 104 (Upload Resumption Supported): where the upload is, and how far.
    ///
    /// One without our version's number is not for us. All that name a place must name the same one.
    public mutating func take(interim: ResponseHead, location: String?) -> Bool {
        guard interim.status == 104, ResumableUploadVersion.named(in: interim) == self.version else {
            return true
        }
        self.learn(interim)
        self.memory.isSupported = true
        if let location {
            guard self.memory.url == nil || self.memory.url == location else { return false }
            self.memory.url = location
        }
        if let offset = Self.offset(interim), offset <= self.facts.size, offset > self.memory.offset {
            self.memory.offset = offset
        }
        return true
    }

    /// A call broke off: smaller pieces lose less.
    public mutating func lost() {
        guard case .patch = self.call, let chunk = self.memory.chunk else { return }
        self.memory.chunk = UploadChunk.smaller(than: chunk)
    }

    /// The request that ends an upload which nobody wants any more.
    public static func termination(version: Int?) -> UploadCall {
        let number = ResumableUploadVersion.of(version).number
        return UploadCall("DELETE", .upload, [(ResumableUploadVersion.field, "\(number)")])
    }

    /// The question that finds out whether a server speaks the protocol, and which version.
    public static let discovery = UploadCall(
        "OPTIONS",
        .endpoint,
        [(ResumableUploadVersion.field, "\(ResumableUploadVersion.newest.number)")]
    )

    /// Whether an answer to it shows a server that does.
    public static func isSpoken(_ head: ResponseHead) -> Bool {
        UploadLimits(head) != nil || ResumableUploadVersion.named(in: head) != nil
            || head.values("Accept-Patch").contains { ASCII.lowercased($0).contains(self.partialType) }
    }

    /// Takes what an answer to it tells.
    public mutating func learnDiscovery(_ head: ResponseHead) {
        self.learn(head)
        self.memory.isSupported = Self.isSpoken(head)
        // tusd takes a number that it does not know for tus 1.0.0 and names its versions; it speaks 6.
        let fallback = head.first("Tus-Version") == nil ? ResumableUploadVersion.newest : .of(6)
        self.memory.version = (ResumableUploadVersion.named(in: head) ?? fallback).number
        let allowed = head.values("Allow").flatMap { $0.split(separator: ",") }.map { ASCII.trimmed($0) }
        self.memory.method = allowed.contains("POST") || !allowed.contains("PUT") ? nil : "PUT"
    }

    // MARK: Creation

    private mutating func takeDiscovery(_ answer: UploadAnswer) -> UploadStep {
        switch answer.head.status {
        case 401, 407, 408, 425, 429, 502, 503, 504: return answer.failure
        default: break
        }
        self.learnDiscovery(answer.head)
        return self.create()
    }

    mutating func learn(_ head: ResponseHead) {
        guard let limits = UploadLimits(head) else { return }
        if let most = limits.maxAppend { self.memory.appendLimit = most }
        if let least = limits.minAppend { self.memory.appendFloor = least }
        if let most = limits.maxSize, self.facts.size > most { self.brokenLimit = most }
        if let least = limits.minSize, self.facts.size < least { self.brokenLimit = -least }
    }

    private func brokenLimitRefusal(_ limit: Int64) -> UploadStep {
        let size = ByteCount(bytes: abs(limit)).text
        return limit >= 0
            ? self.refused(.tooLarge, "\(self.facts.host) takes uploads of up to \(size) only")
            : self.refused(.unsupported, "\(self.facts.host) takes uploads of at least \(size) only")
    }

    mutating func create() -> UploadStep {
        if let brokenLimit { return self.brokenLimitRefusal(brokenLimit) }
        guard self.memory.creations < TusPlan.creationLimit else {
            return self.refused(.server, "\(self.facts.host) has lost the upload again and again")
        }
        self.memory.creations += 1
        let needsPieces = self.memory.appendLimit.map { self.facts.size > $0 } ?? false
        let isCareful =
            self.memory.isSupported && self.facts.size > 0 && (self.facts.size > Self.small || needsPieces)
        var fields = [self.versionField, self.version.completeness(!isCareful)]
        if self.version.hasLength { fields.append(("Upload-Length", "\(self.facts.size)")) }
        if let type = self.facts.contentType { fields.append(("Content-Type", type)) }
        if let name = self.facts.fileName { fields.append(("Content-Disposition", Self.disposition(name))) }
        self.call = .creation(isCareful: isCareful)
        return .call(
            UploadCall(
                self.facts.method ?? self.memory.method ?? "POST",
                .endpoint,
                fields,
                body: isCareful ? 0..<0 : 0..<self.facts.size
            )
        )
    }

    /// `inline; filename=…`, as the draft recommends since -11 (RFC 6266 §4.3, RFC 8187 §3.2).
    static func disposition(_ name: String) -> String {
        let isPlain = name.utf8.allSatisfy { (32...126).contains($0) && $0 != 34 && $0 != 92 }
        return isPlain
            ? "inline; filename=\"\(name)\"" : "inline; filename*=UTF-8''\(URLPath.encoded(name))"
    }

    private mutating func takeCreation(_ answer: UploadAnswer, isCareful: Bool) -> UploadStep {
        if let older = self.olderVersion(answer) {
            self.memory.version = older.number
            self.memory.creations -= 1
            return self.create()
        }
        self.learn(answer.head)
        if let excess = self.excess(answer.head) { return excess }
        switch answer.head.status {
        case 200..<300:
            return isCareful ? self.takeCreated(answer) : self.takeUploaded(answer)
        case 413:
            return self.takeTooLarge(answer, isCareful: isCareful)
        case 409, 423:
            return .failed(.busy("\(self.facts.host) holds the upload for an earlier connection"))
        default:
            return answer.failure
        }
    }

    /// An older version that the server speaks, if that is why it refused.
    private func olderVersion(_ answer: UploadAnswer) -> ResumableUploadVersion? {
        guard (400..<500).contains(answer.head.status) else { return nil }
        let isTus = answer.head.status == 412 && answer.head.first("Tus-Version") != nil
        let named = isTus ? ResumableUploadVersion.of(6) : ResumableUploadVersion.named(in: answer.head)
        return named.flatMap { $0.number < self.version.number ? $0 : nil }
    }

    private mutating func takeCreated(_ answer: UploadAnswer) -> UploadStep {
        if let brokenLimit { return self.brokenLimitRefusal(brokenLimit) }
        guard let location = answer.location ?? self.memory.url else {
            return self.refused(
                .badResponse,
                "\(self.facts.host) made an upload and did not say where: its Location is missing or no URL"
            )
        }
        guard self.memory.url == nil || self.memory.url == location else {
            return .failed(.badResponse("the server named two places for one upload"))
        }
        self.memory.url = location
        return self.goOn(at: Self.offset(answer.head) ?? 0)
    }

    /// The answer to a whole body: the target's own, unless it says that the upload is not complete.
    private mutating func takeUploaded(_ answer: UploadAnswer) -> UploadStep {
        let isPartial =
            self.version.tellsCompleteness && self.version.isComplete(answer.head) == false
            || Self.offset(answer.head).map { $0 < self.facts.size } ?? false
        if !isPartial, answer.sentAll {
            self.memory.offset = self.facts.size
            return .done
        }
        if isPartial, let location = answer.location { self.memory.url = location }
        guard self.memory.url != nil else {
            return .failed(.badResponse("the server answered success before it had the whole body"))
        }
        return self.askOffset()
    }

    private mutating func takeTooLarge(_ answer: UploadAnswer, isCareful: Bool) -> UploadStep {
        // Its limits are known now: an empty creation and pieces may be what it takes.
        if !isCareful, self.brokenLimit == nil, self.memory.isSupported || UploadLimits(answer.head) != nil {
            self.memory.isSupported = true
            self.memory.appendLimit = self.memory.appendLimit ?? max(1, self.facts.size / 2)
        }
        return isCareful || !self.memory.isSupported
            ? self.refused(.tooLarge, "\(self.facts.host) refuses uploads as large as this one")
            : self.create()
    }

    // MARK: Offset

    /// Asks, with none of the upload's own fields: older drafts answer 400 to them.
    mutating func askOffset() -> UploadStep {
        self.call = .head
        return .call(UploadCall("HEAD", .upload, [self.versionField]))
    }

    private mutating func takeOffset(_ answer: UploadAnswer) -> UploadStep {
        switch answer.head.status {
        case 200..<300:
            self.learn(answer.head)
            if let length = answer.number("Upload-Length"), length != self.facts.size {
                return self.refused(
                    .sourceChanged,
                    "the upload on \(self.facts.host) is for a body of \(length) bytes, this one has"
                        + " \(self.facts.size)"
                )
            }
            if let excess = self.excess(answer.head) { return excess }
            if self.version.isComplete(answer.head) == true {
                self.memory.offset = self.facts.size
                return .done
            }
            guard let offset = Self.offset(answer.head) else {
                return .failed(.badResponse("the server did not tell how much it has (no Upload-Offset)"))
            }
            return self.goOn(at: offset)
        case 404, 410:
            return self.gone()
        case 409, 423:
            return .failed(.busy("the upload on \(self.facts.host) is still held by an earlier connection"))
        default:
            return answer.failure
        }
    }

    /// The failure of an upload that has more bytes than there are: whatever it is, it is not the source.
    func excess(_ head: ResponseHead) -> UploadStep? {
        guard let offset = Self.offset(head), offset > self.facts.size else { return nil }
        return self.refused(
            .badResponse,
            "\(self.facts.host) says that it has \(offset) bytes of a body of \(self.facts.size)"
        )
    }

    static func offset(_ head: ResponseHead) -> Int64? {
        guard let text = head.first("Upload-Offset"),
            case .integer(let number)? = StructuredItem(text: text)?.value, number >= 0
        else { return nil }
        return number
    }

    /// The server has forgotten the upload: begin anew.
    mutating func gone() -> UploadStep {
        self.memory.forgetUpload()
        return self.create()
    }

    func refused(_ reason: FailureReason, _ sentence: String) -> UploadStep {
        .failed(.refused(reason, sentence, advice: nil))
    }

    func appendFields(_ range: Range<Int64>) -> [(String, String)] {
        [
            self.versionField, ("Upload-Offset", "\(range.lowerBound)"),
            self.version.completeness(range.upperBound == self.facts.size),
            ("Content-Type", Self.partialType),
        ]
    }
}
