import CFerryLinux
import FerryCore

/// A cyclic redundancy check of bytes as they pass.
struct CyclicSum: Sendable {
    /// The algorithm, one of the CRCs.
    let algorithm: DigestAlgorithm
    private let kind: ferry_crc_kind
    private var value: UInt64 = 0

    /// Begins; nil if the algorithm is no CRC.
    init?(_ algorithm: DigestAlgorithm) {
        switch algorithm {
        case .crc32c: self.kind = FERRY_CRC32C
        case .crc32: self.kind = FERRY_CRC32
        case .crc64nvme: self.kind = FERRY_CRC64NVME
        case .sha256, .sha512, .sha384, .sha224, .sha1, .md5: return nil
        }
        self.algorithm = algorithm
    }

    /// Takes the next bytes.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        self.value = ferry_crc(self.kind, self.value, base, bytes.count)
    }

    /// The value of all bytes taken so far, highest byte first.
    var bytes: [UInt8] {
        withUnsafeBytes(of: self.value.bigEndian) { Array($0.suffix(self.algorithm.byteCount)) }
    }
}
