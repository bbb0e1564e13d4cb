import FerryCore
import Testing

@Suite struct RenewedLinkTests {
    private static let long = "https://h/" + String(repeating: "a", count: RenewedLink.limitBytes)

    @Test(arguments: [
        ("https://h/f?sig=1\n", "https://h/f?sig=1"), ("https://h/f", "https://h/f"),
        ("HTTP://h/f\r\n", "HTTP://h/f"),
        ("https://h/\u{e4}\n", "https://h/\u{e4}"),
    ])
    func `the only line is the URL`(output: String, url: String) {
        #expect(RenewedLink.read(Array(output.utf8)) == .url(url))
    }

    @Test(arguments: [
        ("", "nothing"), ("\n", "nothing"), ("\r\n", "nothing"),
        ("https://h/f\nhttps://h/g\n", "more than one line"),
        ("https://h/f\n\n", "more than one line"), ("\nhttps://h/f\n", "more than one line"),
        (" https://h/f\n", "characters"), ("https://h/f \n", "characters"),
        ("https://h/\u{1b}[2J\n", "characters"),
        ("https://h/\u{202e}x\n", "characters"), ("https://h/\rx\n", "characters"),
        ("h/f\n", "https:// or http://"),
        ("ftp://h/f\n", "https:// or http://"), ("https:/h/f\n", "https:// or http://"),
        ("file:///etc/passwd\n", "https:// or http://"), ("-\n", "https:// or http://"), (long, "too much"),
    ])
    func `anything else is refused`(output: String, why: String) {
        guard case .refused(let clause) = RenewedLink.read(Array(output.utf8)) else {
            Issue.record("taken: \(output)")
            return
        }
        #expect(clause.contains(why))
        #expect(clause.hasPrefix("printed "))
    }

    @Test func `bytes that are no text are refused`() {
        #expect(
            RenewedLink.read(Array("https://h/".utf8) + [0xff])
                == .refused("printed characters that no URL has")
        )
        #expect(
            RenewedLink.read(Array("https://h/".utf8) + [0]) == .refused("printed characters that no URL has")
        )
    }

    @Test(
        arguments: [
            ("", nil), ("\n\n", nil), ("no key\n", "no key"), ("first\nlast \n\n", "last"),
            ("a\u{1b}[31mb", #"a\u{1B}[31mb"#),
            (
                "curl: (22) https://u:w@h/f?sig=s3cret&x=1 said 403",
                "curl: (22) https://h/f?sig=***&x=*** said 403"
            ),
        ] as [(String, String?)]
    )
    func `last words are one line without secrets`(errors: String, words: String?) {
        #expect(RenewedLink.lastWords(Array(errors.utf8)) == words)
    }

    @Test func `last words have an end`() {
        #expect(RenewedLink.lastWords(Array(repeating: 120, count: 5_000))?.count == 200)
    }
}
