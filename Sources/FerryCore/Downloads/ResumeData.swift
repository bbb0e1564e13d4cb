/// All that is needed to go on with a stopped download, here or in another queue.
///
/// A file holds it as one JSON object. Header fields, credentials and what belongs to the caller's machine
/// (proxies, certificate authorities, leave for plain http) are not in it. The offset is a claim: whoever takes
/// it over reads the partial back and counts only what the hashes prove.
public struct ResumeData: Sendable, Equatable {
    /// What marks such a document.
    public static let formatName = "ferry-resume-data"
    /// The version written and read.
    public static let currentVersion = 1
    /// The largest document that is read, in bytes.
    public static let sizeLimit = 1 << 20
    /// The most blocks that a document holds.
    static let blockLimit = 4_096
    /// The smallest block, in bytes; larger files have larger blocks.
    static let smallestBlock: Int64 = 256 * 1_024

    /// What is known of the remote object; compared with each later answer.
    public struct Remote: Sendable, Equatable, Codable {
        /// Its size.
        public var totalBytes: Int64?
        /// The `ETag` as sent.
        public var entityTag: String?
        /// The `Last-Modified` as sent.
        public var lastModified: String?
        /// Whether the date proves equal bytes (RFC 9110 §8.8.2.2).
        public var lastModifiedIsStrong: Bool
        /// The media type.
        public var contentType: String?
        /// The content coding that the server applied unasked.
        public var contentEncoding: String?
        /// What the server says of ranges.
        public var acceptsRanges: Bool?
        /// Digests that the server has named.
        public var digests: [ExpectedDigest]?
    }

    /// What the job was told.
    public struct Options: Sendable, Equatable, Codable {
        /// `-o`, absolute.
        public var output: String?
        /// `--if-exists`.
        public var ifExists: IfExists?
        /// `--attempts`.
        public var attempts: Int?
        /// `--checksum`.
        public var checksum: Checksum?
        /// `--size-limit`.
        public var sizeLimitBytes: Int64?
        /// `--compressed`.
        public var compressed: Bool
        /// `--remote-time`.
        public var remoteTime: Bool
        /// `--group`.
        public var group: String?
        /// `--priority`.
        public var priority: Int
    }

    /// When it was written.
    public var createdAt: Timestamp
    /// The whole URL without user info; without its query where ``isRedacted``.
    public var url: String
    /// Whether the query was left out.
    public var isRedacted: Bool
    /// The URL that answered, without user info and the values of its query.
    public var finalURL: String?
    /// The folder that the file goes to, absolute.
    public var directory: String
    /// The final name; nil if it was not known yet, and then there is no partial either.
    public var name: String?
    /// The partial's name in ``directory``.
    public var partialName: String?
    /// Bytes from the beginning that were durable.
    public var offsetBytes: Int64
    /// The size of a block, in bytes.
    public var blockBytes: Int64
    /// The XXH3-64 of each block up to the offset, the last one shorter.
    public var blocks: [UInt64]
    /// The remote object.
    public var remote: Remote
    /// The options.
    public var options: Options

    /// Makes a document without a partial.
    public init(
        createdAt: Timestamp,
        url: String,
        directory: String,
        remote: RemoteObject,
        options: Options
    ) {
        self.createdAt = createdAt
        self.url = url
        self.isRedacted = false
        self.directory = directory
        self.offsetBytes = 0
        self.blockBytes = ResumeData.smallestBlock
        self.blocks = []
        self.remote = Remote(remote)
        self.options = options
    }

    /// The size of the blocks for so many bytes: a power of two, so that a document stays small.
    public static func blockSize(for bytes: Int64) -> Int64 {
        var size = self.smallestBlock
        while (bytes - 1) / size >= Int64(self.blockLimit) { size *= 2 }
        return size
    }

    /// Leaves out the query of the URL.
    public mutating func redact() {
        guard let mark = self.url.utf8.firstIndex(of: UInt8(ascii: "?")) else { return }
        self.url = String(self.url[..<mark])
        self.isRedacted = true
    }

    /// The ranges of the blocks up to the offset.
    public var blockRanges: [Range<Int64>] {
        Self.ranges(upTo: self.offsetBytes, blockBytes: self.blockBytes)
    }

    /// The ranges of the blocks of a file's first bytes.
    public static func ranges(upTo offset: Int64, blockBytes: Int64) -> [Range<Int64>] {
        stride(from: 0, to: offset, by: Int(blockBytes)).map { $0..<min($0 + blockBytes, offset) }
    }

    /// The request that goes on with it in a folder, nil is its old one; what the machine adds is the caller's.
    public func request(in directory: String?) -> JobRequest {
        var request = JobRequest(url: self.url, directory: directory ?? self.directory)
        if let output = self.options.output {
            let last = output.split(separator: "/").last.map(String.init) ?? output
            request.output = directory.map { $0 == "/" ? "/\(last)" : "\($0)/\(last)" } ?? output
        }
        request.ifExists = self.options.ifExists
        request.attempts = self.options.attempts
        request.checksum = self.options.checksum
        request.sizeLimitBytes = self.options.sizeLimitBytes
        request.compressed = self.options.compressed
        request.remoteTime = self.options.remoteTime
        request.group = self.options.group
        request.priority = self.options.priority
        return request
    }
}

extension ResumeData.Remote {
    /// Takes what another queue needs to know; what was computed here stays here.
    public init(_ remote: RemoteObject) {
        self.totalBytes = remote.totalBytes
        self.entityTag = remote.entityTag
        self.lastModified = remote.lastModified
        self.lastModifiedIsStrong = remote.lastModifiedIsStrong
        self.contentType = remote.contentType
        self.contentEncoding = remote.contentEncoding
        self.acceptsRanges = remote.acceptsRanges
        self.digests = remote.digests
    }

    /// The object as a job keeps it.
    public var object: RemoteObject {
        var object = RemoteObject()
        object.totalBytes = self.totalBytes
        object.entityTag = self.entityTag
        object.lastModified = self.lastModified
        object.lastModifiedIsStrong = self.lastModifiedIsStrong
        object.contentType = self.contentType
        object.contentEncoding = self.contentEncoding
        object.acceptsRanges = self.acceptsRanges
        object.digests = self.digests
        return object
    }
}

extension ResumeData.Options {
    /// Takes the options of a request that have a meaning elsewhere.
    public init(_ request: JobRequest) {
        self.output = request.output
        self.ifExists = request.ifExists
        self.attempts = request.attempts
        self.checksum = request.checksum
        self.sizeLimitBytes = request.sizeLimitBytes
        self.compressed = request.compressed
        self.remoteTime = request.remoteTime
        self.group = request.group
        self.priority = request.priority
    }
}
