import FerryControl
import FerryCore
import Testing

@testable import FerryCLI

@Suite struct InvocationTests {
    static let bad: [([String], String)] = [
        (["get"], "ferry get needs a URL"),
        (["add", ""], "ferry add: a URL is empty"),
        (["get", "-o", "f", "a", "b"], "-o names one file, but there are 2 URLs; -d DIR names a folder"),
        (["get", "-o", "f", "-o", "g", "a"], "ferry get takes only one -o; use a command for each file"),
        (
            ["get", "-o", "-", "a"],
            "-o - is not possible: ferry writes files that it can resume, not to standard output"
        ),
        (["get", "-o", "d/", "a"], "-o: 'd/' names a folder, not a file; -d DIR names the folder"),
        (["get", "-o", "d/..", "a"], "-o: 'd/..' names a folder, not a file; -d DIR names the folder"),
        (
            ["get", "-o", String(repeating: "n", count: 256), "a"],
            "-o: the file's name is longer than 255 bytes"
        ),
        (
            ["get", "--cacert", "/nowhere/ca.pem", "a"],
            "--cacert: '/nowhere/ca.pem' cannot be read: No such file or directory"
        ),
        (["get", "--cacert", "/", "a"], "--cacert: '/' is no file"),
        (["show"], "ferry show needs the number of one job"),
        (["log", "1", "2"], "ferry log needs the number of one job"),
        (["show", "x"], "'x' is no number of a job; 'ferry list' shows them"),
        (["show", "0"], "'0' is no number of a job; 'ferry list' shows them"),
        (["wait"], "ferry wait needs numbers of jobs or --group"),
        (["wait", "1", "--group", "g"], "ferry wait takes only one of numbers of jobs or --group"),
        (["set"], "ferry set needs the number of a job"),
        (["set", "1"], "ferry set needs something to change, such as --priority 5"),
        (["set", "1", "2", "--url", "u"], "--url is that of one job, but there are 2"),
        (["set", "1", "2", "-o", "f"], "-o is that of one job, but there are 2"),
        (["set", "1", "-o", "d/"], "-o: 'd/' names a folder, not a file; -d DIR names the folder"),
        (["limit", "fast"], "RATE: 'fast' is no rate such as 500K or 10M, and not 'none' or 'default'"),
        (["limit", "1M", "2M"], "ferry limit takes one RATE; --down and --up limit one direction"),
        (["list", "3"], "ferry list takes no operand such as '3'"),
        (["run", "now"], "ferry run takes no operand such as 'now'"),
        (["list", "--limit", "0"], "--limit: there is nothing to list with a limit of 0"),
        (["pause"], "ferry pause needs numbers of jobs, --group and --state, or --all"),
        (
            ["cancel", "1", "--all"],
            "ferry cancel takes only one of numbers of jobs, --group and --state, or --all"
        ),
        (
            ["retry", "--group", "g", "--all"],
            "ferry retry takes only one of numbers of jobs, --group and --state, or --all"
        ),
        (["help", "gett"], "ferry help: 'gett' is no command"),
    ]

    @Test(arguments: bad)
    func `wrong use is one clear sentence and status 2`(words: [String], message: String) {
        let error = #expect(throws: FerryError.self) { try invocation(words) }
        #expect(error == .usage(message))
    }

    static let values: [([String], String)] = [
        (["add", "--priority", "101", "u"], "--priority: '101' is no number from -100 to 100"),
        (["add", "--priority", "--5", "u"], "--priority: '--5' is no number from -100 to 100"),
        (
            ["add", "--group", "a b", "u"],
            "--group: the name of a group holds a blank, a comma, a quote or a control character"
        ),
        (["list", "--group", ""], "--group: the name of a group is empty"),
        (
            ["add", "--not-before", "25:00", "u"],
            "--not-before: '25:00' is no time such as 22:00, +8h, 2026-12-24 or 2026-12-24T22:00:00Z"
        ),
        (["list", "--host", "a/b"], "--host: 'a/b' is no host such as example.org or example.org:8443"),
        (["limit", "--running", "0"], "--running: '0' is no number from 1 to 1000 and not 'default'"),
        (["limit", "--running", "1001"], "--running: '1001' is no number from 1 to 1000 and not 'default'"),
        (
            ["limit", "--down", "10Mbit"],
            "--down: '10Mbit' is no rate such as 500K or 10M, and not 'none' or 'default'"
        ),
        (["get", "-l", "-5", "u"], "-l: '-5' is no rate such as 500K or 10M, and not 'none'"),
        (
            ["set", "1", "--limit-rate", "", "u"],
            "--limit-rate: '' is no rate such as 500K or 10M, and not 'none'"
        ),
        (["list", "--limit-rate", "1M"], "ferry list has no option --limit-rate; ferry get has"),
    ]

    @Test(arguments: values)
    func `a bad value is one clear sentence and status 2`(words: [String], message: String) {
        let error = #expect(throws: FerryError.self) { try ArgumentParser.parse(words) }
        #expect(error == .usage(message))
    }

    @Test func `a group, a priority and a time go with the job`() throws {
        guard
            case .add(let order) = try invocation([
                "add", "--group", "nightly", "--priority=-5", "--not-before", "2099-12-24T22:00:00Z", "u",
            ])
        else {
            Issue.record("no add")
            return
        }
        #expect(order.requests.map(\.group) == ["nightly"])
        #expect(order.requests.map(\.priority) == [-5])
        #expect(order.requests.map(\.notBefore) == [Timestamp(year: 2099, month: 12, day: 24, hour: 22)])
    }

    @Test(arguments: [
        (["limit", "10M"], LimitChange(rate: .set(10 << 20))),
        (["limit", "0"], LimitChange(rate: .unlimited)),
        (["limit", "--up", "none", "--down", "1.5MB"], LimitChange(down: .set(1_500_000), up: .unlimited)),
        (["limit", "default", "--running", "3"], LimitChange(running: .set(3), rate: .configured)),
        (["limit", "--host", "a:80", "4096"], LimitChange(host: "a:80", rate: .set(4_096))),
        (["limit", "--host=a", "--down=default"], LimitChange(host: "a", down: .configured)),
    ])
    func `limit takes rates`(words: [String], change: LimitChange) throws {
        guard case .limit(let changes, let host) = try invocation(words) else {
            Issue.record("no limit")
            return
        }
        #expect(changes == [change])
        #expect(host == change.host)
    }

    @Test(
        arguments: [("500K", 512_000, 512_000), ("0", nil, 0), ("none", nil, 0)] as [(String, Int64?, Int64)]
    )
    func `a job takes a rate`(text: String, added: Int64?, set: Int64) throws {
        guard case .get(let order) = try invocation(["get", "-l", text, "u"]),
            case .set(_, let changes, nil) = try invocation(["set", "1", "-l\(text)"])
        else {
            Issue.record("another invocation")
            return
        }
        #expect(order.requests.map(\.limitRateBytes) == [added])
        #expect(changes == JobChanges(limitRateBytes: set))
        let request = JobRequest(url: "u", directory: "/", limitRateBytes: 7)
        #expect(changes.applied(to: request).limitRateBytes == added)
        #expect(JobChanges(priority: 1).applied(to: request).limitRateBytes == 7)
    }

    @Test func `set takes its changes, and limit its numbers`() throws {
        guard
            case .set(let jobs, let changes, let destination) = try invocation([
                "set", "3", "--priority", "+7", "-H", "A: 1", "-H", "B:", "-o", "x/f", "--attempts", "0",
                "--allow-http",
            ]),
            case .limit(let limits, host: "a") = try invocation(["limit", "--host", "a", "--running", "3"]),
            case .limit(let none, host: nil) = try invocation(["limit"]),
            case .wait(let waited, timeout: nil) = try invocation(["wait", "--group", "a", "--group", "b"]),
            case .steer(.retry, let failed, false) = try invocation([
                "retry", "--group", "a", "--state", "failed",
            ])
        else {
            Issue.record("another invocation")
            return
        }
        #expect(jobs == [JobID(rawValue: 3)])
        #expect(
            changes
                == JobChanges(
                    priority: 7,
                    headers: [RequestHeader(name: "A", value: "1"), RequestHeader(name: "B", value: "")],
                    allowHTTP: true,
                    output: "/home/u/x/f",
                    attempts: 0
                )
        )
        #expect(destination?.directory == "/home/u/x")
        #expect(limits == [LimitChange(host: "a", running: .set(3))])
        #expect(none.isEmpty)
        #expect(waited == Selector(groups: ["a", "b"]))
        #expect(failed == Selector(states: [.failed], groups: ["a"]))
    }

    static let destinations: [([String], directory: String, output: String?)] = [
        ([], "/home/u", nil),
        (["-d", "x"], "/home/u/x", nil),
        (["-d", "/x/./y//"], "/x/y", nil),
        (["-o", "f"], "/home/u", "/home/u/f"),
        (["-o", "./s/f"], "/home/u/s", "/home/u/s/f"),
        (["-o", "/f"], "/", "/f"),
        (["-d", "x", "-o", "f"], "/home/u/x", "/home/u/x/f"),
        (["-d", "x", "-o", "s/f"], "/home/u/x/s", "/home/u/x/s/f"),
        (["-d", "/x", "-o", "/y/f"], "/y", "/y/f"),
    ]

    @Test(arguments: destinations)
    func `paths are made absolute`(options: [String], directory: String, output: String?) throws {
        guard case .add(let order) = try invocation(["add"] + options + ["u"]) else {
            Issue.record("no add")
            return
        }
        #expect(order.requests.map(\.directory) == [directory])
        #expect(order.requests.map(\.output) == [output])
    }

    @Test(arguments: [
        ("/a/../b", "/b"), ("/link/../b", "/link/../b"), ("/../a", "/a"), ("/a/b/../../c", "/c"), ("/", "/"),
        ("/link/../../b", "/link/../../b"), ("/.//a/.", "/a"),
    ])
    func `dots leave a path only where no link stands before them`(path: String, expected: String) {
        #expect(Surroundings.normalise(path) { $0 != "/link" } == expected)
    }

    @Test func `get keeps the caller's surroundings with each job`() throws {
        let caller = surroundings([
            "http_proxy": "http://p:1", "HTTP_PROXY": "http://evil", "HTTPS_PROXY": "http://p:2",
            "ALL_PROXY": "",
            "all_proxy": "socks5://p", "NO_PROXY": "localhost", "SSL_CERT_FILE": "ca/all.pem",
        ])
        let words = [
            "get", "-d", "in", "--if-exists", "skip", "-H", "A:  1 ", "--allow-http", "--attempts", "3",
            "--stall-timeout", "1.5m", "https://a/x", "example.org/y",
        ]
        guard case .get(let order) = try invocation(words, in: caller) else {
            Issue.record("no get")
            return
        }
        var expected = JobRequest(
            url: "https://a/x",
            directory: "/home/u/in",
            ifExists: .skip,
            headers: [RequestHeader(name: "A", value: "1")],
            allowHTTP: true,
            caFile: "/home/u/ca/all.pem",
            attempts: 3,
            umask: 0o027,
            proxy: ProxyEnvironment(
                http: "http://p:1",
                https: "http://p:2",
                all: "socks5://p",
                no: "localhost"
            ),
            foreground: true
        )
        expected.stallTimeout = .seconds(90)
        var second = expected
        second.url = "example.org/y"
        #expect(order.requests == [expected, second])
        expected.foreground = false
        guard case .add(let added) = try invocation(["add"] + words.dropFirst(), in: caller) else {
            Issue.record("no add")
            return
        }
        #expect(added.requests.first == expected)
    }

    @Test func `selectors take numbers, states or all`() throws {
        guard case .steer(.pause, let numbers, false) = try invocation(["pause", "3", "1", "3"]),
            case .steer(.cancel, let states, true) = try invocation([
                "cancel", "--keep-partial", "--state", "paused,failed",
            ]),
            case .steer(.retry, let all, false) = try invocation(["retry", "--all"]),
            case .list(let listed, "h", 5, true) = try invocation(["list", "--host=h", "--limit=5", "--all"])
        else {
            Issue.record("other commands")
            return
        }
        #expect(numbers == Selector(jobs: [JobID(rawValue: 3), JobID(rawValue: 1)]))
        #expect(states == Selector(states: [.paused, .failed]))
        #expect(all == Selector(all: true))
        #expect(listed == Selector(all: true))
    }
}
