import Testing

@testable import FerryCore

@Suite struct MultipartBodyTests {
    static let types = MediaTypes("text/plain txt\nimage/png png\n".utf8)
    static let boundary = MultipartBody.boundary(random: UInt8(0)..<20)

    static func body(_ parts: [FormPart], sizes: [Int64] = []) throws -> MultipartBody {
        try #require(
            MultipartBody(parts, fileSizes: sizes, boundary: Self.boundary, mediaTypes: Self.types)
        )
    }

    /// The body's bytes where all of its files are full of `x`.
    static func bytes(_ body: MultipartBody) -> [UInt8] {
        body.pieces.flatMap { piece -> [UInt8] in
            switch piece {
            case .bytes(let bytes): bytes
            case .file(_, let size): [UInt8](repeating: UInt8(ascii: "x"), count: Int(size))
            }
        }
    }

    static let names: [(String, String)] = [
        ("plain", "plain"), ("a b;c='d'.txt", "a b;c='d'.txt"), ("a\"b", "a%22b"), ("\"\"", "%22%22"),
        ("a\r\nb", "a%0D%0Ab"), ("a\nb", "a%0Ab"), ("a\rb", "a%0Db"), ("100%", "100%"), ("%22", "%22"),
        ("back\\slash\\", "back\\slash\\"), ("naïve 文 🚢", "naïve 文 🚢"), ("e\u{301}", "e\u{301}"),
        ("\t", "\t"),
        ("", ""), ("x\r\nContent-Type: text/html\r\n\r\n", "x%0D%0AContent-Type: text/html%0D%0A%0D%0A"),
    ]

    @Test(arguments: names)
    func `names are escaped as browsers do it`(name: String, expected: String) {
        #expect(Array(MultipartBody.escaped(name).utf8) == Array(expected.utf8))
    }

    @Test func `the boundary holds all random bits and needs no quotes`() {
        let boundary = MultipartBody.boundary(random: UInt8(0)..<20)
        #expect(boundary == "ferry000102030405060708090a0b0c0d0e0f10111213")
        #expect(MultipartBody.boundary(random: [UInt8](repeating: 255, count: 32)).utf8.count <= 70)
        #expect(boundary.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) })
    }

    @Test func `fewer than 128 random bits are no boundary`() async {
        await #expect(processExitsWith: .failure) { _ = MultipartBody.boundary(random: UInt8(0)..<15) }
    }

    @Test func `texts and files stand one after the other, each in its own part`() throws {
        let body = try Self.body(
            [
                FormPart(name: "a", content: .value("1")),
                FormPart(name: "f", content: .file(path: "/d/x.TXT")),
                FormPart(
                    name: "f",
                    content: .file(path: "/d/y"),
                    contentType: "text/x; charset=utf-8",
                    fileName: "n"
                ),
                FormPart(name: "a", content: .value("")),
            ],
            sizes: [3, 0]
        )
        #expect(
            String(decoding: Self.bytes(body), as: UTF8.self)
                == """
                --B\r
                Content-Disposition: form-data; name="a"\r
                \r
                1\r
                --B\r
                Content-Disposition: form-data; name="f"; filename="x.TXT"\r
                Content-Type: text/plain\r
                \r
                xxx\r
                --B\r
                Content-Disposition: form-data; name="f"; filename="n"\r
                Content-Type: text/x; charset=utf-8\r
                \r
                \r
                --B\r
                Content-Disposition: form-data; name="a"\r
                \r
                \r
                --B--\r

                """.split(separator: "B", omittingEmptySubsequences: false).joined(separator: Self.boundary)
        )
        #expect(body.contentType == "multipart/form-data; boundary=\(Self.boundary)")
        #expect(body.pieces.count == 5)
    }

    @Test(arguments: [0, 1, 255, 4_096, 1 << 20] as [Int64])
    func `the length is known beforehand, to the byte`(size: Int64) throws {
        for count in 0...3 {
            let parts = (0..<count).flatMap { number in
                [
                    FormPart(name: "té\"\(number)", content: .value("värde")),
                    FormPart(name: "f", content: .file(path: "/d/\(number).png")),
                ]
            }
            let body = try Self.body(parts, sizes: [Int64](repeating: size, count: count))
            #expect(body.length == Int64(Self.bytes(body).count))
        }
    }

    @Test func `the length of huge files is exact, and one beyond 64 bits is refused`() throws {
        let file = FormPart(name: "f", content: .file(path: "/f"))
        let empty = try Self.body([file], sizes: [0]).length
        #expect(try Self.body([file], sizes: [1 << 42]).length == empty + 1 << 42)
        #expect(try Self.body([file], sizes: [.max - empty]).length == .max)
        for sizes in [[.max - empty + 1, 0], [.max, .max], [1 << 62, 1 << 62]] as [[Int64]] {
            #expect(
                MultipartBody(
                    [file, file],
                    fileSizes: sizes,
                    boundary: Self.boundary,
                    mediaTypes: Self.types
                ) == nil
            )
        }
    }
}

@Suite struct MediaTypesTests {
    static let table = MediaTypes(
        """
        # comment text/x  no
        text/plain\t\ttxt TEXT asc # log
        application/unused
        no-type       bad
        a/b/c         bad
        tex t/html    bad
        /             bad
        type=text/x exts="bad"
        application/first  both
        application/second both last\r
        image/svg+xml svg svgz
        """.utf8
    )

    static let names: [(String, String)] = [
        ("a.txt", "text/plain"), ("/d.svg/a.asc", "text/plain"), ("A.TXT", "text/plain"),
        ("a.text", "text/plain"),
        ("a.tar.svgz", "image/svg+xml"), ("a.both", "application/first"), ("a.last", "application/second"),
        ("a.log", MediaTypes.unknown), ("a.bad", MediaTypes.unknown), ("a", MediaTypes.unknown),
        ("a.", MediaTypes.unknown), (".txt", MediaTypes.unknown), ("/d/.txt", MediaTypes.unknown),
        ("d.txt/a", MediaTypes.unknown), ("", MediaTypes.unknown), ("/", MediaTypes.unknown),
        ("a.no", MediaTypes.unknown), ("txt", MediaTypes.unknown), ("..txt", "text/plain"),
    ]

    @Test(arguments: names)
    func `a name's extension tells the type`(name: String, expected: String) {
        #expect(Self.table.type(of: name) == expected)
    }

    @Test(arguments: [
        ("text/plain", true), ("text/plain; charset=utf-8", true), ("application/vnd.a+json", true),
        ("text", false), ("text/", false), ("/plain", false), ("text/a/b", false), ("te xt/plain", false),
        ("text/plain\r\nX: y", false), ("text/plain; a=\"é\"", false), ("text/plain;\u{0}", false),
        ("", false),
        (";", false), ("text/plain;", true), ("text/pl\"ain", false),
    ])
    func `a type has two tokens, and no line breaks anywhere`(text: String, isValid: Bool) {
        #expect(MediaTypes.isValid(text) == isValid)
    }

    @Test func `no text is a trap`() {
        for text in nastyTexts {
            let table = MediaTypes(text.utf8)
            _ = table.type(of: text)
            _ = MediaTypes.isValid(text)
        }
    }

    @Test(arguments: [
        ("PUT", true), ("M-SEARCH", true), ("", false), ("PU T", false), ("PÜT", false), ("a:", false),
    ])
    func `a token has letters, digits and a few marks`(text: String, isValid: Bool) {
        #expect(HTTPToken.isValid(text) == isValid)
    }
}
