/// A digest of known kind; its length always fits the algorithm.
public struct Checksum: Hashable, Sendable {
    /// How it was computed.
    public let algorithm: DigestAlgorithm
    /// The digest.
    public let bytes: [UInt8]

    /// Makes a checksum; nil if the length is not that of the algorithm.
    public init?(algorithm: DigestAlgorithm, bytes: [UInt8]) {
        guard bytes.count == algorithm.byteCount else { return nil }
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Reads `ALGO:HEX`, the value of `--checksum`; `ALGO=HEX`, as aria2's lists have it, is taken too.
    ///
    /// Nil for an unknown algorithm, another length, or anything that is no hexadecimal digit.
    public init?(text: String) {
        let parts = text.split(
            maxSplits: 1,
            omittingEmptySubsequences: false,
            whereSeparator: { $0 == ":" || $0 == "=" }
        )
        guard parts.count == 2, let algorithm = DigestAlgorithm(userName: String(parts[0])),
            let bytes = Hex.decode(parts[1].utf8)
        else { return nil }
        self.init(algorithm: algorithm, bytes: bytes)
    }

    /// The digest in hexadecimal, small letters.
    public var hex: String { Hex.encode(self.bytes) }

    /// `sha-256:HEX`; ``init(text:)`` reads it.
    public var text: String { "\(self.algorithm.rawValue):\(self.hex)" }
}

/// Kept as one string, its ``Checksum/text``.
extension Checksum: Codable {
    /// Reads the string.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let checksum = Checksum(text: text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\"\(text)\" is no checksum"
            )
        }
        self = checksum
    }

    /// Writes the string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.text)
    }
}
