/// What an upload protocol has to remember from one attempt to the next.
///
/// The owner commits it before the next call whenever it has changed: an upload's URL is safe before the first
/// byte of data leaves.
public struct UploadMemory: Hashable, Sendable, Codable {
    /// The upload's own URL; kept apart from the rest, for it gives access.
    public var url: String?
    /// Bytes that the server has acknowledged; kept apart from the rest, for `show` tells it.
    public var offset: Int64 = 0
    /// How many uploads were made on the server.
    public var creations = 0
    /// The most that one call may append, as far as the server or a proxy in between has shown; nil = no limit.
    public var appendLimit: Int64?
    /// The least that one call may append unless it is the last one.
    public var appendFloor: Int64?
    /// How much the next call appends.
    public var chunk: Int64?
    /// The version of the IETF's protocol that the server speaks (its interop number).
    public var version: Int?
    /// The server is known to speak the IETF's protocol.
    public var isSupported = false
    /// The method that makes an upload, if the server has named it.
    public var method: String?
    /// What a tus server offers.
    public var tus: TusFeatures?
    /// The media type of a form's body, with its boundary.
    public var formType: String?
    /// The whole body of a request that must not be repeated has left, and no answer has come.
    public var isSent = false

    private enum CodingKeys: String, CodingKey {
        case creations, appendLimit, appendFloor, chunk, version, isSupported, method, tus, formType, isSent
    }

    /// Remembers nothing.
    public init() {}

    /// Reads what ``encode(to:)`` wrote; what is missing is not known.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.creations = try values.decodeIfPresent(Int.self, forKey: .creations) ?? 0
        self.appendLimit = try values.decodeIfPresent(Int64.self, forKey: .appendLimit)
        self.appendFloor = try values.decodeIfPresent(Int64.self, forKey: .appendFloor)
        self.chunk = try values.decodeIfPresent(Int64.self, forKey: .chunk)
        self.version = try values.decodeIfPresent(Int.self, forKey: .version)
        self.isSupported = try values.decodeIfPresent(Bool.self, forKey: .isSupported) ?? false
        self.method = try values.decodeIfPresent(String.self, forKey: .method)
        self.tus = try values.decodeIfPresent(TusFeatures.self, forKey: .tus)
        self.formType = try values.decodeIfPresent(String.self, forKey: .formType)
        self.isSent = try values.decodeIfPresent(Bool.self, forKey: .isSent) ?? false
    }

    /// Forgets the upload on the server, but not what was learned of the server.
    mutating func forgetUpload() {
        self.url = nil
        self.offset = 0
    }
}
