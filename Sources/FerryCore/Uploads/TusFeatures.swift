/// What a tus server says about itself in its answer to OPTIONS (tus 1.0.0, "OPTIONS").
public struct TusFeatures: Hashable, Sendable, Codable {
    /// `Tus-Extension`.
    public var extensions: Set<String>
    /// `Tus-Max-Size`.
    public var maxSize: Int64?
    /// The digest to send with each piece, of those in `Tus-Checksum-Algorithm`; nil for none.
    public var checksum: DigestAlgorithm?

    /// A server that has told nothing.
    public init(extensions: Set<String> = [], maxSize: Int64? = nil, checksum: DigestAlgorithm? = nil) {
        self.extensions = extensions
        self.maxSize = maxSize
        self.checksum = checksum
    }

    /// Reads an answer to OPTIONS; nil if it is no tus server's of version 1.0.0.
    public init?(_ head: ResponseHead) {
        guard (200..<300).contains(head.status),
            Self.list(head, "Tus-Version").contains(TusPlan.version)
                || head.first("Tus-Resumable") == TusPlan.version && head.first("Tus-Extension") != nil
        else { return nil }
        self.extensions = Set(Self.list(head, "Tus-Extension"))
        self.maxSize = head.first("Tus-Max-Size").flatMap { ASCII.number(Array(ASCII.trimmed($0).utf8)) }
        guard self.extensions.contains("checksum") else { return }
        let offered = Self.list(head, "Tus-Checksum-Algorithm")
        let wanted: [DigestAlgorithm] = [.sha256, .sha512, .sha1]
        self.checksum = wanted.first { offered.contains(TusPlan.name(of: $0)) }
    }

    private static func list(_ head: ResponseHead, _ name: String) -> [String] {
        head.values(name).flatMap { $0.split(separator: ",") }.map { ASCII.lowercased(ASCII.trimmed($0)) }
    }
}
