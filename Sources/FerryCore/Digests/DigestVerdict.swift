/// What the computed digests of a whole file say about what was expected of it.
public enum DigestVerdict: Hashable, Sendable {
    /// This expectation is met.
    case proved(ExpectedDigest)
    /// Nothing decides: there was no expectation, or only hints that differ.
    case unproved
    /// This expectation is not met: the file must not be published.
    case mismatch(ExpectedDigest)

    /// Judges the digests of a file.
    ///
    /// What the user expects stands above all fields: with it met, a server that contradicts is wrong. Among
    /// fields a decisive mismatch wins, except that a match of a strong algorithm outweighs a mismatch of MD5
    /// or SHA-1, and both one of a CRC: then the bytes are right, and the weak field is stale. An expectation
    /// whose algorithm was not computed is passed over, yet nothing replaces one of the user's.
    ///
    /// - Parameters:
    ///   - computed: The digests of all bytes of the file, for ``algorithms(for:)``.
    ///   - expected: All that is known, of the user and of every answer that the file was made from.
    public init(computed: [DigestAlgorithm: Checksum], expected: [ExpectedDigest]) {
        let wanted = expected.filter { $0.source == .user }
        if let first = wanted.first {
            if let wrong = wanted.first(where: { $0.isMet(by: computed) == false }) {
                self = .mismatch(wrong)
            } else {
                self = wanted.allSatisfy { $0.isMet(by: computed) == true } ? .proved(first) : .unproved
            }
            return
        }
        for strength in DigestAlgorithm.Strength.allCases {
            let equals = expected.filter { $0.checksum.algorithm.strength == strength }
            if let wrong = equals.first(where: { $0.isDecisive && $0.isMet(by: computed) == false }) {
                self = .mismatch(wrong)
                return
            }
            if let right = equals.first(where: { $0.isMet(by: computed) == true }) {
                self = .proved(right)
                return
            }
        }
        self = .unproved
    }

    /// The digests that are needed to judge by all of these.
    public static func algorithms(for expected: [ExpectedDigest]) -> Set<DigestAlgorithm> {
        Set(expected.map(\.checksum.algorithm))
    }
}

extension ExpectedDigest {
    /// Whether the digest is the expected one; nil if it was not computed.
    fileprivate func isMet(by computed: [DigestAlgorithm: Checksum]) -> Bool? {
        computed[self.checksum.algorithm].map { $0 == self.checksum }
    }
}
