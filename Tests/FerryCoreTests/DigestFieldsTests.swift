import FerryCore
import Testing

/// A checksum whose bytes are all the same, its fields' text, and a shorter name for a table.
private func sum(_ algorithm: DigestAlgorithm, _ byte: UInt8 = 1) -> Checksum {
    guard
        let checksum = Checksum(
            algorithm: algorithm,
            bytes: [UInt8](repeating: byte, count: algorithm.byteCount)
        )
    else { preconditionFailure("the length is right") }
    return checksum
}

private func base64(_ algorithm: DigestAlgorithm, _ byte: UInt8 = 1) -> String {
    Base64.encode(sum(algorithm, byte).bytes)
}

private func decides(_ algorithm: DigestAlgorithm, _ field: String, _ byte: UInt8 = 1) -> ExpectedDigest {
    ExpectedDigest(checksum: sum(algorithm, byte), source: .field(field), isDecisive: true)
}

private func hints(_ algorithm: DigestAlgorithm, _ field: String, _ byte: UInt8 = 1) -> ExpectedDigest {
    ExpectedDigest(checksum: sum(algorithm, byte), source: .field(field), isDecisive: false)
}

@Suite struct DigestFieldsTests {
    /// Each field with a good value, and what it says on a whole answer without coding.
    static let fields: [(name: String, value: String, algorithm: DigestAlgorithm)] = [
        ("Repr-Digest", "sha-256=:\(base64(.sha256)):", .sha256),
        ("Repr-Digest", "sha-512=:\(base64(.sha512)):", .sha512),
        ("Repr-Digest", "md5=:\(base64(.md5)):", .md5),
        ("Repr-Digest", "sha=:\(base64(.sha1)):", .sha1),
        ("Content-Digest", "sha-256=:\(base64(.sha256)):", .sha256),
        ("Content-Digest", "sha-512=:\(base64(.sha512)):;x=1, unixsum=30637", .sha512),
        ("Digest", "SHA-256=\(base64(.sha256))", .sha256),
        ("Digest", "sha-512=\(base64(.sha512))", .sha512),
        ("Digest", "SHA=\(base64(.sha1))", .sha1),
        ("Digest", "UNIXsum=30637, md5=\(base64(.md5))", .md5),
        ("Digest", "id-sha-256=\(base64(.sha256))", .sha256),
        ("Content-MD5", base64(.md5), .md5),
        ("x-ms-blob-content-md5", base64(.md5), .md5),
        ("x-goog-hash", "md5=\(base64(.md5))", .md5), ("x-goog-hash", "crc32c=\(base64(.crc32c))", .crc32c),
        ("x-amz-checksum-sha256", base64(.sha256), .sha256),
        ("x-amz-checksum-sha512", base64(.sha512), .sha512),
        ("x-amz-checksum-sha1", base64(.sha1), .sha1),
        ("x-amz-checksum-md5", base64(.md5), .md5),
        ("x-amz-checksum-crc32c", base64(.crc32c), .crc32c),
        ("x-amz-checksum-crc32", base64(.crc32), .crc32),
        ("x-amz-checksum-crc64nvme", base64(.crc64nvme), .crc64nvme),
    ]

    private static let coversWholeObject = ["Repr-Digest", "x-ms-blob-content-md5"]

    @Test(arguments: Self.fields)
    func `a whole answer without coding is held to each field`(
        field: (name: String, value: String, algorithm: DigestAlgorithm)
    ) {
        let expected = [decides(field.algorithm, field.name)]
        for name in [field.name, field.name.lowercased(), field.name.uppercased()] {
            #expect(DigestFields.expected(head: head(200, [name: field.value]), trailers: []) == expected)
            let trailer = ResponseHead.Field(name: name, value: field.value)
            #expect(DigestFields.expected(head: head(200), trailers: [trailer]) == expected)
            #expect(
                DigestFields.expected(head: head(200, [name: field.value]), trailers: [trailer]) == expected
            )
        }
        let identity = head(200, [field.name: field.value, "Content-Encoding": " Identity "])
        #expect(DigestFields.expected(head: identity, trailers: []) == expected)
    }

    @Test(arguments: Self.fields)
    func `a part is held to what covers the whole object`(
        field: (name: String, value: String, algorithm: DigestAlgorithm)
    ) {
        let part = head(206, ["Content-Range": "bytes 5-9/10", field.name: field.value])
        let found = DigestFields.expected(head: part, trailers: [])
        if Self.coversWholeObject.contains(field.name) {
            #expect(found == [decides(field.algorithm, field.name)])
        } else if field.name == "Content-Digest" {
            #expect(found.isEmpty)
        } else {
            #expect(found == [hints(field.algorithm, field.name)])
        }
    }

    @Test(arguments: [
        "bytes 0-9/10", "bytes 0-8/10", "bytes 1-9/10", "bytes 0-9/*", "bytes */10", "nonsense", "",
    ])
    func `a part that is everything is a whole`(range: String) {
        let isWhole = range == "bytes 0-9/10"
        let head = head(
            206,
            [
                "Content-Range": range, "Content-MD5": base64(.md5),
                "Content-Digest": "sha-256=:\(base64(.sha256)):",
            ]
        )
        #expect(
            DigestFields.expected(head: head, trailers: [])
                == (isWhole
                    ? [decides(.sha256, "Content-Digest"), decides(.md5, "Content-MD5")]
                    : [hints(.md5, "Content-MD5")])
        )
    }

    @Test(arguments: Self.fields)
    func `with a content coding every field is a hint`(
        field: (name: String, value: String, algorithm: DigestAlgorithm)
    ) {
        for (name, coding) in [
            ("Content-Encoding", "gzip"), ("Content-Encoding", "identity, br"),
            ("X-Goog-Stored-Content-Encoding", "gzip"),
        ] {
            let coded = head(200, [name: coding, field.name: field.value])
            #expect(DigestFields.expected(head: coded, trailers: []) == [hints(field.algorithm, field.name)])
        }
    }

    @Test(
        arguments: [
            (200, nil, "Repr-Digest", true), (200, nil, "x-other , content-md5", true),
            (200, nil, "Content-Digest", true), (200, nil, "X-Amz-Checksum-SHA256", true),
            (206, "bytes 1-9/10", "Repr-Digest", true), (206, "bytes 1-9/10", "Digest", true),
            (206, "bytes 1-9/10", "Content-Digest", false), (206, "bytes 0-9/10", "Content-Digest", true),
            (200, nil, "", false), (200, nil, "Digest-Repr, ETag", false), (404, nil, "Repr-Digest", false),
        ] as [(Int, String?, String, Bool)]
    )
    func `announced trailers are known`(status: Int, range: String?, trailer: String, isAnnounced: Bool) {
        var fields = [ResponseHead.Field(name: "Trailer", value: trailer)]
        if let range { fields.append(ResponseHead.Field(name: "Content-Range", value: range)) }
        let head = ResponseHead(status: status, fields: fields)
        #expect(DigestFields.areAnnounced(by: head) == isAnnounced)
    }

    @Test(arguments: [100, 103, 201, 203, 204, 301, 304, 400, 404, 416, 500])
    func `other answers say nothing of the file`(status: Int) {
        let head = head(
            status,
            ["Repr-Digest": "sha-256=:\(base64(.sha256)):", "Content-MD5": base64(.md5)]
        )
        #expect(DigestFields.expected(head: head, trailers: head.fields).isEmpty)
    }

    @Test(
        arguments: [
            ("Repr-Digest", ""), ("Repr-Digest", "sha-256=\(base64(.sha256))"),
            ("Repr-Digest", "SHA-256=:\(base64(.sha256)):"),
            ("Repr-Digest", "sha-256=\"\(base64(.sha256))\""),
            ("Repr-Digest", "sha-256=:\(base64(.sha512)):"), ("Repr-Digest", "sha-256=:\(base64(.md5)):"),
            ("Repr-Digest", "sha-256=(:\(base64(.sha256)):)"), ("Repr-Digest", "sha-256=:!!!!:"),
            ("Repr-Digest", "sha-256=:\(base64(.sha256)):,"),
            ("Repr-Digest", "sha-256=:\(base64(.sha256)):, ?"),
            ("Repr-Digest", "crc32c=:n03x6A==:"), ("Repr-Digest", "sha-256"),
            ("Content-Digest", "sha-256=:\(base64(.sha256))"),
            ("Digest", "sha-256=:\(base64(.sha256)):"), ("Digest", "sha-256"),
            ("Digest", "=\(base64(.sha256))"),
            ("Digest", "sha-256=\(base64(.sha256).dropLast())"), ("Digest", "sha-256=\(base64(.md5))"),
            ("Digest", "unixsum=30637"), ("Digest", "sha-256=\(sum(.sha256).hex)"),
            ("Content-MD5", sum(.md5).hex), ("Content-MD5", base64(.sha256)), ("Content-MD5", ""),
            ("Content-MD5", ":\(base64(.md5)):"), ("Content-MD5", "\(base64(.md5)), \(base64(.md5))"),
            ("x-goog-hash", "crc32=n03x6A=="), ("x-goog-hash", "crc32c=n03x6A=A"),
            ("x-goog-hash", "crc32c=AAAAAAAAAAA="), ("x-goog-hash", base64(.md5)),
            ("Digest", "crc32c=n03x6A=="), ("Content-Digest", "crc32c=:n03x6A==:"),
            ("x-amz-checksum-sha256", "\(base64(.sha256))-3"), ("x-amz-checksum-crc32c", "n03x6A==-2"),
            ("x-amz-checksum-crc32c", "9f4df1e8"), ("x-amz-checksum-crc64nvme", "n03x6A=="),
            ("x-amz-meta-sha256", base64(.sha256)),
            ("ETag", "\"\(sum(.md5).hex)\""), ("Unencoded-Digest", "sha-256=:\(base64(.sha256)):"),
            ("Want-Repr-Digest", "sha-256=10"),
        ] as [(String, String)]
    )
    func `what cannot be used is passed over`(name: String, value: String) {
        #expect(DigestFields.expected(head: head(200, [name: value]), trailers: []).isEmpty)
    }

    @Test(
        arguments: nastyTexts,
        ["Repr-Digest", "Digest", "Content-MD5", "x-goog-hash", "x-amz-checksum-sha1"]
    )
    func `nothing makes the reader trap`(text: String, name: String) {
        let head = head(200, [name: text, "Content-Encoding": text])
        #expect(DigestFields.expected(head: head, trailers: head.fields).isEmpty)
    }

    @Test func `a checksum of checksums is none of the file`() {
        let fields: KeyValuePairs = [
            "x-amz-checksum-sha256": base64(.sha256), "X-Amz-Checksum-Type": "COMPOSITE",
            "Repr-Digest": "sha-256=:\(base64(.sha256, 2)):",
        ]
        #expect(
            DigestFields.expected(head: head(200, fields), trailers: [])
                == [decides(.sha256, "Repr-Digest", 2)]
        )
        let whole = head(
            200,
            ["x-amz-checksum-sha256": base64(.sha256), "x-amz-checksum-type": "FULL_OBJECT"]
        )
        #expect(
            DigestFields.expected(head: whole, trailers: []) == [decides(.sha256, "x-amz-checksum-sha256")]
        )
        let parts = head(
            200,
            ["x-amz-checksum-crc32c": base64(.crc32c), "x-amz-checksum-type": "COMPOSITE"]
        )
        #expect(DigestFields.expected(head: parts, trailers: []).isEmpty)
    }

    @Test func `all fields, members and sections count`() {
        let head = head(
            200,
            [
                "Repr-Digest": "md5=:\(base64(.md5)):, sha-256=:\(base64(.sha256)):",
                "Repr-Digest": "sha-512=:\(base64(.sha512)):, sha-256=:\(base64(.sha256, 2)):",
                "x-goog-hash": "md5=\(base64(.md5))", "x-goog-hash": "crc32c=\(base64(.crc32c))",
                "Content-MD5": base64(.md5), "Content-MD5": base64(.md5, 2),
            ]
        )
        let trailers = [
            ResponseHead.Field(name: "Repr-Digest", value: "sha-256=:\(base64(.sha256, 3)):"),
            ResponseHead.Field(name: "Content-Digest", value: "broken="),
        ]
        let crc = decides(.crc32c, "x-goog-hash")
        #expect(
            DigestFields.expected(head: head, trailers: trailers) == [
                decides(.sha256, "Repr-Digest", 2), decides(.sha512, "Repr-Digest"),
                decides(.md5, "Repr-Digest"), decides(.md5, "Content-MD5"), decides(.md5, "Content-MD5", 2),
                decides(.md5, "x-goog-hash"), crc, decides(.sha256, "Repr-Digest", 3),
            ]
        )
    }

    @Test func `what we ask for is what we read`() throws {
        let wanted = try #require(StructuredDictionary(text: DigestFields.wanted))
        #expect(wanted["sha-256"] == .integer(10))
        #expect(wanted["sha-512"] == .integer(3))
        #expect(wanted.members.count == 2)
    }
}

@Suite struct DigestVerdictTests {
    /// The digests of the file: all of its checksums have the byte 1.
    private static let computed = Dictionary(
        uniqueKeysWithValues: DigestAlgorithm.allCases.map { ($0, sum($0)) }
    )

    private static func user(_ algorithm: DigestAlgorithm, _ byte: UInt8 = 1) -> ExpectedDigest {
        .user(sum(algorithm, byte))
    }

    @Test(
        arguments: [
            ([], .unproved),
            // the user's word alone
            ([user(.sha256)], .proved(user(.sha256))), ([user(.sha256, 2)], .mismatch(user(.sha256, 2))),
            ([user(.md5)], .proved(user(.md5))), ([user(.md5, 2)], .mismatch(user(.md5, 2))),
            ([user(.sha256), user(.sha512)], .proved(user(.sha256))),
            ([user(.sha256), user(.md5, 2)], .mismatch(user(.md5, 2))),
            // the user's word against a server's
            ([decides(.sha256, "Repr-Digest", 2), user(.sha256)], .proved(user(.sha256))),
            ([decides(.sha256, "Repr-Digest", 2), user(.md5)], .proved(user(.md5))),
            ([decides(.sha256, "Repr-Digest"), user(.sha256, 2)], .mismatch(user(.sha256, 2))),
            ([hints(.sha512, "Digest"), user(.md5, 2)], .mismatch(user(.md5, 2))),
            // fields alone
            ([decides(.sha256, "Repr-Digest")], .proved(decides(.sha256, "Repr-Digest"))),
            ([decides(.sha256, "Repr-Digest", 2)], .mismatch(decides(.sha256, "Repr-Digest", 2))),
            ([decides(.md5, "Content-MD5")], .proved(decides(.md5, "Content-MD5"))),
            ([decides(.md5, "Content-MD5", 2)], .mismatch(decides(.md5, "Content-MD5", 2))),
            ([hints(.sha256, "Digest")], .proved(hints(.sha256, "Digest"))),
            ([hints(.sha256, "Digest", 2)], .unproved), ([hints(.md5, "Content-MD5", 2)], .unproved),
            ([hints(.md5, "Content-MD5")], .proved(hints(.md5, "Content-MD5"))),
            // fields against each other
            (
                [hints(.sha256, "Digest", 2), decides(.md5, "Content-MD5")],
                .proved(decides(.md5, "Content-MD5"))
            ),
            (
                [hints(.sha256, "Digest"), decides(.md5, "Content-MD5", 2)],
                .proved(hints(.sha256, "Digest"))
            ),
            (
                [decides(.md5, "Content-MD5"), decides(.sha256, "Repr-Digest", 2)],
                .mismatch(decides(.sha256, "Repr-Digest", 2))
            ),
            (
                [decides(.sha512, "Repr-Digest"), decides(.sha256, "Repr-Digest", 2)],
                .mismatch(decides(.sha256, "Repr-Digest", 2))
            ),
            (
                [decides(.md5, "Content-MD5"), decides(.sha1, "Digest", 2)],
                .mismatch(decides(.sha1, "Digest", 2))
            ),
            (
                [decides(.crc32c, "x-goog-hash", 2), hints(.md5, "x-goog-hash")],
                .proved(hints(.md5, "x-goog-hash"))
            ),
            (
                [decides(.crc32c, "x-goog-hash"), decides(.md5, "x-goog-hash", 2)],
                .mismatch(decides(.md5, "x-goog-hash", 2))
            ),
            (
                [decides(.crc32c, "x-goog-hash", 2), hints(.md5, "x-goog-hash", 2)],
                .mismatch(decides(.crc32c, "x-goog-hash", 2))
            ),
            ([hints(.crc32c, "x-goog-hash", 2)], .unproved),
            ([hints(.crc32c, "x-goog-hash")], .proved(hints(.crc32c, "x-goog-hash"))),
        ] as [([ExpectedDigest], DigestVerdict)]
    )
    func `digests are judged by all that is expected`(expected: [ExpectedDigest], verdict: DigestVerdict) {
        #expect(DigestVerdict(computed: Self.computed, expected: expected) == verdict)
    }

    @Test(
        arguments: [
            ([user(.sha512)], .unproved), ([user(.sha512), decides(.sha256, "Repr-Digest")], .unproved),
            ([user(.sha512), user(.sha256)], .unproved),
            ([user(.sha512), user(.sha256, 2)], .mismatch(user(.sha256, 2))),
            ([decides(.sha512, "Repr-Digest", 2)], .unproved),
            (
                [decides(.sha512, "Repr-Digest", 2), decides(.sha256, "Repr-Digest")],
                .proved(decides(.sha256, "Repr-Digest"))
            ),
        ] as [([ExpectedDigest], DigestVerdict)]
    )
    func `what was not computed decides nothing`(expected: [ExpectedDigest], verdict: DigestVerdict) {
        #expect(DigestVerdict(computed: [.sha256: sum(.sha256)], expected: expected) == verdict)
    }

    @Test func `all expected algorithms are needed`() {
        let expected = [Self.user(.sha256), decides(.sha256, "Repr-Digest"), hints(.md5, "Content-MD5")]
        #expect(DigestVerdict.algorithms(for: expected) == [.sha256, .md5])
        #expect(DigestVerdict.algorithms(for: []).isEmpty)
    }
}
