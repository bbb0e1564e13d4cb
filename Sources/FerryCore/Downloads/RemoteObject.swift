/// What is known of the object behind a URL; stored with the job and compared on each resume.
public struct RemoteObject: Hashable, Sendable, Codable {
    /// Its size, nil if the server did not tell.
    public var totalBytes: Int64?
    /// The `ETag` as sent.
    public var entityTag: String?
    /// The `Last-Modified` as sent.
    public var lastModified: String?
    /// Whether the answer was made at least a second after ``lastModified`` (RFC 9110 §8.8.2.2).
    public var lastModifiedIsStrong: Bool
    /// The media type in small letters, without parameters.
    public var contentType: String?
    /// The content codings in small letters, nil for none or `identity`.
    public var contentEncoding: String?
    /// What the server says of ranges, nil if it does not.
    public var acceptsRanges: Bool?
    /// The digests that its answers have named; nil for none.
    public var digests: [ExpectedDigest]?
    /// Whether trailers were announced that would name a digest, and have not come; nil for no.
    public var awaitsDigest: Bool?
    /// What was compared when the file was whole; nil before, or if there was nothing to compare.
    public var verified: VerifiedChecksum?

    /// The digest that was expected, and the one that the file has.
    public struct VerifiedChecksum: Hashable, Sendable, Codable {
        /// What was expected, and by whom.
        public let expected: ExpectedDigest
        /// What the file has.
        public let actual: Checksum?

        /// Makes a result.
        public init(expected: ExpectedDigest, actual: Checksum?) {
            self.expected = expected
            self.actual = actual
        }
    }

    /// An object of which nothing is known.
    public init() {
        self.lastModifiedIsStrong = false
    }

    /// Takes what the head of an answer tells of the object.
    ///
    /// - Parameters:
    ///   - head: The head of a 200, 206 or 416.
    ///   - totalBytes: The size of the whole object as that answer implies it.
    ///   - now: Our clock, for years of two digits only.
    public init(head: ResponseHead, totalBytes: Int64?, now: Timestamp) {
        self.totalBytes = totalBytes
        // Two different tags are joined to a text that is no tag: it proves nothing, yet shows a change.
        var tags: [String] = []
        for tag in head.values("ETag") where !tag.isEmpty && !tags.contains(tag) { tags.append(tag) }
        self.entityTag = tags.isEmpty ? nil : tags.joined(separator: ", ")
        self.lastModified = head.first("Last-Modified").flatMap { $0.isEmpty ? nil : $0 }
        self.lastModifiedIsStrong = false
        if let changed = self.lastModified.flatMap({ HTTPDate.parse($0, now: now) }),
            let made = head.first("Date").flatMap({ HTTPDate.parse($0, now: now) })
        {
            self.lastModifiedIsStrong = made - changed >= .seconds(1)
        }
        self.contentType = head.first("Content-Type").flatMap(MediaType.essence)
        let codings = head.values("Content-Encoding")
            .flatMap { $0.split(separator: ",") }
            .map { ASCII.lowercased(ASCII.trimmed($0)) }
            .filter { !$0.isEmpty && $0 != "identity" }
        self.contentEncoding = codings.isEmpty ? nil : codings.joined(separator: ", ")
        switch head.first("Accept-Ranges").map({ ASCII.lowercased(ASCII.trimmed($0)) }) {
        case "bytes": self.acceptsRanges = true
        case "none": self.acceptsRanges = false
        default: self.acceptsRanges = head.status == 206 ? true : nil
        }
    }

    /// The value for `If-Range`: a strong tag, or a strong date if there is no tag at all (RFC 9110 §13.1.5).
    public var ifRange: String? {
        if let tag = self.entityTag { return EntityTag(tag).isStrong ? tag : nil }
        return self.lastModifiedIsStrong ? self.lastModified : nil
    }

    /// The best that can tell this object from another one.
    public var validator: Validator? {
        if let tag = self.entityTag {
            return Validator(kind: .etag, value: tag, isStrong: EntityTag(tag).isStrong)
        }
        if let date = self.lastModified {
            return Validator(kind: .lastModified, value: date, isStrong: self.lastModifiedIsStrong)
        }
        return self.totalBytes.map { Validator(kind: .size, value: String($0), isStrong: false) }
    }

    /// Whether a stopped transfer of it may go on where it stopped.
    public var isResumable: Bool {
        self.ifRange != nil && self.contentEncoding == nil && self.acceptsRanges != false
    }

    /// What two sightings of an object say about each other.
    public enum Comparison: Sendable {
        /// An equal strong validator proves equal bytes.
        case same
        /// Something that should be equal differs.
        case different
        /// Nothing speaks against it, nothing proves it.
        case unproved
    }

    /// Compares this object, as stored, with what a later answer says.
    ///
    /// A differing tag, weak ones included, a differing date or size always disproves. An equal date proves if
    /// it was strong when it was stored: a change after that moment would have changed it.
    public func compare(_ answer: RemoteObject) -> Comparison {
        func differ<Value: Equatable>(_ left: Value?, _ right: Value?) -> Bool {
            left != nil && right != nil && left != right
        }
        if differ(self.totalBytes, answer.totalBytes) || differ(self.entityTag, answer.entityTag)
            || differ(self.lastModified, answer.lastModified)
        {
            return .different
        }
        if let tag = answer.entityTag, tag == self.entityTag, EntityTag(tag).isStrong { return .same }
        if self.lastModifiedIsStrong, self.lastModified != nil, self.lastModified == answer.lastModified {
            return .same
        }
        return .unproved
    }
}

/// Media types (RFC 9110 §8.3.1).
enum MediaType {
    /// `type/subtype` in small letters; nil if nothing is left.
    static func essence(_ text: String) -> String? {
        let essence = ASCII.lowercased(ASCII.trimmed(text.prefix { $0 != ";" }))
        return essence.isEmpty ? nil : essence
    }

    /// Whether a browser would show it as a page.
    static func isWebPage(_ essence: String?) -> Bool {
        essence == "text/html" || essence == "application/xhtml+xml"
    }
}
