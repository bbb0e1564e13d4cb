import CFerryLinux
import FerryCore
import Testing

@testable import FerryFiles

@Suite struct CyclicSumTests {
    /// The SCSI Read (10) command of RFC 3720 B.4.
    private static let command: [UInt8] = [
        0x01, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
        0, 0, 0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
    ]
    private static let digits = Array("123456789".utf8)

    struct Vector: Sendable {
        let kind: ferry_crc_kind
        let bytes: [UInt8]
        let value: UInt64
    }

    /// RFC 3720 B.4, which shows the values with their lowest byte first, and the check values of the catalogues.
    private static let vectors = [
        Vector(kind: FERRY_CRC32C, bytes: [UInt8](repeating: 0, count: 32), value: 0x8A91_36AA),
        Vector(kind: FERRY_CRC32C, bytes: [UInt8](repeating: 0xFF, count: 32), value: 0x62A8_AB43),
        Vector(kind: FERRY_CRC32C, bytes: Array(0..<32), value: 0x46DD_794E),
        Vector(kind: FERRY_CRC32C, bytes: Array((0..<32).reversed()), value: 0x113F_DB5C),
        Vector(kind: FERRY_CRC32C, bytes: command, value: 0xD996_3A56),
        Vector(kind: FERRY_CRC32C, bytes: digits, value: 0xE306_9283),
        Vector(kind: FERRY_CRC32, bytes: digits, value: 0xCBF4_3926),
        Vector(kind: FERRY_CRC64NVME, bytes: digits, value: 0xAE8B_1486_0A79_9888),
        Vector(kind: FERRY_CRC32C, bytes: [], value: 0),
        Vector(kind: FERRY_CRC64NVME, bytes: [], value: 0),
    ]

    @Test(arguments: vectors)
    func `known values come out with the processor's instructions and without`(vector: Vector) {
        vector.bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            #expect(ferry_crc(vector.kind, 0, base, bytes.count) == vector.value)
            #expect(ferry_crc_portable(vector.kind, 0, base, bytes.count) == vector.value)
        }
    }

    @Test(arguments: [DigestAlgorithm.crc32c, .crc32, .crc64nvme])
    func `neither pieces nor alignment matter, nor who computes`(algorithm: DigestAlgorithm) throws {
        let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) }
        var whole = try #require(CyclicSum(algorithm))
        bytes.withUnsafeBytes { whole.update($0) }
        for step in [1, 3, 7, 8, 9, 64, 999] {
            var sum = try #require(CyclicSum(algorithm))
            bytes.withUnsafeBytes { raw in
                for start in stride(from: 0, to: raw.count, by: step) {
                    sum.update(UnsafeRawBufferPointer(rebasing: raw[start..<min(start + step, raw.count)]))
                }
            }
            #expect(sum.bytes == whole.bytes, "\(step)")
        }
        let kind = [.crc32c: FERRY_CRC32C, .crc32: FERRY_CRC32][algorithm] ?? FERRY_CRC64NVME
        for start in 0..<9 {
            bytes[start...].withUnsafeBytes { raw in
                guard let base = raw.baseAddress else { return }
                #expect(
                    ferry_crc(kind, 0, base, raw.count) == ferry_crc_portable(kind, 0, base, raw.count)
                )
            }
        }
    }

    @Test func `a value is written with its highest byte first`() throws {
        var sum = try #require(CyclicSum(.crc32c))
        Self.digits.withUnsafeBytes { sum.update($0) }
        #expect(Base64.encode(sum.bytes) == "4waSgw==")
        #expect(CyclicSum(.sha256) == nil)
    }
}
