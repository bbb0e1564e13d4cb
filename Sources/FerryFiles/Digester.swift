import CCrypto
public import FerryCore

/// Computes one or more digests of bytes as they pass: CRCs itself, all others with libcrypto.
///
/// One thread at a time may use it. libcrypto cannot save a digest's state, so after a restart the bytes are read
/// again (``OpenFile/digest(of:range:isCancelled:)``).
public final class Digester {
    /// A call of libcrypto that failed.
    public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// The digest that was to be computed.
        public let algorithm: DigestAlgorithm
        /// The words of libcrypto.
        public let reason: String

        /// `cannot compute md5: …`.
        public var description: String { "cannot compute \(self.algorithm.rawValue): \(self.reason)" }
    }

    private let contexts: [DigestAlgorithm: OpaquePointer]
    private var sums: [CyclicSum]

    /// Starts digests.
    ///
    /// - Throws: ``Failure`` if libcrypto lacks one, as it does MD5 where FIPS rules hold.
    public convenience init(_ algorithms: Set<DigestAlgorithm>) throws(Failure) {
        try self.init(algorithms, properties: nil)
    }

    /// Starts digests with implementations that have these properties (property(7ossl)).
    init(_ algorithms: Set<DigestAlgorithm>, properties: String?) throws(Failure) {
        var contexts: [DigestAlgorithm: OpaquePointer] = [:]
        let sums = algorithms.compactMap { CyclicSum($0) }
        do throws(Failure) {
            for algorithm in algorithms.subtracting(sums.map(\.algorithm)) {
                contexts[algorithm] = try Self.start(algorithm, properties)
            }
        } catch {
            contexts.values.forEach { EVP_MD_CTX_free($0) }
            throw error
        }
        self.contexts = contexts
        self.sums = sums
    }

    deinit {
        self.contexts.values.forEach { EVP_MD_CTX_free($0) }
    }

    /// Takes the next bytes.
    ///
    /// - Throws: ``Failure``; the digests are void then.
    public func update(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        guard let base = bytes.baseAddress else { return }
        for (algorithm, context) in self.contexts {
            try Self.check(EVP_DigestUpdate(context, base, bytes.count), algorithm)
        }
        for index in self.sums.indices { self.sums[index].update(bytes) }
    }

    /// The digests of all bytes taken so far; more bytes may follow.
    public func finish() throws(Failure) -> [DigestAlgorithm: Checksum] {
        var digests: [DigestAlgorithm: Checksum] = [:]
        for (algorithm, context) in self.contexts {
            guard let copy = EVP_MD_CTX_new() else { throw Self.failure(algorithm) }
            defer { EVP_MD_CTX_free(copy) }
            try Self.check(EVP_MD_CTX_copy_ex(copy, context), algorithm)
            var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: UInt32 = 0
            try Self.check(EVP_DigestFinal_ex(copy, &bytes, &count), algorithm)
            guard let digest = Checksum(algorithm: algorithm, bytes: Array(bytes.prefix(Int(count)))) else {
                throw Failure(algorithm: algorithm, reason: "a digest of \(count) bytes")
            }
            digests[algorithm] = digest
        }
        for sum in self.sums { digests[sum.algorithm] = Checksum(algorithm: sum.algorithm, bytes: sum.bytes) }
        return digests
    }

    private static func start(
        _ algorithm: DigestAlgorithm,
        _ properties: String?
    ) throws(Failure) -> OpaquePointer {
        guard let name = algorithm.cryptoName, let method = EVP_MD_fetch(nil, name, properties) else {
            throw self.failure(algorithm)
        }
        defer { EVP_MD_free(method) }  // the context holds its own reference
        guard let context = EVP_MD_CTX_new() else { throw self.failure(algorithm) }
        do throws(Failure) {
            try self.check(EVP_DigestInit_ex(context, method, nil), algorithm)
        } catch {
            EVP_MD_CTX_free(context)
            throw error
        }
        return context
    }

    private static func check(_ result: Int32, _ algorithm: DigestAlgorithm) throws(Failure) {
        guard result != 1 else { return }
        throw self.failure(algorithm)
    }

    /// Takes the oldest error of this thread's queue and empties it (ERR_get_error(3)).
    private static func failure(_ algorithm: DigestAlgorithm) -> Failure {
        let code = ERR_get_error()
        ERR_clear_error()
        let reason = ERR_reason_error_string(code).map { String(cString: $0) }
        return Failure(algorithm: algorithm, reason: reason ?? "libcrypto error \(code)")
    }
}

extension DigestAlgorithm {
    /// The name that libcrypto knows it by (EVP_MD-SHA2(7ossl) and its like); nil if it does not.
    fileprivate var cryptoName: String? {
        switch self {
        case .sha256: "SHA2-256"
        case .sha512: "SHA2-512"
        case .sha384: "SHA2-384"
        case .sha224: "SHA2-224"
        case .sha1: "SHA1"
        case .md5: "MD5"
        case .crc32c, .crc32, .crc64nvme: nil
        }
    }
}
