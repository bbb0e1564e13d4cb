/// The client's side of tus 1.0.0 (tus-resumable-upload-protocol, protocol.md).
///
/// The server is asked for its offset after any doubt; our own count is never trusted.
public struct TusPlan: UploadPlan {
    /// The version of the protocol.
    static let version = "1.0.0"
    /// A body up to this size goes along with the creation, where the server allows that.
    static let tiny: Int64 = 64 << 10
    /// Uploads that are made on the server before the job fails: one, and two more if it forgets them.
    static let creationLimit = 3
    /// Appends in a row after which the server's offset has not grown.
    static let stallLimit = 5
    /// No smaller pieces are tried when something in between finds them too large.
    static let smallestLimit: Int64 = 256 << 10

    /// What has to be remembered.
    public private(set) var memory: UploadMemory
    private let facts: UploadFacts
    private var call: Call = .none
    private var stalls = 0
    private var mismatches = 0
    /// An earlier attempt may have been cut off while it sent a piece.
    private var isResumed = false
    /// The next piece is a small one: the offset may be old, and the server about to have more.
    private var isProbing = false

    private enum Call: Hashable, Sendable {
        case none
        case discovery
        case creation(sent: Int64)
        case head
        case patch(Range<Int64>)
    }

    /// Goes on with what is remembered.
    public init(facts: UploadFacts, memory: UploadMemory = UploadMemory()) {
        self.facts = facts
        self.memory = memory
    }

    /// Asks for the offset of an upload that exists; else what the server can do, or makes the upload.
    public mutating func begin() -> UploadStep {
        if self.memory.url != nil {
            self.isResumed = true
            return self.askOffset()
        }
        if self.memory.tus != nil { return self.create() }
        self.call = .discovery
        return .call(UploadCall("OPTIONS", .endpoint))
    }

    /// Takes the answer to the last call.
    public mutating func take(_ answer: UploadAnswer) -> UploadStep {
        switch self.call {
        case .none: .failed(.badResponse("an answer to no question"))
        case .discovery: self.takeFeatures(answer)
        case .creation(let sent): self.takeCreation(answer, sent: sent)
        case .head: self.takeOffset(answer)
        case .patch(let range): self.takeAppended(answer, range)
        }
    }

    /// A call broke off: smaller pieces lose less.
    public mutating func lost() {
        guard case .patch = self.call, let chunk = self.memory.chunk else { return }
        self.memory.chunk = UploadChunk.smaller(than: chunk)
    }

    /// The name of a digest in `Upload-Checksum`.
    public static func name(of algorithm: DigestAlgorithm) -> String {
        algorithm.rawValue.filter { $0 != "-" }
    }

    /// The request that ends an upload which nobody wants any more (extension "termination").
    public static let termination = UploadCall("DELETE", .upload, [("Tus-Resumable", Self.version)])

    // MARK: Creation

    private mutating func takeFeatures(_ answer: UploadAnswer) -> UploadStep {
        switch answer.head.status {
        case 401, 407, 408, 425, 429, 502, 503, 504: return answer.failure
        default: break
        }
        // A server, or a proxy before it, that does not answer OPTIONS may still take uploads.
        self.memory.tus = TusFeatures(answer.head) ?? TusFeatures()
        return self.create()
    }

    private mutating func create() -> UploadStep {
        if let limit = self.memory.tus?.maxSize, self.facts.size > limit {
            return self.refused(
                .tooLarge,
                "\(self.facts.host) takes uploads of up to \(ByteCount(bytes: limit).text) only"
            )
        }
        guard self.memory.creations < Self.creationLimit else {
            return self.refused(.server, "\(self.facts.host) has lost the upload again and again")
        }
        self.memory.creations += 1
        var fields = [("Tus-Resumable", Self.version), ("Upload-Length", "\(self.facts.size)")]
        if let metadata = self.metadata { fields.append(("Upload-Metadata", metadata)) }
        var body: Range<Int64> = 0..<0
        if self.memory.tus?.extensions.contains("creation-with-upload") == true, self.facts.size <= Self.tiny
        {
            body = 0..<self.facts.size
            fields.append(("Content-Type", Self.contentType))
        }
        self.call = .creation(sent: body.upperBound)
        return .call(UploadCall("POST", .endpoint, fields, body: body))
    }

    /// `filename` and `filetype`, the names that servers look for.
    private var metadata: String? {
        let pairs = [("filename", self.facts.fileName), ("filetype", self.facts.contentType)]
        let words = pairs.compactMap { name, value in
            value.map { "\(name) \(Base64.encode(Array($0.utf8)))" }
        }
        return words.isEmpty ? nil : words.joined(separator: ",")
    }

    private mutating func takeCreation(_ answer: UploadAnswer, sent: Int64) -> UploadStep {
        switch answer.head.status {
        case 201, 200:
            guard let location = answer.location else {
                return self.refused(
                    .badResponse,
                    "\(self.facts.host) made an upload and did not say where: its Location is missing or no URL"
                )
            }
            self.memory.url = location
            self.memory.offset = 0
            guard self.facts.size > 0 else { return .done }
            guard sent > 0 else { return self.append() }
            guard let offset = answer.number("Upload-Offset") else { return self.askOffset() }
            return self.goOn(at: offset)
        case 412: return self.wrongVersion()
        case 413: return self.refused(.tooLarge, "\(self.facts.host) refuses uploads as large as this one")
        case 404, 405, 501:
            return self.refused(
                .unsupported,
                "\(self.facts.host) answered \(answer.head.status): the address does not take tus uploads"
            )
        default: return answer.failure
        }
    }

    // MARK: Offset

    private mutating func askOffset() -> UploadStep {
        self.call = .head
        return .call(UploadCall("HEAD", .upload, [("Tus-Resumable", Self.version)]))
    }

    private mutating func takeOffset(_ answer: UploadAnswer) -> UploadStep {
        switch answer.head.status {
        case 200..<300:
            if let length = answer.number("Upload-Length"), length != self.facts.size {
                return self.refused(
                    .sourceChanged,
                    "the upload on \(self.facts.host) is for a file of \(length) bytes, this one has"
                        + " \(self.facts.size)"
                )
            }
            guard let offset = answer.number("Upload-Offset") else {
                return .failed(.badResponse("the server did not tell how much it has (no Upload-Offset)"))
            }
            return self.goOn(at: offset)
        case 404, 410:
            self.memory.forgetUpload()
            return self.create()
        case 412: return self.wrongVersion()
        case 423: return self.locked()
        default: return answer.failure
        }
    }

    /// Believes the server's offset.
    private mutating func goOn(at offset: Int64) -> UploadStep {
        guard offset <= self.facts.size else {
            return self.refused(
                .badResponse,
                "\(self.facts.host) says that it has \(offset) bytes of a file of \(self.facts.size)"
            )
        }
        if offset > self.memory.offset {
            self.stalls = 0
        } else if self.call != .head {
            self.stalls += 1
        } else if self.isResumed, let chunk = self.memory.chunk {
            self.memory.chunk = UploadChunk.smaller(than: chunk)  // nothing of the last piece is there
            self.isProbing = true
        }
        self.isResumed = false
        self.memory.offset = offset
        if offset == self.facts.size { return .done }
        guard self.stalls < Self.stallLimit else {
            return .failed(.badResponse("the server takes bytes again and again and has no more of them"))
        }
        return self.append()
    }

    // MARK: Data

    private static let contentType = "application/offset+octet-stream"

    private mutating func append() -> UploadStep {
        let wanted = self.isProbing ? UploadChunk.probe : self.memory.chunk ?? UploadChunk.first
        let chunk = min(wanted, self.memory.appendLimit ?? .max)
        let start = self.memory.offset
        let range = start..<min(self.facts.size, start + chunk)
        self.call = .patch(range)
        return .call(
            UploadCall(
                "PATCH",
                .upload,
                [
                    ("Tus-Resumable", Self.version), ("Upload-Offset", "\(start)"),
                    ("Content-Type", Self.contentType),
                ],
                body: range,
                checksum: self.memory.tus?.checksum
            )
        )
    }

    private mutating func takeAppended(_ answer: UploadAnswer, _ range: Range<Int64>) -> UploadStep {
        let wasProbing = self.isProbing
        self.isProbing = false
        switch answer.head.status {
        case 200, 204:
            self.mismatches = 0
            let sent = range.upperBound - range.lowerBound
            let size = self.memory.chunk ?? UploadChunk.first
            // What is left of a file tells nothing about the line, nor does a probe.
            if range.upperBound < self.facts.size, !wasProbing {
                self.memory.chunk = UploadChunk.next(
                    after: size,
                    sent: sent,
                    elapsed: answer.elapsed,
                    isChecked: self.memory.tus?.checksum != nil
                )
            }
            guard let offset = answer.number("Upload-Offset") else { return self.askOffset() }
            return self.goOn(at: offset)
        case 409:
            self.stalls += 1
            guard self.stalls < Self.stallLimit else {
                return .failed(.busy("\(self.facts.host) does not agree on where the upload goes on"))
            }
            return self.askOffset()
        case 404, 410:
            self.memory.forgetUpload()
            return self.create()
        case 412: return self.wrongVersion()
        case 413, 411: return self.makeSmaller(range)
        case 423: return self.locked()
        case 460:
            self.mismatches += 1
            guard self.mismatches < 2 else {
                let name = self.memory.tus?.checksum.map { Self.name(of: $0) } ?? "checksum"
                return self.refused(
                    .checksum,
                    "what reached \(self.facts.host) did not have the \(name) that was sent along, twice"
                )
            }
            return self.askOffset()
        default: return answer.failure
        }
    }

    /// A proxy in between has a limit that the server does not know of.
    private mutating func makeSmaller(_ range: Range<Int64>) -> UploadStep {
        let half = min((range.upperBound - range.lowerBound) / 2, 64 << 20)
        guard half >= Self.smallestLimit else {
            return self.refused(
                .tooLarge,
                "\(self.facts.host) refuses even small pieces of the file as too large"
            )
        }
        self.memory.appendLimit = half
        return self.askOffset()
    }

    // MARK: Failures

    private func locked() -> UploadStep {
        .failed(.busy("the upload on \(self.facts.host) is still held by an earlier connection"))
    }

    private func wrongVersion() -> UploadStep {
        self.refused(.unsupported, "\(self.facts.host) does not speak tus \(Self.version)")
    }

    private func refused(_ reason: FailureReason, _ sentence: String) -> UploadStep {
        .failed(.refused(reason, sentence, advice: nil))
    }
}
