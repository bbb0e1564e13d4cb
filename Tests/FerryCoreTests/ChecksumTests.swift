import FerryCore
import FoundationEssentials
import Testing

private let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

@Suite struct ChecksumTests {
    @Test(
        arguments: [
            ("sha256", .sha256), ("sha-256", .sha256), ("SHA256", .sha256), ("SHA-256", .sha256),
            ("Sha-512", .sha512), ("sha384", .sha384), ("SHA-224", .sha224), ("sha1", .sha1),
            ("SHA-1", .sha1), ("md5", .md5), ("MD5", .md5), ("crc32c", .crc32c), ("CRC32", .crc32),
            ("CRC64NVME", .crc64nvme),
        ] as [(String, DigestAlgorithm)]
    )
    func `an algorithm is known by the names that people write`(name: String, expected: DigestAlgorithm) {
        #expect(DigestAlgorithm(userName: name) == expected)
    }

    @Test(
        arguments: [
            "sha", "sha2", "sha-2", "md-5", "md4", "sha--256", "-sha256", "sha 256", "sha256 ", "sha_256",
            "sha512/256", "crc", "crc-32", "crc32b", "crc64", "ſha256",
        ] + nastyTexts
    )
    func `anything else is no algorithm`(name: String) {
        #expect(DigestAlgorithm(userName: name) == nil)
    }

    @Test func `raw values, lengths and strength are these`() {
        let all = DigestAlgorithm.allCases
        #expect(
            all.map(\.rawValue) == [
                "sha-256", "sha-512", "sha-384", "sha-224", "sha-1", "md5", "crc32c", "crc32", "crc64nvme",
            ]
        )
        #expect(all.map(\.byteCount) == [32, 64, 48, 28, 20, 16, 4, 4, 8])
        #expect(
            all.map(\.strength) == [
                .strong, .strong, .strong, .strong, .fallen, .fallen, .checkValue, .checkValue, .checkValue,
            ]
        )
    }

    @Test(arguments: ["sha256:\(abc)", "sha-256:\(abc.uppercased())", "SHA256=\(abc)"])
    func `a checksum is an algorithm and hexadecimal digits`(text: String) throws {
        let checksum = try #require(Checksum(text: text))
        #expect(checksum.algorithm == .sha256)
        #expect(checksum.hex == abc)
        #expect(checksum.text == "sha-256:\(abc)")
        #expect(checksum.bytes.prefix(2) == [0xBA, 0x78])
    }

    @Test(
        arguments: [
            abc, "sha256", "sha256:", ":\(abc)", "sha256:\(abc)0", "sha256:\(abc)00",
            "sha256:\(abc.dropLast())",
            "sha256:\(abc.dropLast(2))", "sha512:\(abc)", "md5:\(abc)", "sha256: \(abc)", "sha256:\(abc) ",
            " sha256:\(abc)", "sha256::\(abc)", "sha256:\(abc.dropLast())g", "sha256:0x\(abc.dropLast(2))",
            "sha256:\(String(repeating: "é", count: 32))", "sha256:\(String(repeating: "٣", count: 64))",
            "sha3:\(abc)", "sha256-\(abc)", "sha256:\(abc)\n", "sha256:\(abc)\0",
        ] + nastyTexts
    )
    func `anything else is no checksum`(text: String) {
        #expect(Checksum(text: text) == nil)
    }

    @Test(arguments: DigestAlgorithm.allCases)
    func `a checksum has the length of its algorithm`(algorithm: DigestAlgorithm) {
        let bytes = [UInt8](repeating: 0xA5, count: algorithm.byteCount)
        let checksum = Checksum(algorithm: algorithm, bytes: bytes)
        #expect(checksum?.bytes == bytes)
        #expect(checksum.flatMap { Checksum(text: $0.text) } == checksum)
        #expect(Checksum(algorithm: algorithm, bytes: bytes + [0]) == nil)
        #expect(Checksum(algorithm: algorithm, bytes: bytes.dropLast()) == nil)
        #expect(Checksum(algorithm: algorithm, bytes: []) == nil)
    }

    @Test(arguments: [DigestSource.user, .field("Repr-Digest"), .field("")])
    func `a source keeps its word`(source: DigestSource) {
        #expect(DigestSource(rawValue: source.rawValue) == source)
    }
}

@Suite struct ExpectedDigestTests {
    private let text = #"[{"checksum":"sha-256:\#(abc)","isDecisive":true,"source":"user"}]"#

    @Test func `an expectation is kept as readable JSON`() throws {
        let checksum = try #require(Checksum(text: "sha256:\(abc)"))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(
            String(decoding: try encoder.encode([ExpectedDigest.user(checksum)]), as: UTF8.self) == self.text
        )
        let hint = ExpectedDigest(checksum: checksum, source: .field("Digest"), isDecisive: false)
        let copy = try JSONDecoder().decode([ExpectedDigest].self, from: try encoder.encode([hint]))
        #expect(copy == [hint])
    }

    @Test func `a broken checksum in JSON is an error`() {
        let broken = self.text.replacing("sha-256", with: "sha-512")
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([ExpectedDigest].self, from: Data(broken.utf8))
        }
    }
}

@Suite struct BaseEncodingTests {
    /// RFC 4648 §10, and the last two letters of the alphabet.
    private static let pairs: [(String, [UInt8])] =
        [
            ("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
        ]
        .map { ($0.0, Array($0.1.utf8)) } + [
            ("Zm9vYmFy", Array("foobar".utf8)), ("+/+/", [0xFB, 0xFF, 0xBF]),
        ]

    @Test(arguments: Self.pairs)
    func `base64 is read and written`(text: String, bytes: [UInt8]) {
        #expect(Base64.encode(bytes) == text)
        #expect(Base64.decode(text.utf8) == bytes)
        #expect(Base64.decode(text.utf8, lenient: true) == bytes)
        #expect(Base64.decode(text.utf8.filter { $0 != UInt8(ascii: "=") }, lenient: true) == bytes)
    }

    @Test func `all bytes survive base64 and hexadecimal`() {
        let all = [UInt8](0...255)
        for count in 0...all.count {
            let bytes = Array(all.suffix(count))
            #expect(Base64.decode(Base64.encode(bytes).utf8) == bytes)
            #expect(Hex.decode(Hex.encode(bytes).utf8) == bytes)
            #expect(Hex.decode(Hex.encode(bytes).uppercased().utf8) == bytes)
        }
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zg===", "Zm8", "Zm9v=", "Zm9v====", "=", "==", "====", "Zg==Zg==", "Z=g=", "Zh==",
        "Zm9=", "Zm 9v", " Zm9v", "Zm9v\n", "Zm9v\r\n", "-_-_", "Zm9vé", "Zm9\0", "🇩🇪",
    ])
    func `anything else is no base64`(text: String) {
        #expect(Base64.decode(text.utf8) == nil)
    }

    @Test(arguments: [
        "Z", "Zg=", "Zg===", "Zm9v=", "=", "====", "Zg==Zg==", "Z=g=", "Zm 9v", "-_-_", "Zm9vZ",
    ])
    func `leniency ends at the padding`(text: String) {
        #expect(Base64.decode(text.utf8, lenient: true) == nil)
    }

    @Test func `leniency passes over unused bits`() {
        #expect(Base64.decode("Zh==".utf8, lenient: true) == [0x66])
        #expect(Base64.decode("Zm9".utf8, lenient: true) == [0x66, 0x6F])
    }

    @Test(arguments: ["0", "000", "0g", "g0", "0x", " 00", "00 ", "+1", "-1", "é", "٠٠", "0\0"])
    func `anything else is not hexadecimal`(text: String) {
        #expect(Hex.decode(text.utf8) == nil)
    }
}
