/// Who said what a file's digest must be; the raw value is `user` or the field's name.
public enum DigestSource: RawRepresentable, Hashable, Sendable, Codable {
    /// The user: `--checksum`, `--checksums` or a list.
    case user
    /// A header or trailer field of this name.
    case field(String)

    /// Takes `user` or a field's name.
    public init(rawValue: String) {
        self = rawValue == "user" ? .user : .field(rawValue)
    }

    /// `user` or the field's name.
    public var rawValue: String {
        switch self {
        case .user: "user"
        case .field(let name): name
        }
    }
}

/// What a whole file's digest is said to be.
public struct ExpectedDigest: Hashable, Sendable, Codable {
    /// The digest.
    public var checksum: Checksum
    /// Who said so.
    public var source: DigestSource
    /// Whether a mismatch means that the file is wrong; else only a match says something.
    public var isDecisive: Bool

    /// Makes an expectation.
    public init(checksum: Checksum, source: DigestSource, isDecisive: Bool) {
        self.checksum = checksum
        self.source = source
        self.isDecisive = isDecisive
    }

    /// What the user expects, which always decides.
    public static func user(_ checksum: Checksum) -> ExpectedDigest {
        ExpectedDigest(checksum: checksum, source: .user, isDecisive: true)
    }
}
