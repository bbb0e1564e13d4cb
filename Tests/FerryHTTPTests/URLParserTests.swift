import FerryCore
import Testing

@testable import FerryHTTP

@Suite struct URLParserTests {
    struct Good: Sendable, CustomTestStringConvertible {
        let text: String
        let url: String
        let origin: Origin
        var path = "/"
        var user: String?
        var password: String?
        var testDescription: String { self.text }
    }

    @Test(arguments: [
        Good(text: "https:///example.org", url: "https://example.org/", origin: https("example.org")),
        Good(text: "https://example.org", url: "https://example.org/", origin: https("example.org")),
        Good(
            text: "HTTPS://Example.ORG/A",
            url: "https://Example.ORG/A",
            origin: https("example.org"),
            path: "/A"
        ),
        Good(
            text: "http://example.org:8080/a/b?c=d",
            url: "http://example.org:8080/a/b?c=d",
            origin: Origin(scheme: "http", host: "example.org", port: 8080),
            path: "/a/b"
        ),
        Good(
            text: "http://example.org:80/",
            url: "http://example.org:80/",
            origin: Origin(scheme: "http", host: "example.org", port: 80)
        ),
        Good(
            text: "https://example.org/a#part",
            url: "https://example.org/a",
            origin: https("example.org"),
            path: "/a"
        ),
        Good(
            text: "https://me:p%40ss@example.org/a",
            url: "https://example.org/a",
            origin: https("example.org"),
            path: "/a",
            user: "me",
            password: "p@ss"
        ),
        Good(
            text: "https://me@example.org/",
            url: "https://example.org/",
            origin: https("example.org"),
            user: "me"
        ),
        Good(
            text: "https://[::1]:8443/a",
            url: "https://[::1]:8443/a",
            origin: Origin(scheme: "https", host: "::1", port: 8443),
            path: "/a"
        ),
        Good(
            text: "https://[2001:DB8::1]/",
            url: "https://[2001:DB8::1]/",
            origin: https("2001:db8::1")
        ),
        Good(
            text: "https://example.org/a b",
            url: "https://example.org/a%20b",
            origin: https("example.org"),
            path: "/a%20b"
        ),
        Good(
            text: "https://example.org/gr\u{f6}\u{df}e?q=\u{e4}",
            url: "https://example.org/gr%c3%b6%c3%9fe?q=%c3%a4",
            origin: https("example.org"),
            path: "/gr%c3%b6%c3%9fe"
        ),
        Good(
            text: "https://example.org/a%2fb",
            url: "https://example.org/a%2fb",
            origin: https("example.org"),
            path: "/a%2fb"
        ),
        Good(
            text: "https://example.org/a/../b/./c",
            url: "https://example.org/b/c",
            origin: https("example.org"),
            path: "/b/c"
        ),
        Good(
            text: "ftp://example.org/a",
            url: "ftp://example.org/a",
            origin: Origin(scheme: "ftp", host: "example.org", port: 80),
            path: "/a"
        ),
    ])
    func `a URL is taken apart`(_ item: Good) throws {
        let parsed = try URLParser.parse(item.text)
        #expect(parsed.address.url == item.url)
        #expect(parsed.address.origin == item.origin)
        #expect(parsed.address.path == item.path)
        #expect(parsed.user == item.user)
        #expect(parsed.password == item.password)
        #expect(parsed.address.hasUserInfo == (item.user != nil || item.password != nil))
    }

    private static func https(_ host: String) -> Origin {
        Origin(scheme: "https", host: host, port: 443)
    }

    @Test(arguments: [
        ("", "is empty"),
        ("example.org/file", "has no scheme; write https://example.org/file"),
        ("me:secret@example.org/file", "has no scheme; write https://example.org/file"),
        ("//example.org/file", "has no scheme"),
        ("mailto:me@example.org", "has no scheme"),
        ("https://example.org/a\nb", "holds control characters"),
        ("https://example.org/a\u{0}b", "holds control characters"),
        ("https://example.org/a\u{7f}", "holds control characters"),
        ("https://", "does not parse"),
        ("https://example.org:0/", ""),
        ("https://example.org:65536/", ""),
        ("https://example.org:port/", ""),
        ("https://[::1/", ""),
        ("https://exa mple.org/", ""),
        ("://example.org/", ""),
    ])
    func `what is no URL is refused with a reason`(_ text: String, _ reason: String) {
        let failure = #expect(throws: URLParser.Failure.self) { try URLParser.parse(text) }
        #expect(failure?.reason.hasPrefix(reason) == true, "\(failure?.reason ?? "")")
        #expect(failure?.reason.contains("secret") == false)
    }

    @Test func `a very long URL is taken, an absurd one refused`() throws {
        let path = String(repeating: "a", count: 100_000)
        #expect(try URLParser.parse("https://example.org/\(path)").address.path == "/\(path)")
        #expect(throws: URLParser.Failure.self) {
            try URLParser.parse("https://example.org/" + String(repeating: "a", count: 9_000_000))
        }
    }

    @Test(arguments: [
        ("https://other.org/x", "https://other.org/x"),
        ("http://other.org:81/x#y", "http://other.org:81/x"),
        ("//other.org/x", "https://other.org/x"),
        ("/x", "https://example.org/x"),
        ("x", "https://example.org/a/x"),
        ("../x", "https://example.org/x"),
        ("./x?y", "https://example.org/a/x?y"),
        ("?q=1", "https://example.org/a/b?q=1"),
        ("/a b", "https://example.org/a%20b"),
        ("/\u{e4}", "https://example.org/%c3%a4"),
    ])
    func `a Location is resolved against what was asked`(_ location: String, _ url: String) throws {
        let base = try URLParser.parse("https://example.org/a/b?c=d").address
        #expect(URLParser.resolve(location, against: base)?.url == url)
    }

    @Test(arguments: ["", "https://", "http://exa mple.org/", "https://example.org:99999/"])
    func `a Location that is no URL resolves to nothing`(_ location: String) throws {
        let base = try URLParser.parse("https://example.org/a/b?c=d").address
        #expect(URLParser.resolve(location, against: base) == nil)
    }

    @Test func `user info of a Location is told and not kept in the URL`() throws {
        let base = try URLParser.parse("https://example.org/").address
        let address = try #require(URLParser.resolve("https://me:pw@other.org/x", against: base))
        #expect(address.hasUserInfo)
        #expect(address.url == "https://other.org/x")
    }

    /// The test vectors of FIPS 180-4's examples.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ])
    func `a fingerprint is the SHA-256 of the text`(_ text: String, _ digest: String) {
        #expect(URLParser.fingerprint(text) == digest)
    }
}
