import FerryControl
import FerryCore
import Testing

@testable import FerryCLI

@Suite struct RenderingTests {
    private static let jobs = [
        sampleJob(7, .completed) { job in
            job.path = "/d/image.iso"
            job.bytesDone = 1 << 30
            job.bytesTotal = 1 << 30
        },
        transferring(8, path: "/d/日本語のファイル名です.tar", done: 512 << 20, total: 1 << 30),
        sampleJob(9, .failed, url: "https://example.org/x?token=…") { job in
            job.reason = "not-found"
            job.message = "the server answered\n404"
        },
        sampleJob(10, .waiting) { job in
            job.reason = "retry"
            job.message = "connection refused"
            job.retryAt = noon + .seconds(75)
        },
    ]
    private static let counts = CountsDocument(states: [
        "completed": 1, "running": 1, "failed": 1, "waiting": 1, "paused": 0,
    ])
    private static let plain = Style(when: .never, isTerminal: true, environment: [:])

    static let expected: [Int: [String]] = [
        20: [
            "JOB  STATE      NAME",
            "  7  completed  ima…",
            "  8  running    日…",
            "  9  failed     htt…",
            " 10  waiting    htt…",
            "1 running, 1 waiting, 1 failed, 1 completed",
        ],
        40: [
            "JOB  STATE      NAME",
            "  7  completed  image.iso",
            "  8  running    日本語のフ…",
            "  9  failed     https://exa…  not-found…",
            " 10  waiting    https://exa…  retry, ag…",
            "1 running, 1 waiting, 1 failed, 1 completed",
        ],
        80: [
            "JOB  STATE       DONE     SIZE       RATE  NAME",
            "  7  completed  100 %  1.0 GiB             image.iso",
            "  8  running     50 %  1.0 GiB  3.0 MiB/s  日本語のファイル…",
            "  9  failed                                https://example.o…  not-found: the s…",
            " 10  waiting                               https://example.o…  retry, again in …",
            "1 running, 1 waiting, 1 failed, 1 completed",
        ],
        200: [
            "JOB  STATE       DONE     SIZE       RATE  NAME",
            "  7  completed  100 %  1.0 GiB             image.iso",
            "  8  running     50 %  1.0 GiB  3.0 MiB/s  日本語のファイル名です.tar",
            "  9  failed                                https://example.org/x?token=…  not-found: the server answered\\u{A}404",
            " 10  waiting                               https://example.org/image.iso  retry, again in 1m 15s: connection refused",
            "1 running, 1 waiting, 1 failed, 1 completed",
        ],
    ]

    @Test(arguments: [20, 40, 80, 200])
    func `a list fits the width`(width: Int) {
        let lines = JobTable(width: width, style: Self.plain).lines(Self.jobs, counts: Self.counts, now: noon)
        #expect(lines == Self.expected[width])
        for line in lines.dropLast() { #expect(TextWidth.columns(line) <= width) }
    }

    @Test func `a list in a pipe is cut nowhere`() {
        let lines = JobTable(width: nil, style: Self.plain).lines(Self.jobs, counts: Self.counts, now: noon)
        #expect(lines[3].hasSuffix("not-found: the server answered\\u{A}404"))
        #expect(lines.last == "1 running, 1 waiting, 1 failed, 1 completed")
        #expect(
            JobTable(width: nil, style: Self.plain).lines([], counts: CountsDocument(states: [:]), now: noon)
                == ["no jobs"]
        )
    }

    @Test func `colour does not change the columns`() {
        let style = Style(when: .always, isTerminal: false, environment: [:])
        let lines = JobTable(width: 80, style: style).lines(Self.jobs, counts: Self.counts, now: noon)
        #expect(lines[1].contains("\u{1B}[32mcompleted\u{1B}[0m"))
        let bare = lines.map { line in
            [31, 32, 33, 0].reduce(line) { text, number in
                text.split(separator: "\u{1B}[\(number)m", omittingEmptySubsequences: false).joined()
            }
        }
        #expect(bare == Self.expected[80])
    }

    @Test(
        arguments: [
            (Style.When.auto, true, [:], true), (.auto, false, [:], false),
            (.auto, true, ["NO_COLOR": "1"], false),
            (.auto, true, ["NO_COLOR": ""], true), (.auto, true, ["TERM": "dumb"], false),
            (.always, false, ["NO_COLOR": "1"], true), (.never, true, [:], false),
        ] as [(Style.When, Bool, [String: String], Bool)]
    )
    func `colour follows option, environment and terminal`(
        when: Style.When,
        isTerminal: Bool,
        environment: [String: String],
        expected: Bool
    ) {
        #expect(Style(when: when, isTerminal: isTerminal, environment: environment).isOn == expected)
    }

    @Test func `show names what is known`() {
        var job = Self.jobs[1]
        job.bytesDurable = 500 << 20
        job.attempt = 2
        job.startedAt = noon
        job.validator = ValidatorDocument(kind: "etag", value: "\"a\"", strong: true)
        job.protocol = "http"
        job.httpVersion = "1.1"
        job.segments = [SegmentDocument(startBytes: 0, endBytes: 1 << 30, durableBytes: 500 << 20)]
        let lines = JobDetails.lines(job, now: noon) { $0.description }
        #expect(
            lines == [
                "job:        8",
                "kind:       download",
                "state:      running, transferring",
                "url:        https://example.org/image.iso",
                "path:       /d/日本語のファイル名です.tar",
                "done:       50 %, 512.0 MiB (536870912 bytes) of 1.0 GiB (1073741824 bytes)",
                "durable:    500.0 MiB (524288000 bytes)",
                "rate:       3.0 MiB/s",
                "time left:  2m 50s",
                "attempt:    2",
                "created:    2026-11-30T12:00:00.000Z",
                "started:    2026-11-30T12:00:00.000Z",
                "validator:  etag \"a\"",
                "protocol:   http 1.1",
                "segment:    0..<1073741824, durable to 524288000",
            ]
        )
    }

    @Test func `show of a waiting job tells until when`() {
        let lines = JobDetails.lines(Self.jobs[3], now: noon) { $0.description }
        #expect(lines.contains("next try:   2026-11-30T12:01:15.000Z, in 1m 15s"))
        #expect(lines.contains("reason:     retry"))
    }

    @Test func `a log stands in order of time`() {
        var attempt = AttemptDocument(
            attempt: 1,
            beganAt: noon + .seconds(1),
            offsetBytes: 0,
            receivedBytes: 1_024
        )
        attempt.endedAt = noon + .seconds(3)
        attempt.outcome = "connection-lost"
        attempt.message = "the connection broke"
        attempt.hops = [
            HopDocument(
                url: "https://a/x",
                status: 302,
                address: "192.0.2.1",
                httpVersion: "1.1",
                firstByteMs: 12
            ),
            HopDocument(url: "https://b/x", status: nil, address: nil, httpVersion: nil, firstByteMs: nil),
        ]
        func entry(_ seconds: Int, _ kind: String, _ reason: String?) -> EventDocument {
            EventDocument(
                seq: Int64(seconds),
                time: noon + .seconds(seconds),
                job: JobID(rawValue: 1),
                kind: kind,
                state: nil,
                reason: reason,
                message: nil
            )
        }
        #expect(
            JobDetails.log([attempt], [], of: .upload, time: { _ in "" }).first?.contains(" sent") == true
        )
        let lines = JobDetails.log([attempt], [entry(0, "added", nil), entry(3, "waiting", "retry")]) {
            time in
            "\((time - noon).components.seconds)"
        }
        #expect(
            lines == [
                "0  added",
                "1  attempt 1 from byte 0: connection-lost after 2s, 1.0 KiB received",
                "    https://a/x: status 302, 192.0.2.1, HTTP/1.1, first byte after 12 ms",
                "    https://b/x: no answer",
                "    the connection broke",
                "3  waiting (retry)",
            ]
        )
    }

    @Test func `a failure is one sentence, with what helps below it`() {
        var job = Self.jobs[2]
        job.message = "the server answered 404"
        job.advice = "check the URL"
        #expect(
            JobText.failure(job)
                == "job 9 (https://example.org/x?token=…) failed: not-found: the server answered 404\ncheck the URL"
        )
        #expect(
            JobText.failure(sampleJob(1, .cancelled)) == "job 1 (https://example.org/image.iso) was cancelled"
        )
    }

    @Test func `a text from outside keeps its lines and loses what steers a terminal`() {
        #expect("a\u{202E}b\n\u{7}c".shownLines == "a\\u{202E}b\n\\u{7}c")
    }

    @Test func `leaving says how to go on`() {
        #expect(RunningCommand.farewell(.get, hasDaemon: true).contains("the daemon goes on"))
        let alone = RunningCommand.farewell(.get, hasDaemon: false)
        for words in ["the same command again", "'ferry run'", "'ferry list'"] {
            #expect(alone.contains(words))
        }
    }

    @Test func `an error's lines lose control characters, not their breaks`() {
        let error = FerryError(.exists, "a\u{1B}[2J\nhint", exitStatus: .failed)
        #expect(FerryCommand.text(error) == "a\\u{1B}[2J\nhint")
    }
}
