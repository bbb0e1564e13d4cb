import FerryControl
import FerryCore
import FerryTestSupport
import FoundationEssentials
import Glibc
import Testing

@testable import FerryCLI

@Suite struct WatchLayoutTests {
    /// Compares a screen with the one in `Fixtures/watch`; FERRY_RECORD writes it instead.
    private func expectScreen(_ lines: [String], _ name: String) throws {
        let text = lines.map { $0 + "|" }.joined(separator: "\n") + "\n"
        let file = URL(filePath: Fixtures.file("watch/\(name).txt"))
        if getenv("FERRY_RECORD") != nil { try Data(text.utf8).write(to: file) }
        #expect(String(decoding: try Data(contentsOf: file), as: UTF8.self) == text)
    }

    private func busy(columns: Int, rows: Int) -> WatchState {
        var state = watchState(
            watched(variedJobs, more: 986, moreInGroups: ["weekly": 12]),
            columns: columns,
            rows: rows
        )
        for second in 0..<120 {
            state.sample(after: 1)
            var progress = transferring(1, path: "/d/image.iso", done: 700 << 20, total: 1 << 30)
            progress.rateBytesPerS = Int64(second % 40) << 18
            state.take([ProgressDocument(progress)])
        }
        return state
    }

    @Test(arguments: [(40, 24), (80, 24), (200, 50), (40, 6)])
    func `the screen is laid out to its size`(columns: Int, rows: Int) throws {
        var state = self.busy(columns: columns, rows: rows)
        _ = state.press(.down, now: noon)
        try self.expectScreen(screen(state), "list-\(columns)x\(rows)")
    }

    @Test(arguments: [40, 80])
    func `help and details are laid out to the width`(columns: Int) throws {
        var state = self.busy(columns: columns, rows: 24)
        _ = state.press(.character("?"), now: noon)
        try self.expectScreen(screen(state), "help-\(columns)")
        _ = state.press(.escape, now: noon)
        state.details = WatchState.Details(job: variedJobs[3])
        state.mode = .details(variedJobs[3].id, top: 0)
        try self.expectScreen(screen(state), "details-\(columns)")
    }

    /// Every size from nothing to large, every mode: lines fit, and hold nothing that moves the cursor.
    @Test func `no line is ever wider than the window or holds a control character`() {
        for columns in [0, 1, 2, 10, 39, 40, 41, 57, 79, 80, 110, 131, 200, 500] {
            for rows in [0, 1, 5, 6, 7, 13, 14, 24, 100] {
                var state = self.busy(columns: columns, rows: rows)
                let modes: [WatchState.Mode] = [
                    .list, .filter(before: ""), .help(top: 3), .details(JobID(rawValue: 3), top: 1),
                    .confirm(question: "really cancel 日本語のファイル名です.tar?", .cancel, Selector()),
                ]
                state.filter = columns % 2 == 0 ? "" : "example"
                for mode in modes {
                    state.mode = mode
                    state.details.job = variedJobs[2]
                    let lines = WatchLayout(state: state, now: noon).lines()
                    #expect(lines.count == rows || rows == 0)
                    for line in lines {
                        #expect(
                            line.columns <= max(1, columns - 1),
                            "\(columns)x\(rows) \(mode): \(line.text)"
                        )
                        #expect(line.columns == TextWidth.columns(line.text))
                        #expect(!line.text.unicodeScalars.contains { $0.value < 32 || $0.value == 0x202E })
                    }
                }
            }
        }
    }

    @Test func `countdowns go on without news`() {
        let state = watchState(watched([waiting(4, "retry", "connection refused", seconds: 75)]))
        func line(_ seconds: Int64) -> String {
            WatchLayout(state: state, now: noon + .seconds(seconds)).lines()[4].text
        }
        #expect(line(0).contains("waiting (retry), again in 1m 15s: connection refused"))
        #expect(line(60).contains("again in 15s"))
        #expect(line(80).contains("again in 0s"))
    }

    @Test func `thousands of jobs cost no more than a screen of them`() {
        let jobs = (1...5_000).map { sampleJob($0, .queued, url: "https://example.org/f\($0)") }
        var state = watchState(watched(jobs))
        _ = state.press(.end, now: noon)
        let time = ContinuousClock().measure {
            for _ in 0..<10 { _ = WatchLayout(state: state, now: noon).lines() }
        }
        // A screen of formatted lines takes some milliseconds, unoptimised; thousands of them a second each.
        #expect(time < .seconds(20))
    }

    @Test func `only lines that differ are written`() {
        var writer = ScreenWriter(
            style: Style(when: .never, isTerminal: true, environment: [:]),
            isASCII: false
        )
        let one = [StyledLine("a"), StyledLine("bb"), StyledLine("c")]
        #expect(
            writer.draw(one)
                == "\u{1B}[?2026h\u{1B}[m\u{1B}[2J\u{1B}[1;1Ha\u{1B}[2;1Hbb\u{1B}[3;1Hc\u{1B}[?2026l"
        )
        #expect(writer.draw(one) == "")
        #expect(writer.draw([StyledLine("a"), StyledLine("x"), StyledLine("c")]) == "\u{1B}[2;1Hx\u{1B}[K")
        writer.forget()
        #expect(writer.draw(one).contains("\u{1B}[2J"))
    }

    @Test func `looks need no colour`() {
        var line = StyledLine(" ab", StyledLine.Look(color: .red, isBold: true))
        line.add("cd", .dim)
        let colour = Style(when: .always, isTerminal: true, environment: [:])
        let none = Style(when: .auto, isTerminal: true, environment: ["NO_COLOR": "1"])
        #expect(line.rendered(colour, ascii: false) == "\u{1B}[1;31m ab\u{1B}[m\u{1B}[2mcd\u{1B}[m")
        #expect(line.rendered(none, ascii: false) == "\u{1B}[1m ab\u{1B}[mcd")
        line.isReversed = true
        #expect(line.rendered(none, ascii: false) == "\u{1B}[1;7m ab\u{1B}[m\u{1B}[7mcd\u{1B}[m")
    }

    @Test(arguments: [
        ("plain", "plain"), ("日本é…", "?????~"), ("━━╸── ▾ a · b", "==>-- v a - b"), ("▁▄█", ".:|"),
        ("e\u{301}👩‍🚀", "???"),
    ])
    func `without UTF-8 a line is ASCII and as wide`(text: String, expected: String) {
        #expect(StyledLine.ascii(text) == expected)
        #expect(TextWidth.columns(text) == expected.count)
    }

    @Test(arguments: [
        (["LANG": "de_DE.UTF-8"], true), (["LANG": "C.utf8"], true),
        (["LC_ALL": "C", "LANG": "C.UTF-8"], false),
        (["LC_CTYPE": "en_US.UTF-8", "LANG": "C"], true), ([:], false),
        (["LC_ALL": "", "LANG": "C.UTF-8"], true),
        (["LANG": "ca_ES.utf8@valencia"], true), (["LANG": "de_DE.ISO-8859-1"], false),
    ])
    func `the locale tells whether the terminal shows UTF-8`(environment: [String: String], expected: Bool) {
        #expect(WatchScreen.showsUTF8(environment) == expected)
    }

    @Test func `the graph has its newest sample at the right`() {
        var graph = RateGraph()
        #expect(graph.rows(2, columns: 4) == ["    ", "    "])
        #expect(graph.isFlat)
        for rate in [0, 1, 512, 1_024] as [Int64] { graph.add(rate) }
        #expect(graph.rows(1, columns: 6) == ["   ▁▄█"])
        #expect(graph.rows(2, columns: 3) == ["  █", "▁██"])
        graph.add(2_048, after: 3)
        #expect(graph.rows(1, columns: 4) == ["▄  █"])
        #expect(graph.top(columns: 4) == 2_048)
        for _ in 0..<2_000 { graph.add(5) }
        #expect(graph.samples.count == 512)
        graph.add(.max, after: .max)
        #expect(graph.rows(3, columns: 0) == ["", "", ""])
    }
}

extension ProgressDocument {
    /// The progress that a running job's document tells.
    fileprivate init(_ job: JobDocument) {
        self.init(
            id: job.id,
            phase: job.phase ?? .connecting,
            path: job.path,
            bytesDone: job.bytesDone,
            bytesDurable: job.bytesDurable,
            bytesTotal: job.bytesTotal,
            rateBytesPerS: job.rateBytesPerS,
            etaS: job.etaS
        )
    }
}
