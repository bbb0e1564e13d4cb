import FerryCore
import Testing

private let md5 = "d41d8cd98f00b204e9800998ecf8427e"
private let sha1 = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
private let sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
private let sha512 = String(repeating: "0f", count: 64)

@Suite struct ChecksumListTests {
    @Test(
        arguments: [
            ("\(sha256)  a.iso", "a.iso", "sha-256:\(sha256)"),
            ("\(sha256) *a.iso", "a.iso", "sha-256:\(sha256)"),
            ("\(sha256) a.iso", "a.iso", "sha-256:\(sha256)"),
            ("\(sha256)\ta.iso", "a.iso", "sha-256:\(sha256)"),
            ("\(sha256.uppercased())  a.iso", "a.iso", "sha-256:\(sha256)"),
            (" \t\(sha256)  a.iso", "a.iso", "sha-256:\(sha256)"),
            ("\(sha256)  a.iso\r", "a.iso", "sha-256:\(sha256)"),
            ("\(md5)  ./dir/b c.txt", "./dir/b c.txt", "md5:\(md5)"),
            ("\(sha1)   leading", " leading", "sha-1:\(sha1)"),
            ("\(sha1)  **", "**", "sha-1:\(sha1)"),
            ("\(sha512)  größe 🇩🇪", "größe 🇩🇪", "sha-512:\(sha512)"),
            ("\(sha256)  a (1) = b", "a (1) = b", "sha-256:\(sha256)"),
            ("\(sha256)  (1) = b", "(1) = b", "sha-256:\(sha256)"),
            (#"\\#(md5)  a\\b\nc\rd"#, "a\\b\nc\rd", "md5:\(md5)"),
            (#"\#(md5)  a\\b\nc"#, #"a\\b\nc"#, "md5:\(md5)"),
            ("SHA256 (a.iso) = \(sha256)", "a.iso", "sha-256:\(sha256)"),
            ("SHA256 (a.iso) = \(sha256)\r", "a.iso", "sha-256:\(sha256)"),
            ("MD5(a.iso)= \(md5)", "a.iso", "md5:\(md5)"),
            ("SHA1 (a (1).iso) = \(sha1)", "a (1).iso", "sha-1:\(sha1)"),
            ("SHA1 (a) = b) = \(sha1)", "a) = b", "sha-1:\(sha1)"),
            (#"\SHA256 (a\nb) = \#(sha256)"#, "a\nb", "sha-256:\(sha256)"),
        ] as [(String, String, String)]
    )
    func `a line gives a name and its checksum`(line: String, name: String, checksum: String) throws {
        let entry = try #require(try ChecksumList.entry(line.utf8, number: 1))
        #expect(entry.name == name)
        #expect(entry.checksum.text == checksum)
    }

    @Test(arguments: ["", " ", "\t", "\r", "#", "# a comment", "  # \(sha256)  a"])
    func `empty lines and comments are passed over`(line: String) throws {
        #expect(try ChecksumList.entry(line.utf8, number: 1) == nil)
    }

    @Test(
        arguments: [
            (sha256, "neither"), ("\(sha256)", "neither"), ("\(sha256)  ", "empty"), ("\(sha256) *", "empty"),
            ("\(sha256) ", "empty"), ("\(sha256)g  a", "neither"), ("a.iso  \(sha256)", "neither"),
            ("\(sha256.dropLast())  a", "63 hexadecimal digits"), ("\(sha256)0  a", "65 hexadecimal digits"),
            ("\(sha256.dropLast(2))  a", "62 hexadecimal digits"), ("  a", "neither"), ("abc", "neither"),
            ("SHA256 (a) = \(md5)", "64 hexadecimal digits"),
            ("MD5 (a) = \(sha256)", "32 hexadecimal digits"),
            ("SHA256 (a) = ", "64 hexadecimal digits"), ("SHA256 () = \(sha256)", "empty"),
            ("SHA256 (a) = \(sha256) b", "64 hexadecimal digits"),
            ("RMD160 (a) = \(sha1)", "\"RMD160\" is not known"),
            ("SHA256 (a) \(sha256)", "neither"), ("SHA256 (a = \(sha256)", "neither"),
            ("(a) = \(sha256)", "neither"),
            (#"\\#(md5)  a\tb"#, "escape"), (#"\\#(md5)  a\"#, "escape"), ("\\", "neither"),
            ("\(md5)  a\0b", "NUL"),
            ("-----BEGIN PGP SIGNED MESSAGE-----", "neither"), ("<!DOCTYPE html>", "neither"),
        ] as [(String, String)]
    )
    func `a line that is no entry tells what is wrong`(line: String, reason: String) throws {
        let failure = try #require(throws: ChecksumList.Failure.self) {
            try ChecksumList.entry(line.utf8, number: 7)
        }
        #expect(failure.line == 7)
        #expect(failure.reason.contains(reason))
        #expect(failure.description == "line 7: \(failure.reason)")
    }

    @Test func `a name that is not UTF-8 is refused`() throws {
        let failure = try #require(throws: ChecksumList.Failure.self) {
            try ChecksumList.parse(Array("\(md5)  a\n\(md5)  b".utf8) + [0xFF])
        }
        #expect(failure.line == 2)
        #expect(failure.reason.contains("UTF-8"))
    }

    @Test func `a list keeps its order and counts all lines`() throws {
        let text = "# sums\r\n\(md5)  b\r\n\r\nSHA1 (a) = \(sha1)\n\(sha256) *b\n"
        let entries = try ChecksumList.parse(text.utf8)
        #expect(entries.map(\.name) == ["b", "a", "b"])
        #expect(entries.map(\.checksum.algorithm) == [.md5, .sha1, .sha256])
        let failure = try #require(throws: ChecksumList.Failure.self) {
            try ChecksumList.parse("\(text)oops\n\(md5)  c\n".utf8)
        }
        #expect(failure.line == 6)
        #expect(try ChecksumList.parse("".utf8).isEmpty)
        #expect(try ChecksumList.parse("\n\n".utf8).isEmpty)
    }

    @Test(arguments: nastyTexts)
    func `nothing makes the parser trap`(text: String) {
        for line in [
            text, "\\\(text)", "\(md5)  \(text)", "\\\(md5)  \(text)", "MD5 (\(text)) = \(md5)",
            "MD5 (a) = \(text)",
        ] {
            _ = try? ChecksumList.entry(line.utf8, number: 1)
        }
    }
}
