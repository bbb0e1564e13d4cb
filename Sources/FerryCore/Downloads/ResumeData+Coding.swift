/// Read strictly: what is missing, of the wrong type or hostile is refused with a sentence; unknown fields are
/// ignored, so that a later version may add some.
extension ResumeData: Codable {
    /// Why a document is refused: a sentence fragment that fits after "the resume data …".
    public struct Refusal: Error, Sendable, Equatable {
        /// The fragment.
        public let reason: String

        /// Makes a refusal.
        public init(_ reason: String) {
            self.reason = reason
        }

        /// What an error of a JSON decoder means for a reader of the document.
        public init(_ error: any Error) {
            func place(_ path: [any CodingKey]) -> String {
                let names = path.map { $0.intValue.map { "[\($0)]" } ?? ResumeData.fieldName($0.stringValue) }
                return names.isEmpty ? "the document" : names.joined(separator: ".")
            }
            switch error {
            case let refusal as Refusal:
                self = refusal
            case DecodingError.keyNotFound(let key, let context):
                self.init("lacks the field \(place(context.codingPath + [key]))")
            case DecodingError.typeMismatch(_, let context) where context.codingPath.isEmpty:
                self.init("is no JSON object")
            case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
                self.init("has a value of the wrong type in \(place(context.codingPath))")
            case DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty:
                self.init("has a value in \(place(context.codingPath)) that cannot be used")
            default:
                // A number that fits no field comes without its place.
                self.init("is no valid JSON, or has a number that cannot be used")
            }
        }
    }

    private enum Key: String, CodingKey {
        case format, version, createdAt, url, isRedacted, finalURL = "finalUrl", directory, name, partialName
        case offsetBytes, blockBytes, blocks, remote, options
    }

    /// Reads a document and checks every value.
    ///
    /// - Throws: ``Refusal``, or an error of the decoder, for which ``Refusal/init(_:)`` has words.
    public init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Key.self)
        guard try fields.decodeIfPresent(String.self, forKey: .format) == ResumeData.formatName else {
            throw Refusal("is something else: its format is not \"\(ResumeData.formatName)\"")
        }
        try Self.check(version: try fields.decode(Int.self, forKey: .version))
        self.createdAt = try fields.decode(Timestamp.self, forKey: .createdAt)
        self.url = try fields.decode(String.self, forKey: .url)
        self.isRedacted = try fields.decode(Bool.self, forKey: .isRedacted)
        self.finalURL = try fields.decodeIfPresent(String.self, forKey: .finalURL)
        self.directory = try fields.decode(String.self, forKey: .directory)
        self.name = try fields.decodeIfPresent(String.self, forKey: .name)
        self.partialName = try fields.decodeIfPresent(String.self, forKey: .partialName)
        self.offsetBytes = try fields.decode(Int64.self, forKey: .offsetBytes)
        self.blockBytes = try fields.decode(Int64.self, forKey: .blockBytes)
        self.blocks = try Self.hashes(try fields.decode([String].self, forKey: .blocks))
        self.remote = try fields.decode(Remote.self, forKey: .remote)
        self.options = try fields.decode(Options.self, forKey: .options)
        try self.validate()
    }

    /// Writes the document with its format and version.
    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: Key.self)
        try fields.encode(ResumeData.formatName, forKey: .format)
        try fields.encode(ResumeData.currentVersion, forKey: .version)
        try fields.encode(self.createdAt, forKey: .createdAt)
        try fields.encode(self.url, forKey: .url)
        try fields.encode(self.isRedacted, forKey: .isRedacted)
        try fields.encodeIfPresent(self.finalURL, forKey: .finalURL)
        try fields.encode(self.directory, forKey: .directory)
        try fields.encodeIfPresent(self.name, forKey: .name)
        try fields.encodeIfPresent(self.partialName, forKey: .partialName)
        try fields.encode(self.offsetBytes, forKey: .offsetBytes)
        try fields.encode(self.blockBytes, forKey: .blockBytes)
        try fields.encode(self.blocks.map(Self.text(ofHash:)), forKey: .blocks)
        try fields.encode(self.remote, forKey: .remote)
        try fields.encode(self.options, forKey: .options)
    }

    private static func fieldName(_ name: String) -> String {
        var result = ""
        for character in name {
            result += character.isUppercase ? "_\(character.lowercased())" : "\(character)"
        }
        return result
    }

    // MARK: Rules

    static func check(version: Int) throws(Refusal) {
        guard version == Self.currentVersion else {
            throw Refusal("is of version \(version), and this Ferry reads version \(Self.currentVersion)")
        }
    }

    static func hashes(_ texts: [String]) throws(Refusal) -> [UInt64] {
        var hashes: [UInt64] = []
        for text in texts {
            guard text.utf8.count == 16, let hash = UInt64(text, radix: 16), !text.hasPrefix("+") else {
                throw Refusal("has a block hash that is not 16 hexadecimal digits")
            }
            hashes.append(hash)
        }
        return hashes
    }

    static func text(ofHash hash: UInt64) -> String {
        Hex.encode((0..<8).map { UInt8(truncatingIfNeeded: hash >> (56 - 8 * UInt64($0))) })
    }

    private func validate() throws(Refusal) {
        try Self.checkURL(self.url, "url")
        try Self.checkPath(self.directory, "directory")
        if let output = self.options.output {
            try Self.checkPath(output, "options.output")
            try Self.checkName(output.split(separator: "/").last.map(String.init) ?? "", "options.output")
        }
        if let name = self.name { try Self.checkName(name, "name") }
        if let name = self.partialName {
            try Self.checkName(name, "partial_name")
            // So that a document never makes another file a partial, to be written and renamed.
            guard FileName.job(ofPartial: name) != nil else {
                throw Refusal("has a value in partial_name that is no partial's name")
            }
        }
        guard self.partialName == nil || self.name != nil else {
            throw Refusal("names a partial and no file")
        }
        try self.validateNumbers()
        for (text, field) in [
            (self.finalURL, "final_url"), (self.remote.entityTag, "remote.entity_tag"),
            (self.remote.lastModified, "remote.last_modified"),
            (self.remote.contentType, "remote.content_type"),
            (self.remote.contentEncoding, "remote.content_encoding"), (self.options.group, "options.group"),
        ] {
            if let text { try Self.checkText(text, field) }
        }
        for digest in self.remote.digests ?? [] {
            try Self.checkText(digest.source.rawValue, "remote.digests")
        }
    }

    static func checkURL(_ url: String, _ field: String) throws(Refusal) {
        try self.checkText(url, field)
        let scheme = ASCII.lowercased(url.prefix { $0 != ":" })
        guard scheme == "https" || scheme == "http" else {
            throw Refusal("has a URL that is neither https nor http")
        }
    }

    static func check(attempts: Int?, priority: Int) throws(Refusal) {
        guard attempts ?? 0 >= 0 else {
            throw Refusal("has a value in options.attempts that cannot be used")
        }
        guard (-100...100).contains(priority) else {
            throw Refusal("has a value in options.priority that is not between -100 and 100")
        }
    }

    private func validateNumbers() throws(Refusal) {
        let size = self.blockBytes
        guard size >= ResumeData.smallestBlock, size <= 1 << 50, size & (size - 1) == 0 else {
            throw Refusal("has a value in block_bytes that cannot be used")
        }
        guard self.offsetBytes >= 0, self.blocks.count <= ResumeData.blockLimit,
            self.offsetBytes <= Int64(ResumeData.blockLimit) * size
        else { throw Refusal("has a value in offset_bytes that cannot be used") }
        guard Int64(self.blocks.count) == (self.offsetBytes + size - 1) / size else {
            throw Refusal("has \(self.blocks.count) hashes, which do not fit its offset")
        }
        guard self.offsetBytes == 0 || self.partialName != nil else {
            throw Refusal("has an offset and no partial")
        }
        guard self.remote.totalBytes ?? 0 >= 0, self.offsetBytes <= self.remote.totalBytes ?? .max else {
            throw Refusal("has a value in remote.total_bytes that cannot be used")
        }
        try Self.check(attempts: self.options.attempts, priority: self.options.priority)
        guard self.options.sizeLimitBytes ?? 1 > 0 else {
            throw Refusal("has a value in options.size_limit_bytes that cannot be used")
        }
    }

    /// A text that can be sent in a header field and shown: no control characters, of sensible length.
    static func checkText(_ text: String, _ field: String) throws(Refusal) {
        guard text.utf8.count <= 65_536, !text.utf8.contains(where: { $0 < 32 || $0 == 127 }) else {
            throw Refusal("has a value in \(field) that holds control characters or is too long")
        }
    }

    /// An absolute path without `..`, which no export writes.
    static func checkPath(_ path: String, _ field: String) throws(Refusal) {
        guard path.utf8.first == UInt8(ascii: "/"), path.utf8.count < 4_096, !path.utf8.contains(0),
            !path.split(separator: "/").contains("..")
        else { throw Refusal("has a value in \(field) that is no absolute path without ..") }
    }

    /// A single component of a path.
    static func checkName(_ name: String, _ field: String) throws(Refusal) {
        guard (1...255).contains(name.utf8.count), name != ".", name != "..",
            !name.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 < 32 || $0 == 127 })
        else { throw Refusal("has a value in \(field) that is no file's name") }
    }
}
