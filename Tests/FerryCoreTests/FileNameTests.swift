import FerryCore
import Testing

@Suite struct FileNameTests {
    @Test(
        arguments: [
            ("a.txt", "a.txt"), ("a b (1).tar.gz", "a b (1).tar.gz"), ("日本語.txt", "日本語.txt"),
            ("/etc/passwd", "passwd"),
            ("../../x", "x"), ("..\\..\\x", "x"), ("C:\\dir\\x.exe", "x.exe"), ("a/b\\c", "c"),
            ("....//x", "x"),
            ("", nil), (".", nil), ("..", nil), ("...", nil), ("a/", nil), ("a\\", nil), ("a/..", nil),
            ("/", nil),
            ("\0", nil), ("   ", nil), (". .", nil), ("\u{202E}", nil), ("a/\u{200B}", nil),
            ("\u{7F}\u{9F}\u{1}", nil),
            (".bashrc", "_.bashrc"), ("-rf", "_-rf"), ("~", "_~"), (" a", "_ a"), ("..a", "_..a"),
            ("a. . .", "a"),
            ("a ", "a"), ("a\0b", "ab"), ("a\nb\tc", "abc"), ("a\u{1B}[31mb", "a[31mb"),
            ("evil\u{202E}gpj.exe", "evilgpj.exe"),
            ("\u{200F}.\u{FEFF}.", nil), ("\u{200B}.hidden", "_.hidden"), ("a\u{2028}b", "ab"),
            ("a\u{AD}b", "ab"),
            ("a\u{2066}b\u{E0041}", "ab"), ("\u{2065}xe", "xe"), ("%2e%2e%2f", "%2e%2e%2f"), ("CON", "CON"),
            ("e\u{301}", "e\u{301}"),
            (".\0.", nil), ("..\u{200B}", nil), ("\u{61C}-a", "_-a"),
        ] as [(String, String?)]
    )
    func `a candidate becomes a safe name or none`(candidate: String, expected: String?) {
        #expect(FileName.safe(candidate) == expected)
        if let expected { #expect(FileName.safe(expected) == expected) }
    }

    @Test(
        arguments: [
            ("/a/b.zip", "b.zip"), ("/a/b%20c.zip", "b c.zip"), ("/a/b%2520.zip", "b%20.zip"), ("/", nil),
            ("", nil),
            ("/a/", nil), ("/a/%2e%2e", nil), ("/a/x%2Fy", "y"), ("/a/..%5Cy", "y"), ("/a/%00", nil),
            ("/a/%zz", "%zz"),
            ("/a/100%", "100%"), ("/caf%C3%A9", "café"), ("/caf%E9", "café"), ("/a/%E2%80%AEx", "x"),
            ("name", "name"),
            ("/a/b+c", "b+c"), ("/a/.%2Fb", "b"),
        ] as [(String, String?)]
    )
    func `a URL's path gives its last component`(path: String, expected: String?) {
        #expect(FileName.fromURLPath(path) == expected)
    }

    @Test func `a long name is cut at a character and keeps its extension`() throws {
        for (character, width) in [("a", 1), ("é", 2), ("日", 3), ("🇩🇪", 8), ("e\u{301}", 3)] {
            let long = String(repeating: character, count: 300)
            for ending in ["", ".zip", ".tar.gz", ".extensionof16by"] {
                let name = try #require(FileName.safe(long + ending))
                #expect(name.utf8.count <= 255)
                #expect(name.utf8.count > 255 - width)
                #expect(name.hasSuffix(ending))
                #expect(name.dropLast(ending.count).allSatisfy { String($0) == character })
            }
        }
        let whole = String(repeating: "a", count: 251) + ".zip"
        #expect(FileName.safe(whole) == whole)
        let prefixed = try #require(FileName.safe("." + String(repeating: "a", count: 254)))
        #expect(prefixed.utf8.count == 255)
        let endless = try #require(FileName.safe("a." + String(repeating: "b", count: 400)))
        #expect(endless.utf8.count == 255)
    }

    @Test(arguments: [".", " ", ". .", "..  .. "])
    func `a cut leaves no dot or space at the end`(gap: String) throws {
        let stem = String(repeating: "a", count: FileName.limit - gap.utf8.count)
        #expect(FileName.safe(stem + gap + String(repeating: "b", count: 20)) == stem)
    }

    @Test func `a long name of flags is cut in linear time`() {
        // It took minutes while the extension was sought character by character from the end.
        let flags = String(repeating: "🇩🇪", count: 50_000)
        #expect(FileName.safe("a" + flags) == "a" + flags.prefix(31))
        #expect(FileName.safe("a" + flags + ".TAR.gz") == "a" + flags.prefix(30) + ".TAR.gz")
    }

    @Test func `one character longer than a name is cut too`() throws {
        let bomb = "a" + String(repeating: "\u{301}", count: 10_000)
        let name = try #require(FileName.safe(bomb))
        #expect((200...255).contains(name.utf8.count))
    }

    @Test(arguments: [
        ("a.zip", 12, 1, ".a.zip.12.ferry-part"), ("a.zip", 12, 0, ".a.zip.12.ferry-part"),
        ("a.zip", 12, 2, ".a.zip.12.ferry-part-2"), ("index", 1, 30, ".index.1.ferry-part-30"),
    ])
    func `a partial is named after file and job`(name: String, job: Int64, generation: Int, expected: String)
    {
        #expect(FileName.partial(name: name, job: JobID(rawValue: job), generation: generation) == expected)
    }

    @Test(arguments: [1, 255, 5_000], [1, 2, Int.max])
    func `a partial's name always fits`(length: Int, generation: Int) {
        for name in [
            String(repeating: "a", count: length) + ".tar.gz", String(repeating: "日", count: length),
        ] {
            let partial = FileName.partial(name: name, job: JobID(rawValue: .max), generation: generation)
            #expect(partial.utf8.count <= 255)
            #expect(partial.hasPrefix("."))
            #expect(partial.contains(".\(Int64.max).ferry-part"))
        }
    }

    @Test(arguments: [
        ("a.zip", 2, "a (2).zip"), ("a", 10, "a (10)"), ("a.tar.gz", 2, "a (2).tar.gz"),
        (".tar.gz", 2, ".tar (2).gz"),
        ("a.b.c", 3, "a.b (3).c"), (".profile", 2, ".profile (2)"), ("a.", 2, "a (2)."),
        ("a.averyveryverylongend", 2, "a.averyveryverylongend (2)"),
        ("a.sixteen_letters_", 2, "a (2).sixteen_letters_"), ("étar.gz", 2, "étar (2).gz"),
        ("a.seventeen_letters", 2, "a.seventeen_letters (2)"), ("日.Tar.xz", 2, "日 (2).Tar.xz"),
    ])
    func `a taken name is numbered before its extension`(name: String, n: Int, expected: String) {
        #expect(FileName.numbered(name, n) == expected)
    }

    @Test func `a numbered name always fits`() {
        let name = FileName.numbered(String(repeating: "日", count: 83) + ".tar.gz", .max)
        #expect(name.utf8.count <= 255)
        #expect(name.hasSuffix(" (\(Int.max)).tar.gz"))
    }

    @Test(arguments: [
        ("plain é 日", "plain é 日"), ("a\u{1B}[2Jb", "a\\u{1B}[2Jb"), ("a\nb", "a\\u{A}b"),
        ("\u{202E}x", "\\u{202E}x"),
        ("\u{9B}", "\\u{9B}"), ("a\u{200D}b", "a\\u{200D}b"), ("\0", "\\u{0}"), ("", ""),
        ("\r\n", "\\u{D}\\u{A}"),
    ])
    func `what steers a terminal is shown, not sent`(text: String, expected: String) {
        #expect(FileName.display(text) == expected)
    }

    @Test(arguments: nastyTexts)
    func `no text is too strange`(text: String) {
        for name in [FileName.safe(text), FileName.fromURLPath(text), ContentDisposition(text).fileName] {
            guard let name else { continue }
            #expect((1...255).contains(name.utf8.count))
            #expect(!name.contains("/"))
            #expect(FileName.safe(name) == name)
        }
        _ = FileName.display(text)
        _ = FileName.numbered(text, 2)
        #expect(FileName.partial(name: text, job: JobID(rawValue: 1), generation: 1).utf8.count <= 255)
    }
}

@Suite struct ContentDispositionTests {
    @Test(
        arguments: [
            ("attachment; filename=\"a.txt\"", "a.txt"), ("attachment; filename=a.txt", "a.txt"),
            ("inline; filename=\"a.txt\"", "a.txt"), ("strange; FileName = \"a.txt\"", "a.txt"),
            ("filename=a.txt", "a.txt"), ("; filename=a.txt", "a.txt"),
            ("attachment;filename=a.txt;size=5", "a.txt"),
            ("attachment", nil), ("", nil), ("attachment; filename", nil), ("attachment; filename=", nil),
            ("attachment; filename=\"\"", nil), ("attachment; foo=\"filename=x\"", nil),
            ("attachment; foo=\"a;b\"; filename=x", "x"), ("attachment; foo=\"\\\"\"; filename=x", "x"),
            ("attachment; filename=a b c.txt; x=y", "a b c.txt"), ("attachment; filename=  a  ", "a"),
            ("attachment; filename=\"a;b.txt\"", "a;b.txt"), ("attachment; filename=\"open", "open"),
            ("attachment; filename=\"open; x=y", "open; x=y"), ("attachment; filename=\"a\"b\"; x=y", "a"),
            ("attachment; filename=first; filename=second", "first"),
            ("attachment; filename=\"a \\\"b\\\".txt\"", "a \"b\".txt"),
            ("attachment; filename=\"a\\\\b.txt\"", "b.txt"),
            ("attachment; filename=\"C:\\dir\\file.txt\"", "file.txt"),
            ("attachment; filename=\"\\file.txt\"", "file.txt"),
            ("attachment; filename=\"../../etc/passwd\"", "passwd"), ("attachment; filename=\"..\"", nil),
            ("attachment; filename=\"/\"", nil), ("attachment; filename=\".profile\"", "_.profile"),
            ("attachment; filename=\"50%25.txt\"", "50%25.txt"),
            ("attachment; filename=\"=?UTF-8?Q?a?=\"", "=?UTF-8?Q?a?="),
            ("attachment; filename=\"naïve.txt\"", "naïve.txt"), ("attachment; filename='a.txt'", "'a.txt'"),
            ("attachment; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
            ("attachment; filename*=utf-8'en'a%20b", "a b"),
            ("attachment; filename*=iso-8859-1'en'%A3%20rates", "£ rates"),
            ("attachment; filename*=\"UTF-8''a%20b\"", "a b"),
            ("attachment; filename=x; filename*=UTF-8''y", "y"),
            ("attachment; filename*=UTF-8''y; filename=x", "y"),
            ("attachment; filename*=UTF-8''%ZZ; filename=x", "x"),
            ("attachment; filename*=UTF-8''%E9; filename=x", "x"),
            ("attachment; filename*=UTF-8''%4; filename=x", "x"),
            ("attachment; filename*=UTF-8''; filename=x", "x"),
            ("attachment; filename*=koi8-r''%C1; filename=x", "x"),
            ("attachment; filename*=plain; filename=x", "x"),
            ("attachment; filename*=UTF-8''..; filename=x", "x"),
            ("attachment; filename*=UTF-8''%2e%2e%2fevil", "evil"),
            ("attachment; filename*=UTF-8''it's", "it's"), ("attachment; filename*=UTF-8''a%00b", "ab"),
            ("attachment; filename*0=a; filename*1=b", nil), ("attachment; filename*=''a", nil),
            ("attachment; filename*=UTF-8''%E2%80%AEgpj.exe", "gpj.exe"), ("attachment; filename=\"a\\", nil),
            ("attachment; =x; filename=y", "y"), ("attachment;;;filename=y", "y"),
            ("attachment; filename\t=\t\"y\"\t;", "y"),
            ("attachment filename=x", nil),
        ] as [(String, String?)]
    )
    func `names are read as servers mean them`(text: String, expected: String?) {
        #expect(ContentDisposition(text).fileName == expected)
    }
}
