/// What the fields of an answer say about the digest of the whole file.
///
/// | field | covers | mismatch decides |
/// |---|---|---|
/// | `Repr-Digest` (RFC 9530 §3), `x-ms-blob-content-md5` | the whole, on a 206 too | without content coding |
/// | `Content-Digest` (RFC 9530 §2) | this answer's bytes; taken if they are the whole | without content coding |
/// | `Digest` (RFC 3230), `Content-MD5`, `x-goog-hash`, `x-amz-checksum-*` | the one or the other, as its author meant it | if the answer holds the whole, without content coding |
///
/// So a field decides where everyone who could have written it means the very bytes that are stored. Elsewhere
/// it is a hint: a match proves, a mismatch says nothing. With a content coding in play servers confuse the
/// coded and the plain bytes, and what is stored may be either. MD5, SHA-1 and the CRCs of object stores decide
/// like the others: their weakness is that a forger can make a match, while a mismatch always means other bytes.
///
/// Not taken: what does not parse or has a wrong length, other algorithms (adler, unixsum …), a CRC in the
/// fields of the RFCs, whose byte order nobody has settled, and the checksum of checksums of an S3 object that
/// was uploaded in parts (`-N`, `COMPOSITE`). Trailer fields count like header fields (RFC 9530 §2, §3).
public enum DigestFields {
    /// The value of `Want-Repr-Digest` that asks for what ``expected(head:trailers:)`` reads (RFC 9530 §4).
    public static let wanted = "sha-256=10, sha-512=3"

    /// Reads the fields of a 200 or 206; any other answer says nothing of the file.
    ///
    /// A file made from several answers is held to the expectations of all of them; they are void once the
    /// object is known to have changed.
    ///
    /// - Parameters:
    ///   - head: The final answer's head.
    ///   - trailers: The fields after its body.
    /// - Returns: Each expectation once, header fields first.
    public static func expected(head: ResponseHead, trailers: [ResponseHead.Field]) -> [ExpectedDigest] {
        guard head.status == 200 || head.status == 206 else { return [] }
        let isWhole = self.holdsTheWhole(head)
        let isPlain = self.isPlain(head)
        let isComposite = head.values("x-amz-checksum-type").contains { ASCII.lowercased($0) == "composite" }
        var found: [ExpectedDigest] = []
        for fields in [head.fields, trailers] {
            let section = ResponseHead(status: head.status, fields: fields)
            for rule in self.rules where isWhole || rule.scope != .answer {
                guard !(rule.mayBeComposite && isComposite) else { continue }
                for checksum in rule.read(section.values(rule.field)) {
                    let expectation = ExpectedDigest(
                        checksum: checksum,
                        source: .field(rule.field),
                        isDecisive: isPlain && (isWhole || rule.scope == .object)
                    )
                    if !found.contains(expectation) { found.append(expectation) }
                }
            }
        }
        return found
    }

    /// Whether an answer says that trailers will name a digest of the whole file (RFC 9110 §6.6.2).
    public static func areAnnounced(by head: ResponseHead) -> Bool {
        guard head.status == 200 || head.status == 206 else { return false }
        let isWhole = self.holdsTheWhole(head)
        let announced = head.values("Trailer")
            .flatMap { $0.split(separator: ",") }
            .map { ASCII.lowercased(ASCII.trimmed($0)) }
        return self.rules.contains { rule in
            (isWhole || rule.scope != .answer) && announced.contains(ASCII.lowercased(rule.field))
        }
    }

    private enum Scope {
        /// The whole object, whatever part of it the answer holds.
        case object
        /// The bytes of the answer.
        case answer
        /// One of these; nobody can tell which.
        case unclear
    }

    private struct Rule: Sendable {
        let field: String
        let scope: Scope
        var mayBeComposite = false
        let read: @Sendable (_ values: [String]) -> [Checksum]
    }

    private static let rules: [Rule] =
        [
            Rule(field: "Repr-Digest", scope: .object, read: Self.dictionary),
            Rule(field: "Content-Digest", scope: .answer, read: Self.dictionary),
            Rule(field: "Digest", scope: .unclear) { Self.pairs($0) },
            Rule(field: "Content-MD5", scope: .unclear) { Self.plain($0, .md5) },
            Rule(field: "x-ms-blob-content-md5", scope: .object) { Self.plain($0, .md5) },
            // cloud.google.com/storage/docs/xml-api/reference-headers
            Rule(field: "x-goog-hash", scope: .unclear) { Self.pairs($0, and: .crc32c) },
        ]
        // docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
        + [
            ("sha256", .sha256), ("sha512", .sha512), ("sha1", .sha1), ("md5", .md5),
            ("crc64nvme", .crc64nvme), ("crc32c", .crc32c), ("crc32", .crc32),
        ].map { name, algorithm in
            Rule(field: "x-amz-checksum-\(name)", scope: .unclear, mayBeComposite: true) {
                Self.plain($0, algorithm)
            }
        }

    /// Whether the answer's content is the whole representation: a 200, or a 206 of all bytes.
    private static func holdsTheWhole(_ head: ResponseHead) -> Bool {
        guard head.status == 206 else { return true }
        let ranges = head.values("Content-Range")
        guard ranges.count == 1, case .satisfied(0, let last, let total?) = ContentRange(ranges[0]) else {
            return false
        }
        return last == total - 1
    }

    /// Whether no content coding is in play.
    ///
    /// Google's store decodes gzip objects on the way out and then sends the hash of the coded ones; the second
    /// field tells (cloud.google.com/storage/docs/transcoding).
    private static func isPlain(_ head: ResponseHead) -> Bool {
        ["Content-Encoding", "x-goog-stored-content-encoding"].flatMap { head.values($0) }
            .flatMap { $0.split(separator: ",") }
            .map { ASCII.lowercased(ASCII.trimmed($0)) }
            .allSatisfy { $0.isEmpty || $0 == "identity" }
    }

    /// `sha-256=:BASE64:, …` (RFC 9530 §2); a broken dictionary gives nothing.
    private static func dictionary(_ values: [String]) -> [Checksum] {
        guard let dictionary = StructuredDictionary(lines: values) else { return [] }
        return DigestAlgorithm.allCases.flatMap { algorithm in
            dictionary.members.compactMap { key, member -> Checksum? in
                guard DigestAlgorithm(fieldKey: key) == algorithm, case .item(let item) = member,
                    case .bytes(let bytes) = item.value
                else { return nil }
                return Checksum(algorithm: algorithm, bytes: bytes)
            }
        }
    }

    /// `SHA-256=BASE64,MD5=BASE64` (RFC 3230 §4.3.2); `id-` speaks of the bytes without content coding (RFC 5843).
    ///
    /// `other` is an algorithm that has its own name there.
    private static func pairs(_ values: [String], and other: DigestAlgorithm? = nil) -> [Checksum] {
        values.flatMap { $0.split(separator: ",") }.compactMap { pair in
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { return nil }
            var name = ASCII.lowercased(ASCII.trimmed(parts[0]))
            if name.hasPrefix("id-") { name.removeFirst(3) }
            let own = other.flatMap { name == $0.rawValue ? $0 : nil }
            guard let algorithm = own ?? DigestAlgorithm(fieldKey: name) else { return nil }
            return self.plain([String(parts[1])], algorithm).first
        }
    }

    /// `BASE64` alone (RFC 1864).
    private static func plain(_ values: [String], _ algorithm: DigestAlgorithm) -> [Checksum] {
        values.compactMap { value in
            Base64.decode(ASCII.trimmed(value).utf8).flatMap { Checksum(algorithm: algorithm, bytes: $0) }
        }
    }
}
