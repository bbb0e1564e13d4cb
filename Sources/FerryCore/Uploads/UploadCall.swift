/// What is known of an upload before anything is asked.
public struct UploadFacts: Hashable, Sendable {
    /// The body's length.
    public var size: Int64
    /// The file's name; nil for a form.
    public var fileName: String?
    /// The body's media type.
    public var contentType: String?
    /// The method that the user wants (`--method`).
    public var method: String?
    /// The host, for messages.
    public var host: String

    /// Gathers the facts.
    public init(
        size: Int64,
        fileName: String? = nil,
        contentType: String? = nil,
        method: String? = nil,
        host: String
    ) {
        self.size = size
        self.fileName = fileName
        self.contentType = contentType
        self.method = method
        self.host = host
    }
}

/// One request of an upload protocol.
public struct UploadCall: Hashable, Sendable {
    /// Whom it goes to.
    public enum Target: Hashable, Sendable {
        /// The URL that the user gave.
        case endpoint
        /// The upload's own URL: ``UploadMemory/url``.
        case upload
    }
    /// The method.
    public var method: String
    /// Whom it goes to.
    public var target: Target
    /// The protocol's own fields.
    public var fields: [ResponseHead.Field]
    /// The bytes of the source that are its body, possibly none of them; nil for no body at all.
    public var body: Range<Int64>?
    /// `Upload-Checksum` of the body is to be added, with this digest.
    public var checksum: DigestAlgorithm?

    init(
        _ method: String,
        _ target: Target,
        _ fields: [(String, String)] = [],
        body: Range<Int64>? = nil,
        checksum: DigestAlgorithm? = nil
    ) {
        self.method = method
        self.target = target
        self.fields = fields.map { ResponseHead.Field(name: $0.0, value: $0.1) }
        self.body = body
        self.checksum = checksum
    }
}

/// The final answer to an ``UploadCall``.
public struct UploadAnswer: Hashable, Sendable {
    /// Its head.
    public var head: ResponseHead
    /// Its `Location`, resolved and allowed.
    public var location: String?
    /// `Retry-After`, as a time from now.
    public var retryAfter: Duration?
    /// Whether all of the call's body had left when it came.
    public var sentAll: Bool
    /// How long the call took.
    public var elapsed: Duration
    /// The beginning of its body, if that is a sentence for people; else nil.
    public var words: String?
    /// The beginning of its body.
    public var text: String

    /// Makes an answer.
    public init(
        head: ResponseHead,
        location: String? = nil,
        retryAfter: Duration? = nil,
        sentAll: Bool = true,
        elapsed: Duration = .zero,
        words: String? = nil,
        text: String = ""
    ) {
        self.head = head
        self.location = location
        self.retryAfter = retryAfter
        self.sentAll = sentAll
        self.elapsed = elapsed
        self.words = words
        self.text = text
    }

    /// Whether the status is 2xx.
    var isSuccess: Bool { (200..<300).contains(self.head.status) }

    /// A field that holds one number from 0 on; nil if it is missing or broken.
    func number(_ name: String) -> Int64? {
        self.head.first(name).flatMap { ASCII.number(Array(ASCII.trimmed($0).utf8)) }
    }

    /// The failure that the status stands for.
    var failure: UploadStep {
        .failed(.status(self.head.status, retryAfter: self.retryAfter, hadBytes: false, linkMayExpire: false))
    }
}

/// What comes next in an upload.
public enum UploadStep: Hashable, Sendable {
    /// Send this.
    case call(UploadCall)
    /// The server has it all.
    case done
    /// This attempt is over.
    case failed(TransferCause)
}

/// How much one call appends: about four seconds' worth, so that progress is acknowledged as often.
///
/// One endless append would be fastest by a round trip for each piece, but a server that drops what a broken
/// connection has brought would lose all of it again and again. A piece with a checksum is always dropped if it does
/// not arrive whole, and is one second's worth.
enum UploadChunk {
    static let smallest: Int64 = 1 << 20
    static let first: Int64 = 8 << 20

    /// The next size, from what the last call had sent and how long it took; at most double or half.
    static func next(after size: Int64, sent: Int64, elapsed: Duration, isChecked: Bool = false) -> Int64 {
        let (seconds, attoseconds) = elapsed.components
        let time = max(Double(seconds) + Double(attoseconds) / 1e18, 0.001)
        let wanted = Double(sent) / time * (isChecked ? 1 : 4)
        let bounded = min(max(wanted, Double(size) / 2), Double(size) * 2)
        return min(max(Int64(bounded), Self.smallest), isChecked ? 64 << 20 : 256 << 20)
    }

    /// The size of a piece that finds out whether the server still has to take in what an earlier connection brought.
    static let probe: Int64 = Self.smallest

    /// The next size after a piece that did not arrive: smaller ones lose less.
    static func smaller(than size: Int64) -> Int64 { max(Self.smallest, size / 2) }
}

/// Carries an upload by a protocol: answers in, the next request out; no I/O, no clock.
public protocol UploadPlan: Sendable {
    /// What has to be remembered; see ``UploadMemory``.
    var memory: UploadMemory { get }

    /// The first step of an attempt.
    mutating func begin() -> UploadStep

    /// Takes the final answer to the last call.
    mutating func take(_ answer: UploadAnswer) -> UploadStep

    /// Takes an interim answer to the call that is under way; false if the call has to end.
    mutating func take(interim: ResponseHead, location: String?) -> Bool

    /// Is told that the last call broke off without an answer; the attempt ends.
    mutating func lost()
}

extension UploadPlan {
    /// Interim answers say nothing in most protocols.
    public mutating func take(interim: ResponseHead, location: String?) -> Bool { true }
}
