import FerryCore
import Testing

@Suite struct StructuredFieldTests {
    @Test(
        arguments: [
            ("42", .integer(42)), ("-0", .integer(0)), ("  7  ", .integer(7)), ("007", .integer(7)),
            ("999999999999999", .integer(999_999_999_999_999)),
            ("-999999999999999", .integer(-999_999_999_999_999)),
            ("1.5", .decimal(thousandths: 1_500)), ("-0.001", .decimal(thousandths: -1)),
            ("999999999999.999", .decimal(thousandths: 999_999_999_999_999)),
            ("\"\"", .string("")), (#""a \"b\" \\ c""#, .string(#"a "b" \ c"#)),
            ("foo123/456", .token("foo123/456")), ("*x:y", .token("*x:y")),
            ("A!#$%&'*+-.^_`|~", .token("A!#$%&'*+-.^_`|~")),
            ("::", .bytes([])), (":Zm9v:", .bytes(Array("foo".utf8))), (":Zg==:", .bytes([0x66])),
            (":Zg:", .bytes([0x66])), (":Zh==:", .bytes([0x66])),
            ("?1", .boolean(true)), ("?0", .boolean(false)),
        ] as [(String, StructuredValue)]
    )
    func `an item is read`(text: String, expected: StructuredValue) {
        #expect(StructuredItem(text: text) == StructuredItem(expected))
    }

    @Test func `an item has parameters`() {
        #expect(
            StructuredItem(text: #"tok;a;b=?0;  c="x";a=1;*d=:AA==:"#)
                == StructuredItem(
                    .token("tok"),
                    parameters: [
                        "a": .integer(1), "b": .boolean(false), "c": .string("x"), "*d": .bytes([0]),
                    ]
                )
        )
    }

    @Test(
        arguments: [
            "-", "--1", "+1", "1.", ".5", "1.2345", "1..2", "1000000000000000", "1000000000000.0", "1 2",
            "1,",
            "\"a", "\"a\\", #""a\n""#, "\"a\tb\"", "\"é\"", "\"\u{7F}\"", ":Zm9v", "Zm9v:x ;a", ":Zm 9v:",
            ":Zm9v=:", ":-_-_:", ":é:", "?", "?2", "?10", "?true", "@1659578233", "%\"a\"", "(1 2)", "a=1",
            "a;",
            "a;B", "a;b=", "a;b=(1)", "a ;b", "a;b =1", "1;é", "\t1", "1\t", "1\n", "{}",
        ]
    )
    func `a broken item counts as not sent`(text: String) {
        #expect(StructuredItem(text: text) == nil)
    }

    @Test func `of the nasty texts only these are items`() {
        let items = nastyTexts.filter { StructuredItem(text: $0) != nil }
        #expect(items == ["*", "*/", "*/*", "UTF-8''", "bytes", "bytes "])
    }

    @Test(
        arguments: [
            ("", [:]), ("   ", [:]),
            ("a=1", ["a": .item(StructuredItem(.integer(1)))]),
            ("a", ["a": .item(StructuredItem(.boolean(true)))]),
            (
                "a, b=2",
                ["a": .item(StructuredItem(.boolean(true))), "b": .item(StructuredItem(.integer(2)))]
            ),
            (
                "a=1 \t,\t b=2 ",
                ["a": .item(StructuredItem(.integer(1))), "b": .item(StructuredItem(.integer(2)))]
            ),
            ("a=1,a=2;x", ["a": .item(StructuredItem(.integer(2), parameters: ["x": .boolean(true)]))]),
            ("a;x=1", ["a": .item(StructuredItem(.boolean(true), parameters: ["x": .integer(1)]))]),
            ("*a_-.*9=tok", ["*a_-.*9": .item(StructuredItem(.token("tok")))]),
            ("a=()", ["a": .innerList([], parameters: [:])]),
            (
                "a=( 1  \"b\";x );y=2",
                [
                    "a": .innerList(
                        [
                            StructuredItem(.integer(1)),
                            StructuredItem(.string("b"), parameters: ["x": .boolean(true)]),
                        ],
                        parameters: ["y": .integer(2)]
                    )
                ]
            ),
        ] as [(String, [String: StructuredMember])]
    )
    func `a dictionary is read`(text: String, expected: [String: StructuredMember]) {
        #expect(StructuredDictionary(text: text)?.members == expected)
    }

    @Test(arguments: [
        ",", "a,", "a, ", ",a", "a,,b", "a=1 b=2", "a=", "a= 1", "a =1", "A=1", "1=a", "-a=1", "a=1;", "a=(1",
        "a=(1 2", "a=(1,2)", "a=(1\t2)", "a=(1)2", "a=((1))", "a=1\t", "\ta=1", "a=:Zm9v", "a=:Z:", "é=1",
        "a=é",
        "SHA-256=:AAAA:", "sha-256=\"AAAA", "a\n=1", "a=1\0", "a=1;b=:",
    ])
    func `a broken dictionary counts as not sent`(text: String) {
        #expect(StructuredDictionary(text: text) == nil)
    }

    @Test(arguments: nastyTexts)
    func `nothing makes the parser trap`(text: String) {
        _ = StructuredDictionary(text: text)
        _ = StructuredDictionary(text: "a=\(text)")
        _ = StructuredDictionary(text: "a=(\(text);\(text)")
        _ = StructuredDictionary(text: "a=:\(text):")
        _ = StructuredItem(text: "\"\(text)\";x=\(text)")
    }

    @Test func `the lines of a section are one dictionary`() {
        let dictionary = StructuredDictionary(lines: ["a=1, b=2", "b=3", "c=(1)"])
        #expect(dictionary?["a"] == .integer(1))
        #expect(dictionary?["b"] == .integer(3))
        #expect(dictionary?["c"] == nil)
        #expect(dictionary?["d"] == nil)
        #expect(StructuredDictionary(lines: [])?.members.isEmpty == true)
        #expect(StructuredDictionary(lines: ["a=1", "b="]) == nil)
    }
}
