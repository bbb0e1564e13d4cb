/// A digest that Ferry can compute; the raw value is its name in RFC 9530 fields and in JSON.
public enum DigestAlgorithm: String, Sendable, Codable, CaseIterable {
    /// SHA-256.
    case sha256 = "sha-256"
    /// SHA-512.
    case sha512 = "sha-512"
    /// SHA-384.
    case sha384 = "sha-384"
    /// SHA-224.
    case sha224 = "sha-224"
    /// SHA-1; finds accidents, not forgeries.
    case sha1 = "sha-1"
    /// MD5; finds accidents, not forgeries.
    case md5

    /// Reads the name as people write it: `sha256`, `sha-256`, `SHA256`.
    public init?(userName: String) {
        let name = ASCII.lowercased(userName)
        guard let found = Self.allCases.first(where: { name == $0.rawValue || name == $0.compactName }) else {
            return nil
        }
        self = found
    }

    /// Reads the name of a digest field's member, in which `sha` is SHA-1 (RFC 3230 §4.1.1, RFC 9530 §5).
    init?(fieldKey: String) {
        self.init(rawValue: fieldKey == "sha" ? Self.sha1.rawValue : fieldKey)
    }

    /// The only algorithm whose digests have so many bytes; nil if there is none.
    init?(byteCount: Int) {
        guard let found = Self.allCases.first(where: { $0.byteCount == byteCount }) else { return nil }
        self = found
    }

    /// The length of a digest.
    public var byteCount: Int {
        switch self {
        case .sha256: 32
        case .sha512: 64
        case .sha384: 48
        case .sha224: 28
        case .sha1: 20
        case .md5: 16
        }
    }

    /// Whether nobody can make two contents with one digest; MD5 and SHA-1 have fallen (RFC 9530 §5).
    public var isStrong: Bool {
        switch self {
        case .sha256, .sha512, .sha384, .sha224: true
        case .sha1, .md5: false
        }
    }

    private var compactName: String { self.rawValue.filter { $0 != "-" } }
}
