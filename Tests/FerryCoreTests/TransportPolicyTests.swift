import FerryCore
import Testing

private func http(_ host: String, port: Int = 80) -> Origin {
    Origin(scheme: "http", host: host, port: port)
}

@Suite struct TransportPolicyTests {
    @Test func `origins are compared in small letters and without brackets`() {
        #expect(
            Origin(scheme: "HTTPS", host: "Example.ORG", port: 443)
                == Origin(scheme: "https", host: "example.org", port: 443)
        )
        #expect(http("[::1]").host == "::1")
        #expect(http("a") != http("a", port: 8_080))
        #expect(http("a") != Origin(scheme: "https", host: "a", port: 80))
    }

    @Test(arguments: [
        "127.0.0.1", "127.255.255.254", "::1", "[::1]", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "localhost",
        "LOCALHOST", "a.localhost", "a.b.localhost",
    ])
    func `loopback needs no leave`(host: String) {
        #expect(TransportPolicy().refusal(of: http(host)) == nil)
    }

    @Test(arguments: [
        "example.org", "10.0.0.1", "192.168.1.1", "128.0.0.1", "0.0.0.0", "::", "::2", "fe80::1", "fd00::1",
        "box",
        "box.local", "notlocalhost", "localhost.example.org", "127.0.0.1.example.org", "127.0.0.1x", "127.1",
        "0127.0.0.1", "::ffff:10.0.0.1", "",
    ])
    func `everything else is refused, with the way out`(host: String) throws {
        let sentence = try #require(TransportPolicy().refusal(of: http(host)))
        #expect(sentence.contains(host))
        for way in ["https", "--allow-http", "transport.allow_http"] { #expect(sentence.contains(way)) }
        #expect(TransportPolicy().refusal(of: Origin(scheme: "https", host: host, port: 443)) == nil)
        #expect(TransportPolicy(jobAllowsHTTP: true).refusal(of: http(host)) == nil)
        #expect(TransportPolicy(httpsOnly: false).refusal(of: http(host)) == nil)
    }

    @Test(arguments: ["ftp", "file", "", "javascript"])
    func `other schemes are refused whatever is allowed`(scheme: String) {
        let policy = TransportPolicy(httpsOnly: false, allowLocalHTTP: true, jobAllowsHTTP: true)
        #expect(policy.refusal(of: Origin(scheme: scheme, host: "localhost", port: 1)) != nil)
    }

    @Test(arguments: [
        ("example.org", "example.org", true), ("Example.org", "EXAMPLE.ORG", true),
        (" example.org ", "example.org", true),
        ("example.org", "a.example.org", false), ("example.org", "badexample.org", false),
        ("*.example.org", "a.example.org", true), ("*.example.org", "a.b.example.org", true),
        ("*.example.org", "example.org", false), ("*.example.org", "badexample.org", false),
        ("*.lan", "nas.lan", true), ("*.lan", ".lan", false), ("*.", "a.", false),
        ("*", "example.org", false),
        ("", "", false), ("", "example.org", false), ("10.0.0.5", "10.0.0.5", true),
        ("10.0.0.5", "10.0.0.6", false),
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
        ("10.0.0.0/8", "::ffff:10.1.2.3", true),
        ("10.0.0.0/0", "200.1.1.1", true), ("10.0.0.0/33", "10.0.0.0", false),
        ("10.0.0.0/x", "10.0.0.0", false),
        ("10.0.0.0/", "10.0.0.0", false), ("10.0.0.0/-1", "10.0.0.0", false),
        ("10.0.0.4/31", "10.0.0.5", true),
        ("10.0.0.4/31", "10.0.0.6", false), ("10.0.0.5/32", "10.0.0.5", true),
        ("10.0.0.0/8", "10.example.org", false),
        ("172.16.0.0/12", "172.31.255.255", true), ("172.16.0.0/12", "172.32.0.0", false),
        ("fd00::/8", "fd12:3456::1", true), ("fd00::/8", "fe80::1", false), ("[fd00::1]", "fd00:0::1", true),
        ("fe80::/10", "[FEBF::1]", true), ("::/0", "10.0.0.1", false), ("::/129", "::5", false),
        ("2001:db8::1.2.3.4", "2001:db8::102:304", true), ("999.0.0.1", "999.0.0.1", true),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", true), ("1::2::3", "1::2::3", true),
        ("*.0.0.1", "10.0.0.1", false),
    ])
    func `hosts are listed by name, suffix, address and network`(entry: String, host: String, allowed: Bool) {
        let policy = TransportPolicy(allowHTTP: ["other.example", entry])
        #expect((policy.refusal(of: http(host)) == nil) == allowed)
    }

    @Test(arguments: [
        ("10.1.2.3", true), ("172.16.0.1", true), ("192.168.0.1", true), ("169.254.1.1", true),
        ("fd00::1", true),
        ("fe80::1%eth0", true), ("box", true), ("box.local", true), ("8.8.8.8", false),
        ("2001:db8::1", false),
        ("example.org", false), ("172.32.0.1", false), ("", false),
    ])
    func `local networks are free only by their setting`(host: String, allowed: Bool) {
        #expect((TransportPolicy(allowLocalHTTP: true).refusal(of: http(host)) == nil) == allowed)
        #expect(TransportPolicy().refusal(of: http(host)) != nil)
    }
}

@Suite struct RedirectPlanTests {
    private static func address(_ url: String, userInfo: Bool = false) -> WebAddress {
        let scheme = String(url.prefix { $0 != ":" })
        let rest = url.dropFirst(scheme.count + 3)
        let host = String(rest.prefix { $0 != "/" })
        let parts = host.split(separator: ":")
        return WebAddress(
            url: url,
            origin: Origin(
                scheme: scheme,
                host: parts.first.map(String.init) ?? "",
                port: parts.count > 1 ? Int(parts[1]) ?? 0 : scheme == "https" ? 443 : 80
            ),
            path: String(rest.dropFirst(host.count)),
            hasUserInfo: userInfo
        )
    }

    private static let start = address("https://a.example/x")

    @Test(arguments: [301, 302, 303, 307, 308])
    func `each redirect is followed, with credentials to the same origin only`(status: Int) {
        for (url, drops) in [
            ("https://a.example/y", false), ("https://b.example/x", true), ("https://a.example:8443/x", true),
        ] {
            var plan = RedirectPlan()
            let to = Self.address(url)
            #expect(
                plan.next(status: status, from: Self.start, to: to, policy: TransportPolicy())
                    == .follow(to, dropsCredentials: drops)
            )
        }
    }

    @Test(arguments: [200, 300, 304, 305, 306, 309, 404])
    func `other statuses are no redirects`(status: Int) {
        var plan = RedirectPlan()
        let step = plan.next(
            status: status,
            from: Self.start,
            to: Self.address("https://a.example/y"),
            policy: TransportPolicy()
        )
        guard case .broken = step else {
            Issue.record("\(step)")
            return
        }
    }

    @Test func `https never goes to http, whatever is allowed`() {
        let policy = TransportPolicy(httpsOnly: false, allowLocalHTTP: true, jobAllowsHTTP: true)
        for url in ["http://a.example/x", "http://localhost/x", "ftp://a.example/x"] {
            var plan = RedirectPlan()
            let step = plan.next(status: 302, from: Self.start, to: Self.address(url), policy: policy)
            guard case .refuse(let sentence) = step else {
                Issue.record("\(step)")
                return
            }
            #expect(sentence.contains("https"))
        }
    }

    @Test func `http goes to https, and to http with leave`() {
        let from = Self.address("http://localhost/x")
        let up = Self.address("https://localhost/x")
        var plan = RedirectPlan()
        #expect(
            plan.next(status: 301, from: from, to: up, policy: TransportPolicy())
                == .follow(up, dropsCredentials: true)
        )
        let other = Self.address("http://b.example/x")
        var second = RedirectPlan()
        guard
            case .refuse(let sentence) = second.next(
                status: 301,
                from: from,
                to: other,
                policy: TransportPolicy()
            )
        else {
            Issue.record("followed")
            return
        }
        #expect(sentence.contains("--allow-http"))
        let allowed = TransportPolicy(jobAllowsHTTP: true)
        #expect(
            second.next(status: 301, from: from, to: other, policy: allowed)
                == .follow(other, dropsCredentials: true)
        )
    }

    @Test func `credentials that were dropped stay dropped`() {
        var plan = RedirectPlan()
        let middle = Self.address("https://b.example/x")
        let back = Self.address("https://a.example/z")
        _ = plan.next(status: 302, from: Self.start, to: middle, policy: TransportPolicy())
        #expect(
            plan.next(status: 302, from: middle, to: back, policy: TransportPolicy())
                == .follow(back, dropsCredentials: true)
        )
    }

    @Test func `a circle is broken, also one of fragments`() {
        let next = Self.address("https://a.example/y")
        for last in [
            "https://a.example/x", "https://a.example/y", "https://a.example/x#f", "https://a.example/y#g",
        ] {
            var plan = RedirectPlan()
            _ = plan.next(status: 302, from: Self.start, to: next, policy: TransportPolicy())
            #expect(
                plan.next(status: 302, from: next, to: Self.address(last), policy: TransportPolicy())
                    == .broken("the server redirects in a circle")
            )
        }
    }

    @Test(arguments: [0, 1, 10])
    func `the number of hops is limited`(limit: Int) {
        var plan = limit == 10 ? RedirectPlan() : RedirectPlan(limit: limit)
        for hop in 0...limit {
            let from = Self.address("https://a.example/\(hop)")
            let to = Self.address("https://a.example/\(hop + 1)")
            let step = plan.next(status: 302, from: from, to: to, policy: TransportPolicy())
            #expect(
                step
                    == (hop < limit
                        ? .follow(to, dropsCredentials: false)
                        : .broken("the server redirects more than \(limit) times"))
            )
        }
    }

    @Test func `a target that is none or names a user is not followed`() {
        var plan = RedirectPlan()
        guard case .broken = plan.next(status: 302, from: Self.start, to: nil, policy: TransportPolicy())
        else {
            Issue.record("followed")
            return
        }
        let named = Self.address("https://b.example/x", userInfo: true)
        guard case .refuse = plan.next(status: 302, from: Self.start, to: named, policy: TransportPolicy())
        else {
            Issue.record("followed")
            return
        }
    }

    @Test(arguments: [
        ("Accept", true), ("accept-language", true), ("USER-AGENT", true), ("Authorization", false),
        ("Cookie", false),
        ("X-Api-Key", false), ("Referer", false), ("Accept-Charset", false), ("", false), ("Accept ", false),
    ])
    func `few of the user's fields cross origins`(name: String, crosses: Bool) {
        #expect(RedirectPlan.mayCross(header: name) == crosses)
    }
}
