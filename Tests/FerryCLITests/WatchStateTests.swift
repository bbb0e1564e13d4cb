import FerryControl
import FerryCore
import Testing

@testable import FerryCLI

@Suite struct WatchStateTests {
    private func pressed(_ state: inout WatchState, _ keys: Key...) -> [WatchState.Action] {
        keys.flatMap { state.press($0, now: noon) }
    }

    private func queued(_ ids: ClosedRange<Int64>, group: String? = nil) -> [JobDocument] {
        ids.map { id in sampleJob(id, .queued, url: "https://example.org/f\(id)") { $0.group = group } }
    }

    @Test func `what is at work comes first and each group has a heading`() {
        let state = watchState(watched(variedJobs))
        let jobs: [WatchState.Row] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13].map {
            .job(JobID(rawValue: $0))
        }
        #expect(state.rows == jobs + [.group("nightly"), .job(JobID(rawValue: 14))])
    }

    @Test func `queued jobs stand in the order in which they run`() {
        var jobs = self.queued(1...3)
        jobs[2].priority = 10
        #expect(watchState(watched(jobs)).rows == [3, 1, 2].map { .job(JobID(rawValue: $0)) })
    }

    /// A key on a job of a state, and what has to be done.
    @Test(arguments: [
        (JobState.queued, Key.character(" "), SteerAction.pause),
        (.running, .character(" "), .pause),
        (.waiting, .character(" "), .pause),
        (.paused, .character(" "), .resume),
        (.failed, .character("r"), .retry),
        (.waiting, .character("r"), .retry),
    ])
    func `a key steers the chosen job`(jobState: JobState, key: Key, action: SteerAction) {
        var state = watchState(watched([sampleJob(7, jobState)]))
        #expect(self.pressed(&state, .down, key) == [.steer(action, Selector(jobs: [JobID(rawValue: 7)]))])
    }

    @Test(arguments: [
        (JobState.failed, Key.character(" ")), (.completed, .character(" ")), (.cancelled, .character(" ")),
        (.running, .character("r")), (.queued, .character("r")), (.completed, .character("c")),
        (.failed, .character("+")), (.completed, .character("-")),
    ])
    func `a key that does not fit the job says why`(jobState: JobState, key: Key) {
        var state = watchState(watched([sampleJob(7, jobState)]))
        #expect(self.pressed(&state, .down, key) == [])
        #expect(state.mode == .list)
        #expect(state.notice?.text.contains("job 7") == true)
    }

    @Test func `plus and minus change the priority step by step`() {
        let id = JobID(rawValue: 7)
        var state = watchState(watched([sampleJob(7, .running) { $0.priority = 98 }]))
        #expect(self.pressed(&state, .down, .character("+")) == [.prioritize(id, 99)])
        #expect(
            self.pressed(&state, .character("="), .character("-"))
                == [.prioritize(id, 100), .prioritize(id, 99)]
        )
        #expect(self.pressed(&state, .character("+")) == [.prioritize(id, 100)])
        #expect(self.pressed(&state, .character("+")) == [])
        #expect(state.notice?.text.contains("100") == true)
        state.take([SteeredJob(id: id, state: .running)], priority: 100, now: noon)
        #expect(state.notice?.text == "job 7 has priority 100")
    }

    @Test(arguments: [" ", "r", "c", "+", "-"] as [Character])
    func `without a chosen job nothing is steered`(key: Character) {
        var state = watchState(watched([sampleJob(7, .running)]))
        #expect(self.pressed(&state, .character(key)) == [])
        #expect(state.notice != nil)
        #expect(state.mode == .list)
    }

    @Test(arguments: [
        (Key.character("y"), true), (.character("Y"), true), (.character("n"), false), (.escape, false),
        (.enter, false),
    ])
    func `cancelling asks first`(key: Key, isDone: Bool) {
        var state = watchState(watched([sampleJob(7, .running)]))
        #expect(self.pressed(&state, .down, .character("c")) == [])
        #expect(screen(state).last?.contains("y/n") == true)
        let actions = self.pressed(&state, key)
        #expect(actions == (isDone ? [.steer(.cancel, Selector(jobs: [JobID(rawValue: 7)]))] : []))
        #expect(state.mode == .list)
    }

    @Test func `a heading stands for its group`() {
        var state = watchState(watched(self.queued(1...2, group: "nightly")))
        #expect(
            self.pressed(&state, .down, .character(" ")) == [.steer(.pause, Selector(groups: ["nightly"]))]
        )
        #expect(
            self.pressed(&state, .character("c"), .character("y")) == [
                .steer(.cancel, Selector(groups: ["nightly"]))
            ]
        )
        #expect(self.pressed(&state, .character("r")) == [.steer(.retry, Selector(groups: ["nightly"]))])
        #expect(self.pressed(&state, .enter) == [])
        #expect(state.rows == [.group("nightly")])
        #expect(self.pressed(&state, .right) == [])
        #expect(state.rows.count == 3)
        #expect(self.pressed(&state, .down, .left) == [])
        #expect(state.chosen == .group("nightly"))
    }

    @Test func `the chosen job stays chosen wherever it goes`() {
        var jobs = self.queued(1...5)
        var state = watchState(watched(jobs))
        _ = self.pressed(&state, .down, .down, .down)
        #expect(state.chosen == .job(JobID(rawValue: 3)))
        jobs[2].state = .running
        state.take(watched(jobs))
        #expect(state.cursor == 0)
        #expect(state.chosen == .job(JobID(rawValue: 3)))
        state.take(watched(self.queued(1...2)))
        #expect(state.chosen == .job(JobID(rawValue: 1)))
        state.take(watched([]))
        #expect(state.chosen == nil)
    }

    @Test func `the list moves under the cursor and follows the window`() {
        var state = watchState(watched(self.queued(1...50)), columns: 80, rows: 12)
        #expect(state.size.listRows == 10)
        _ = self.pressed(&state, .end)
        #expect(state.cursor == 49)
        #expect(state.top == 40)
        _ = self.pressed(&state, .pageUp)
        #expect(state.cursor == 40)
        _ = self.pressed(&state, .home, .pageDown)
        #expect((state.cursor, state.top) == (9, 0))
        state.resize(WatchSize(columns: 80, rows: 6))
        #expect((state.cursor, state.top) == (9, 6))
        state.resize(WatchSize(columns: 80, rows: 60))
        #expect(state.top == 0)
    }

    @Test func `more of a long queue is asked for when the cursor comes to its end`() {
        var state = watchState(watched(self.queued(1...100), more: 99_900))
        #expect(state.rows.last == .more(group: nil))
        #expect(state.query.limit == 100)
        #expect(self.pressed(&state, .end) == [.refresh])
        #expect(state.query.limit == 400)
        state.take(watched(self.queued(1...400), more: 99_600))
        #expect(state.cursor == 100)
        for _ in 0..<10 { _ = self.pressed(&state, .end) }
        #expect(state.query.limit == WatchState.mostJobs)
        #expect(self.pressed(&state, .home) == [.refresh])
        #expect(state.query.limit == 100)
    }

    @Test func `a filter is typed and narrows the list at once`() {
        var state = watchState(watched(variedJobs))
        let typed: [Key] = ["I", "s", "o"].map { .character($0) }
        #expect(self.pressed(&state, .character("/")) == [])
        for key in typed { #expect(state.press(key, now: noon) == [.refresh]) }
        #expect(state.rows == [1, 2].map { .job(JobID(rawValue: $0)) })
        _ = self.pressed(&state, .backspace, .backspace, .backspace)
        for character in "nightly queued" { _ = state.press(.character(character), now: noon) }
        #expect(state.rows == [.group("nightly"), .job(JobID(rawValue: 14))])
        _ = self.pressed(&state, .enter)
        #expect(state.mode == .list)
        #expect(state.filter == "nightly queued")
        _ = self.pressed(&state, .escape)
        #expect(state.filter.isEmpty)
        #expect(state.rows.count == 15)
    }

    @Test(arguments: [
        ("image", [1, 2]), ("IMAGE.ISO", [1, 2]), ("日本", [2]), ("waiting", [4, 5, 6, 7, 8, 9]),
        ("fail", [10]),
        ("example.org gone", [10]), ("nothing like it", []),
    ])
    func `a filter finds name, host, group and state`(filter: String, expected: [Int64]) {
        let words = filter.lowercased().split(separator: " ").map(String.init)
        #expect(variedJobs.filter { WatchState.matches($0, words) }.map(\.id.rawValue) == expected)
    }

    @Test func `of a long queue the service is asked for what a filter finds`() {
        var state = watchState(watched(self.queued(1...100), more: 99_900))
        #expect(self.pressed(&state, .character("/"), .character("f")) == [.refresh])
        #expect(state.query.words == ["f"])
        #expect(self.pressed(&state, .escape) == [.refresh])
        #expect(state.query.words.isEmpty)
    }

    @Test func `progress changes running jobs alone`() {
        var state = watchState(
            watched([transferring(1, path: "/d/a", done: 1, total: 100), sampleJob(2, .paused)])
        )
        func progress(_ id: Int64) -> ProgressDocument {
            ProgressDocument(
                id: JobID(rawValue: id),
                phase: .transferring,
                bytesDone: 50,
                bytesDurable: 10,
                bytesTotal: 100,
                rateBytesPerS: 7,
                etaS: 8
            )
        }
        let isKnown = state.take([progress(1)])
        #expect(isKnown)
        #expect(state.jobs[JobID(rawValue: 1)]?.bytesDone == 50)
        #expect(state.rate == 7)
        let areKnown = state.take([progress(2), progress(3)])
        #expect(!areKnown)
        #expect(state.jobs[JobID(rawValue: 2)]?.bytesDone == 0)
    }

    @Test func `time moves only what has a clock`() {
        #expect(!watchState(watched([])).movesWithTime)
        #expect(!watchState(watched(self.queued(1...3))).movesWithTime)
        #expect(watchState(watched([waiting(1, "retry", nil, seconds: 9)])).movesWithTime)
        #expect(!watchState(watched([waiting(1, "network", nil, seconds: nil)])).movesWithTime)
        var state = watchState(watched([transferring(1, path: "/d/a", done: 1, total: 2)]))
        #expect(state.movesWithTime)
        state.sample(after: 1)
        state.take(watched([]))
        #expect(state.movesWithTime, "the graph still runs out")
        for _ in 0..<600 { state.sample(after: 1) }
        #expect(!state.movesWithTime)
    }

    @Test(arguments: [
        (
            [SteeredJob(id: JobID(rawValue: 3), state: .paused)], false, SteerAction.pause, "job 3 paused",
            false
        ),
        (
            [SteeredJob(id: JobID(rawValue: 3), state: .queued)], false, .retry,
            "job 3 queued; 'ferry run' or a daemon has to run it", false
        ),
        ([], true, .pause, "0 jobs paused", false),
        (
            [SteeredJob(id: JobID(rawValue: 3), state: nil, error: "there is no job 3")], true, .cancel,
            "there is no job 3", true
        ),
    ])
    func `what became of a key's command is told`(
        steered: [SteeredJob],
        running: Bool,
        action: SteerAction,
        text: String,
        isError: Bool
    ) {
        var state = watchState(watched([]))
        state.take(steered, running: running, action: action, now: noon)
        #expect(state.notice?.text == text)
        #expect(state.notice?.isError == isError)
        let early = state.expireNotice(now: noon + .seconds(5))
        #expect(!early)
        let late = state.expireNotice(now: noon + .seconds(7))
        #expect(late)
    }

    @Test func `details are asked for and left again`() {
        var state = watchState(watched([sampleJob(7, .failed)]))
        #expect(self.pressed(&state, .down, .enter) == [.look(JobID(rawValue: 7))])
        #expect(screen(state).contains { $0.contains("failed") })
        #expect(self.pressed(&state, .down, .pageDown, .escape) == [])
        #expect(state.mode == .list)
        #expect(self.pressed(&state, .character("?"), .end, .home, .character("q")) == [.quit])
    }

    @Test func `every key that help names does something`() {
        for key in [
            Key.character("k"), .character("j"), .character("g"), .character("G"), .pageUp, .pageDown,
        ] {
            var state = watchState(watched(self.queued(1...50)))
            _ = self.pressed(&state, .down, .down, .down)
            let before = state.cursor
            _ = state.press(key, now: noon)
            #expect(state.cursor != before, "\(key)")
        }
        var state = watchState(watched([]))
        #expect(self.pressed(&state, .redraw, .character("q")) == [.redraw, .quit])
    }
}
