/// An entity tag as a server sent it (RFC 9110 §8.8.3).
public struct EntityTag: Hashable, Sendable {
    /// The field's value, unchanged.
    public let raw: String
    /// Whether it begins with `W/`, in that case.
    public let isWeak: Bool
    /// Whether it has the form of a tag and can be sent back byte for byte; tags without quotes cannot.
    ///
    /// Bytes above ASCII are legal in a tag, but the text no longer tells how they were encoded.
    public let isWellFormed: Bool

    /// Looks at a field's value; any text is taken.
    public init(_ raw: String) {
        self.raw = raw
        self.isWeak = raw.hasPrefix("W/")
        let opaque = Array(raw.utf8.dropFirst(self.isWeak ? 2 : 0))
        self.isWellFormed =
            opaque.count >= 2 && opaque.first == 0x22 && opaque.last == 0x22
            && opaque.dropFirst().dropLast().allSatisfy { $0 == 0x21 || (0x23...0x7E).contains($0) }
    }

    /// Whether two equal ones prove equal bytes, and `If-Range` may carry it.
    public var isStrong: Bool { self.isWellFormed && !self.isWeak }
}

/// What proves that the remote object is still the same.
public struct Validator: Hashable, Sendable, Codable {
    /// The kinds, best first.
    public enum Kind: String, Codable, Sendable {
        /// The entity tag.
        case etag
        /// The date of the last change.
        case lastModified = "last-modified"
        /// Nothing but the size.
        case size
    }

    /// What it is.
    public var kind: Kind
    /// As the server sent it; decimal bytes for a size.
    public var value: String
    /// Whether two equal ones prove equal bytes (RFC 9110 §8.8.1).
    public var isStrong: Bool

    /// Makes a validator.
    public init(kind: Kind, value: String, isStrong: Bool) {
        self.kind = kind
        self.value = value
        self.isStrong = isStrong
    }
}
