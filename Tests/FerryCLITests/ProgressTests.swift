import FerryControl
import FerryCore
import Testing

@testable import FerryCLI

@Suite struct ProgressTests {
    private static let jobs = [
        transferring(1, path: "/d/image.iso", done: 700 << 20, total: 1 << 30),
        transferring(2, path: "/d/日本語のファイル名です.tar", done: 5 << 20, total: nil),
        sampleJob(3, .waiting) { job in
            job.reason = "retry"
            job.message = "connection refused"
            job.retryAt = noon + .seconds(75)
        },
        sampleJob(4, .running, url: "https://example.org/a\u{1B}[2J\u{202E}b") { $0.phase = .connecting },
        sampleJob(5, .queued, url: "https://example.org/👩‍🚀e\u{301}.png"),
    ]

    static let expected: [Int: [String]] = [
        20: [
            "image.iso      68 %",
            "日本語のファ…",
            "image.iso     wait…",
            "a\\u{1B}[2J\\u…",
            "👩\\u{200D}🚀… queu…",
        ],
        40: [
            "image.iso             68 %    3.0 MiB/s",
            "日本語のファイル名…           3.0 MiB/s",
            "image.iso            waiting (retry), …",
            "a\\u{1B}[2J\\u{202E}b          connecting",
            "👩\\u{200D}🚀é.png    queued",
        ],
        80: [
            "image.iso         [=====>  ]  68 %     700.0 MiB/1.0 GiB    3.0 MiB/s    1m 48s",
            "日本語のファイル… [<=>     ]                     5.0 MiB    3.0 MiB/s",
            "image.iso         waiting (retry), again in 1m 15s: connection refused",
            "a\\u{1B}[2J\\u{202… [<=>     ]                               connecting",
            "👩\\u{200D}🚀é.png queued",
        ],
        200: [
            "image.iso                  [=========================>            ]  68 %     700.0 MiB/1.0 GiB    3.0 MiB/s    1m 48s",
            "日本語のファイル名です.tar [                              <=>     ]                     5.0 MiB    3.0 MiB/s",
            "image.iso                  waiting (retry), again in 1m 15s: connection refused",
            "a\\u{1B}[2J\\u{202E}b        [                              <=>     ]                               connecting",
            "👩\\u{200D}🚀é.png          queued",
        ],
    ]

    @Test(arguments: [20, 40, 80, 200])
    func `lines are drawn to the width`(columns: Int) {
        let lines = ProgressView(columns: columns, rows: 24).lines(Self.jobs, now: noon)
        #expect(lines == Self.expected[columns])
        for line in lines {
            #expect(TextWidth.columns(line) < columns)
            #expect(!line.unicodeScalars.contains { $0.value < 32 })
        }
    }

    @Test(arguments: [
        (24, "image.iso     68 %"),
        (30, "image.iso   68 %    3.0 MiB/s"),
        (50, "image.iso [=====>  ]  68 %    3.0 MiB/s    1m 48s"),
        (60, "image.iso    [==========>    ]  68 %    3.0 MiB/s    1m 48s"),
    ])
    func `what fits is shown, the share first`(columns: Int, expected: String) {
        let line = ProgressView(columns: columns, rows: 24).line(Self.jobs[0], nameWanted: 9, now: noon)
        #expect(line == expected)
    }

    @Test func `many jobs leave a line for the number of the rest`() {
        let jobs = (1...30).map { transferring($0, path: "/d/f\($0)", done: 1, total: 2) }
        let lines = ProgressView(columns: 80, rows: 5).lines(jobs, more: 3, now: noon)
        #expect(lines.count == 4)
        #expect(lines.last == "… and 30 more")
        #expect(ProgressView(columns: 80, rows: 31).lines(jobs, now: noon).count == 30)
        #expect(ProgressView(columns: 80, rows: 1).lines(jobs, now: noon) == ["… and 30 more"])
    }

    @Test(arguments: [
        (0, 10, 0), (5, 10, 50), (10, 10, 99), (999, 1_000, 99), (12, 10, 99), (-1, 10, 0), (0, 0, 0),
    ])
    func `percent is clamped and never 100 before completion`(done: Int64, total: Int64, expected: Int) {
        var job = transferring(1, path: "/f", done: done, total: total)
        #expect(JobText.percent(job) == expected)
        job.state = .failed
        #expect(JobText.percent(job) == expected)
        job.state = .completed
        #expect(JobText.percent(job) == 100)
    }

    @Test func `the bar of an unknown length moves there and back`() {
        let job = transferring(1, path: "/f", done: 1, total: nil)
        let view = ProgressView(columns: 80, rows: 24)
        let positions = (0..<120).map { step -> Int in
            let line = view.line(job, nameWanted: 1, now: Timestamp(milliseconds: Int64(step) * 200))
            return Array(line).firstIndex(of: "<") ?? -1
        }
        #expect(!positions.contains(-1))
        #expect(zip(positions, positions.dropFirst()).allSatisfy { abs($0 - $1) == 1 })
        #expect(Set(positions).count > 5)
    }

    @Test func `plain lines come each tenth, not within 5 s, and every 30 s`() {
        var log = ProgressLog()
        func job(_ percent: Int64) -> JobDocument {
            transferring(1, path: "/d/f", done: percent << 20, total: 100 << 20)
        }
        log.printed(job(0), now: 0)
        let steps: [(time: Int64, percent: Int64, printed: Bool)] = [
            (1_000, 50, false), (4_999, 55, false), (5_000, 55, true), (9_999, 90, false),
            (10_001, 59, false),
            (12_000, 60, true), (41_999, 61, false), (42_000, 61, true), (47_000, 69, false),
            (48_000, 70, true),
        ]
        for step in steps {
            #expect((log.line(job(step.percent), now: step.time) != nil) == step.printed, "\(step)")
        }
        log.printed(job(10), now: 0)
        #expect(
            log.line(job(45), now: 6_000) == "job 1: f: 45 % of 100.0 MiB, 3.0 MiB/s, 18s left"
        )
    }

    @Test func `a plain line of an unknown length has no percent`() {
        let job = transferring(1, path: "/d/f", done: 3 << 20, total: nil)
        #expect(ProgressLog.text(job) == "job 1: f: 3.0 MiB, 3.0 MiB/s")
    }

    @Test func `the area is redrawn in place, and erased before other text`() {
        var area = LiveArea()
        #expect(area.erase(columns: 80).isEmpty)
        #expect(area.draw(["a", "b"], columns: 80) == "a\u{1B}[K\nb\u{1B}[K\n")
        #expect(area.draw(["c"], columns: 80) == "\r\u{1B}[2Ac\u{1B}[K\n\u{1B}[J")
        #expect(area.erase(columns: 80) == "\r\u{1B}[1A\u{1B}[J")
        #expect(!area.isDrawn)
    }

    @Test func `lines that wrapped when the terminal shrank are erased whole`() {
        var area = LiveArea()
        _ = area.draw([String(repeating: "x", count: 79)], columns: 80)
        #expect(area.erase(columns: 40) == "\r\u{1B}[2A\u{1B}[J")
    }

    @Test(arguments: [
        ("abc", 3), ("日本", 4), ("e\u{301}", 1), ("👩‍🚀", 2), ("🇩🇪", 2), ("ｆ", 2), ("한글", 4), ("❤️", 2), ("…", 1),
        ("", 0), ("\u{200B}", 0),
    ])
    func `a character takes as many columns as a terminal gives it`(text: String, columns: Int) {
        #expect(TextWidth.columns(text) == columns)
    }

    @Test(arguments: [
        ("abcdef", 6, "abcdef"), ("abcdef", 4, "abc…"), ("日本語", 5, "日本…"), ("日本語", 4, "日…"), ("ab", 1, "…"),
        ("ab", 0, ""),
    ])
    func `a text is cut at a character`(text: String, width: Int, expected: String) {
        #expect(TextWidth.cut(text, to: width) == expected)
        #expect(TextWidth.columns(TextWidth.fit(text, to: width)) == width)
    }
}
