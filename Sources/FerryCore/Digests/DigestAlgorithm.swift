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
    /// The CRC-32C that object stores name, highest byte first (RFC 3720 §12.1 has the polynomial).
    case crc32c
    /// The CRC-32 of zlib and Ethernet, highest byte first.
    case crc32
    /// The CRC-64 of NVM Express, highest byte first.
    case crc64nvme

    /// What a match is worth.
    public enum Strength: Sendable, CaseIterable {
        /// Nobody can make two contents with one digest.
        case strong
        /// People have made two contents with one digest (RFC 9530 §5).
        case fallen
        /// A check value: anybody can make any content have it.
        case checkValue
    }

    /// Reads the name as people write it: `sha256`, `sha-256`, `SHA256`.
    public init?(userName: String) {
        let name = ASCII.lowercased(userName)
        guard let found = Self.allCases.first(where: { name == $0.rawValue || name == $0.compactName }) else {
            return nil
        }
        self = found
    }

    /// Reads the name of a digest field's member, in which `sha` is SHA-1 (RFC 3230 §4.1.1, RFC 9530 §5).
    ///
    /// Check values are passed over: what their bytes look like there has never been agreed upon.
    init?(fieldKey: String) {
        self.init(rawValue: fieldKey == "sha" ? Self.sha1.rawValue : fieldKey)
        guard self.strength != .checkValue else { return nil }
    }

    /// The only digest of so many bytes, check values aside; nil if there is none.
    init?(byteCount: Int) {
        let digests = Self.allCases.filter { $0.strength != .checkValue }
        guard let found = digests.first(where: { $0.byteCount == byteCount }) else { return nil }
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
        case .crc64nvme: 8
        case .crc32c, .crc32: 4
        }
    }

    /// What a match is worth.
    public var strength: Strength {
        switch self {
        case .sha256, .sha512, .sha384, .sha224: .strong
        case .sha1, .md5: .fallen
        case .crc32c, .crc32, .crc64nvme: .checkValue
        }
    }

    private var compactName: String { self.rawValue.filter { $0 != "-" } }
}
