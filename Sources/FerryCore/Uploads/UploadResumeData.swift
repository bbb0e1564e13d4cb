/// All that is needed to go on with a stopped upload of a file, here or in another queue.
///
/// As with ``ResumeData``, header fields, credentials and what belongs to the caller's machine are not in it. The
/// offset is only told: the server is asked for it. That a file is the one whose beginning is on the server is proved
/// by identity, or else by the hashes of all of its blocks.
public struct UploadResumeData: Sendable, Equatable {
    /// What tells such a document from a download's.
    static let kind = "upload"

    /// What is known of the server that holds the upload.
    public struct Server: Sendable, Equatable, Codable {
        /// The IETF's protocol: the version that it speaks.
        public var version: Int?
        /// tus: what it offers.
        public var tus: TusFeatures?
    }

    /// What the job was told besides its order.
    public struct Options: Sendable, Equatable, Codable {
        /// `--attempts`.
        public var attempts: Int?
        /// `--group`.
        public var group: String?
        /// `--priority`.
        public var priority: Int
    }

    /// When it was written.
    public var createdAt: Timestamp
    /// The whole URL without user info; without its query where ``isRedacted``.
    public var url: String
    /// Whether the query and the upload's own URL were left out.
    public var isRedacted: Bool
    /// How it was carried; `auto` if the server was not asked yet.
    public var transport: UploadProtocol
    /// The upload's own URL, which gives access; nil if there is nothing on the server to go on with.
    public var uploadURL: String?
    /// Bytes that the server had acknowledged.
    public var offsetBytes: Int64
    /// The file, as it was when the upload was accepted.
    public var source: SourceIdentity
    /// The size of a block, in bytes.
    public var blockBytes: Int64
    /// The XXH3-64 of each block of the file, the last one shorter.
    public var blocks: [UInt64]
    /// The server.
    public var server: Server
    /// What is sent, and how.
    public var order: UploadOrder
    /// The options.
    public var options: Options

    /// Makes a document of a job's request, with nothing on a server and no hashes yet.
    public init(createdAt: Timestamp, request: JobRequest, order: UploadOrder, source: SourceIdentity) {
        self.createdAt = createdAt
        self.url = request.url
        self.isRedacted = false
        self.transport = order.transport
        self.offsetBytes = 0
        self.source = source
        self.blockBytes = ResumeData.blockSize(for: source.size)
        self.blocks = []
        self.server = Server()
        self.order = order
        self.options = Options(
            attempts: request.attempts,
            group: request.group,
            priority: request.priority
        )
    }

    /// Notes what is on the server, if the protocol lets an upload be gone on with.
    public mutating func note(transport: UploadProtocol, memory: UploadMemory) {
        self.transport = transport
        guard let url = memory.url, transport == .tus || transport == .ietf else { return }
        self.uploadURL = url
        self.offsetBytes = memory.offset
        self.server = Server(version: memory.version, tus: memory.tus)
    }

    /// What a job remembers that goes on with it: the offset is the server's to tell.
    public var memory: UploadMemory {
        var memory = UploadMemory()
        guard let url = self.uploadURL else { return memory }
        memory.url = url
        memory.creations = 1
        memory.version = self.server.version
        memory.isSupported = self.server.version != nil
        memory.tus = self.server.tus
        return memory
    }

    /// The ranges of the blocks.
    public var blockRanges: [Range<Int64>] {
        ResumeData.ranges(upTo: self.source.size, blockBytes: self.blockBytes)
    }

    /// The file's name.
    public var name: String {
        self.source.path.split(separator: "/").last.map(String.init) ?? self.source.path
    }

    /// Leaves out the query of the URL and the upload's own URL.
    public mutating func redact() {
        if let mark = self.url.utf8.firstIndex(of: UInt8(ascii: "?")) { self.url = String(self.url[..<mark]) }
        self.uploadURL = nil
        self.offsetBytes = 0
        self.server = Server()
        self.transport = self.order.transport
        self.isRedacted = true
    }

    /// The request that goes on with it, its file in a folder, nil is its old one; what the machine adds is the
    /// caller's.
    public func request(in directory: String?) -> JobRequest {
        var request = JobRequest(kind: .upload, url: self.url, directory: "/")
        var order = self.order
        if let directory { order.body = .file(path: Self.path(of: self.name, in: directory)) }
        request.upload = order
        request.attempts = self.options.attempts
        request.group = self.options.group
        request.priority = self.options.priority
        return request
    }

    /// The path of a name in a folder.
    public static func path(of name: String, in directory: String) -> String {
        directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
    }
}

/// Read as strictly as a download's.
extension UploadResumeData: Codable {
    private enum Key: String, CodingKey {
        case format, version, kind, createdAt, url, isRedacted, transport = "protocol", uploadURL =
            "uploadUrl"
        case offsetBytes, source, blockBytes, blocks, server, order, options
    }

    /// Reads a document and checks every value.
    ///
    /// - Throws: ``ResumeData/Refusal``, or an error of the decoder, for which that has words.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Key.self)
        try ResumeData.check(version: try fields.decode(Int.self, forKey: .version))
        self.createdAt = try fields.decode(Timestamp.self, forKey: .createdAt)
        self.url = try fields.decode(String.self, forKey: .url)
        self.isRedacted = try fields.decode(Bool.self, forKey: .isRedacted)
        self.transport = try fields.decode(UploadProtocol.self, forKey: .transport)
        self.uploadURL = try fields.decodeIfPresent(String.self, forKey: .uploadURL)
        self.offsetBytes = try fields.decode(Int64.self, forKey: .offsetBytes)
        self.source = try fields.decode(SourceIdentity.self, forKey: .source)
        self.blockBytes = try fields.decode(Int64.self, forKey: .blockBytes)
        self.blocks = try ResumeData.hashes(try fields.decode([String].self, forKey: .blocks))
        self.server = try fields.decode(Server.self, forKey: .server)
        self.order = try fields.decode(UploadOrder.self, forKey: .order)
        self.options = try fields.decode(Options.self, forKey: .options)
        try self.validate()
    }

    /// Writes the document with its format, version and kind.
    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: Key.self)
        try fields.encode(ResumeData.formatName, forKey: .format)
        try fields.encode(ResumeData.currentVersion, forKey: .version)
        try fields.encode(Self.kind, forKey: .kind)
        try fields.encode(self.createdAt, forKey: .createdAt)
        try fields.encode(self.url, forKey: .url)
        try fields.encode(self.isRedacted, forKey: .isRedacted)
        try fields.encode(self.transport, forKey: .transport)
        try fields.encodeIfPresent(self.uploadURL, forKey: .uploadURL)
        try fields.encode(self.offsetBytes, forKey: .offsetBytes)
        try fields.encode(self.source, forKey: .source)
        try fields.encode(self.blockBytes, forKey: .blockBytes)
        try fields.encode(self.blocks.map(ResumeData.text(ofHash:)), forKey: .blocks)
        try fields.encode(self.server, forKey: .server)
        try fields.encode(self.order, forKey: .order)
        try fields.encode(self.options, forKey: .options)
    }

    private func validate() throws(ResumeData.Refusal) {
        try ResumeData.checkURL(self.url, "url")
        if let url = self.uploadURL { try ResumeData.checkURL(url, "upload_url") }
        guard self.order.body == .file(path: self.source.path) else {
            throw ResumeData.Refusal("has an order for something else than its source")
        }
        try ResumeData.checkPath(self.source.path, "source.path")
        try ResumeData.checkName(self.name, "source.path")
        if let path = self.order.responsePath {
            try ResumeData.checkPath(path, "order.response_path")
            try ResumeData.checkName(
                path.split(separator: "/").last.map(String.init) ?? "",
                "order.response_path"
            )
        }
        for (text, field) in [
            (self.order.contentType, "order.content_type"),
            (self.order.idempotencyKey, "order.idempotency_key"),
            (self.options.group, "options.group"),
        ] {
            if let text { try ResumeData.checkText(text, field) }
        }
        if let method = self.order.method, !HTTPToken.isValid(method) {
            throw ResumeData.Refusal("has a value in order.method that is no method")
        }
        try ResumeData.check(attempts: self.options.attempts, priority: self.options.priority)
        try self.validateNumbers()
    }

    private func validateNumbers() throws(ResumeData.Refusal) {
        let size = self.source.size
        guard (0...1 << 60).contains(size), self.blockBytes == ResumeData.blockSize(for: size) else {
            throw ResumeData.Refusal("has a value in block_bytes that does not fit its source")
        }
        guard Int64(self.blocks.count) == (size + self.blockBytes - 1) / self.blockBytes else {
            throw ResumeData.Refusal("has \(self.blocks.count) hashes, which do not fit its source")
        }
        guard (0...size).contains(self.offsetBytes), self.offsetBytes == 0 || self.uploadURL != nil else {
            throw ResumeData.Refusal("has a value in offset_bytes that cannot be used")
        }
        guard self.uploadURL == nil || self.transport == .tus || self.transport == .ietf else {
            throw ResumeData.Refusal("names an upload on a server and no protocol that has such")
        }
        if let version = self.server.version, ResumableUploadVersion.of(version).number != version {
            throw ResumeData.Refusal("has a value in server.version that this Ferry does not know")
        }
    }
}
