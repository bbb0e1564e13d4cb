import FerryControl
import FerryCore

/// All that a watching screen knows: answers, progress, keys and time in, what is shown and what to do out.
///
/// No clock, no I/O. The service hands out a bounded part of the queue, so that nothing here grows with it.
struct WatchState: Sendable {
    /// A line of the list.
    enum Row: Hashable, Sendable {
        /// The heading of a group.
        case group(String)
        /// A job.
        case job(JobID)
        /// Queued jobs of a group (nil: of none) that were not asked for.
        case more(group: String?)
    }

    /// What the keys act on.
    enum Mode: Equatable, Sendable {
        case list
        /// The filter's text is being typed; the text before it, for Esc.
        case filter(before: String)
        /// A question that `y` answers.
        case confirm(question: String, SteerAction, Selector)
        /// All about a job, from this line on.
        case details(JobID, top: Int)
        case help(top: Int)
    }

    /// Something for the loop to do.
    enum Action: Equatable, Sendable {
        case quit
        /// Draw all anew.
        case redraw
        /// Ask for the queue: the query has changed.
        case refresh
        /// Ask for all about a job.
        case look(JobID)
        case steer(SteerAction, Selector)
        case prioritize(JobID, Int)
    }

    /// A sentence in the last line, until a time.
    struct Notice: Equatable, Sendable {
        var text: String
        var isError: Bool
        var until: Timestamp
    }

    /// What is known of the job whose details are shown.
    struct Details: Equatable, Sendable {
        var job: JobDocument?
        var attempts: [AttemptDocument] = []
        var events: [EventDocument] = []
    }

    /// The most jobs of each state that are ever asked for.
    static let mostJobs = 5_000

    /// What the command line selects.
    let jobIDs: [JobID]
    let groupNames: [String]
    private let endedSince: Timestamp?

    var jobs: [JobID: JobDocument] = [:]
    private(set) var counts: [JobState: Int64] = [:]
    private(set) var groups: [String: [JobState: Int64]] = [:]
    /// The lines of the list, in order.
    private(set) var rows: [Row] = []
    /// The place of the chosen line; nil before one was chosen.
    private(set) var cursor: Int?
    /// The first line of the list that is on the screen.
    private(set) var top = 0
    private(set) var size = WatchSize(columns: 80, rows: 24)
    private(set) var graph = RateGraph()
    private(set) var notice: Notice?
    var mode = Mode.list
    var details = Details()
    var filter = ""
    var collapsed: Set<String> = []
    /// Whether the service runs only what other commands stand for.
    var isOnDemand = false
    /// The most jobs of each state that are asked for at present.
    var limit: Int
    /// The longest job number, in columns.
    private(set) var numberColumns = 1

    /// Begins with nothing known; `now` is when jobs that end begin to be of interest.
    init(jobs: [JobID] = [], groups: [String] = [], now: Timestamp) {
        self.jobIDs = jobs
        self.groupNames = groups
        self.endedSince = now
        self.limit = Self.fewJobs
    }

    /// The jobs of each state that are asked for at first.
    static let fewJobs = 100

    /// What the service is to be asked.
    var query: WatchQuery {
        WatchQuery(
            jobs: self.jobIDs,
            groups: self.groupNames,
            words: self.words,
            limit: self.limit,
            endedSince: self.endedSince
        )
    }

    /// The filter's words in lower case.
    var words: [String] { self.filter.lowercased().split(separator: " ").map(String.init) }

    /// The chosen line.
    var chosen: Row? { self.cursor.map { self.rows[$0] } }

    /// The rate of all running jobs that are known.
    var rate: Int64 { self.jobs.values.reduce(0) { $0 + ($1.state == .running ? $1.rateBytesPerS ?? 0 : 0) } }

    /// Seconds until all jobs that have not ended are done; nil unless all sizes are known.
    var secondsLeft: Int64? {
        let open = self.jobs.values.filter { !$0.state.isEnded }
        let known = open.allSatisfy { $0.bytesTotal != nil }
        let count = self.counts.reduce(0) { $0 + ($1.key.isEnded ? 0 : $1.value) }
        let rate = self.rate
        guard known, rate > 0, count == Int64(open.count) else { return nil }
        let left = open.reduce(0) { $0 + max(0, ($1.bytesTotal ?? 0) - $1.bytesDone) }
        return (left + rate - 1) / rate
    }

    /// Whether jobs are queued that no daemon and no other command carries out.
    var runsNothing: Bool {
        self.isOnDemand && (self.counts[.running] ?? 0) == 0 && (self.counts[.queued] ?? 0) > 0
    }

    // MARK: What comes in

    /// Takes the answer to the query.
    mutating func take(_ answer: WatchedDocument) {
        self.jobs = Dictionary(answer.jobs.map { ($0.id, $0) }) { $1 }
        if self.jobIDs.isEmpty {
            self.counts = Self.states(answer.counts.states)
        } else {
            self.counts = answer.jobs.reduce(into: [:]) { $0[$1.state, default: 0] += 1 }
        }
        self.groups = [:]
        for group in answer.groups where self.jobIDs.isEmpty {
            self.groups[group.name] = Self.states(group.states)
        }
        self.numberColumns = answer.jobs.map { TextWidth.columns("\($0.id)") }.max() ?? 1
        self.arrange()
    }

    /// Takes where running jobs stand; false if none of them is known.
    @discardableResult
    mutating func take(_ progress: [ProgressDocument]) -> Bool {
        var isKnown = false
        for document in progress {
            guard var job = self.jobs[document.id], job.state == .running else { continue }
            job.phase = document.phase
            job.path = document.path ?? job.path
            job.bytesDone = document.bytesDone
            job.bytesDurable = document.bytesDurable
            job.bytesTotal = document.bytesTotal
            job.rateBytesPerS = document.rateBytesPerS
            job.etaS = document.etaS
            self.jobs[document.id] = job
            isKnown = true
        }
        return isKnown
    }

    /// Takes what became of a steering command.
    mutating func take(_ steered: [SteeredJob], running: Bool, action: SteerAction, now: Timestamp) {
        guard !self.sayFailure(of: steered, now: now) else { return }
        let what = steered.count == 1 ? "job \(steered[0].id)" : "\(steered.count) jobs"
        let done: String =
            switch action {
            case .pause: "paused"
            case .resume, .retry: running ? "queued again" : "queued; 'ferry run' or a daemon has to run it"
            case .cancel: "cancelled"
            case .remove: "removed"
            }
        self.say("\(what) \(done)", now: now)
    }

    /// Takes what became of a new priority.
    mutating func take(_ steered: [SteeredJob], priority: Int, now: Timestamp) {
        guard !self.sayFailure(of: steered, now: now), let job = steered.first else { return }
        self.say("job \(job.id) has priority \(priority)", now: now)
    }

    private mutating func sayFailure(of steered: [SteeredJob], now: Timestamp) -> Bool {
        let errors = steered.compactMap(\.error)
        guard let first = errors.first else { return false }
        let others = errors.count > 1 ? " (and \(errors.count - 1) more)" : ""
        self.say("\(first.shown)\(others)", isError: true, now: now)
        return true
    }

    /// Takes the size of the window.
    mutating func resize(_ size: WatchSize) {
        self.size = size
        self.settle()
    }

    /// Takes a second's sample of the rate.
    mutating func sample(after seconds: Int64) {
        self.graph.add(self.rate, after: seconds)
    }

    /// Says a sentence in the last line for some seconds.
    mutating func say(_ text: String, isError: Bool = false, now: Timestamp) {
        self.notice = Notice(text: text, isError: isError, until: now + .seconds(6))
    }

    /// Takes the sentence away when its time is over; true if it did.
    mutating func expireNotice(now: Timestamp) -> Bool {
        guard let notice, notice.until <= now else { return false }
        self.notice = nil
        return true
    }

    /// Takes the sentence away.
    mutating func clearNotice() { self.notice = nil }

    /// Whether the picture changes as time goes by: countdowns, moving bars, the graph.
    var movesWithTime: Bool {
        !self.graph.isFlat || (self.counts[.running] ?? 0) > 0
            || self.jobs.values.contains { !$0.state.isEnded && $0.retryAt != nil }
    }

    // MARK: The list

    /// Builds the lines of the list anew; the chosen line stays chosen wherever it goes.
    mutating func arrange() {
        let before = self.chosen
        self.rows = self.listRows()
        // What is no job has no place of its own to be followed to.
        if case .some(.job) = before, let place = before.flatMap({ self.rows.firstIndex(of: $0) }) {
            self.cursor = place
        } else if case .some(.group) = before, let place = before.flatMap({ self.rows.firstIndex(of: $0) }) {
            self.cursor = place
        }
        self.settle()
    }

    /// Chooses a line.
    mutating func choose(_ place: Int?) {
        self.cursor = place
        self.settle()
    }

    /// Keeps the chosen line within the list and on the screen.
    private mutating func settle() {
        let height = max(1, self.size.listRows)
        if let cursor {
            self.cursor = self.rows.isEmpty ? nil : min(max(0, cursor), self.rows.count - 1)
        }
        if let cursor = self.cursor {
            self.top = min(max(self.top, cursor - height + 1), cursor)
        }
        self.top = max(0, min(self.top, self.rows.count - height))
    }

    private static func states(_ counts: [String: Int64]) -> [JobState: Int64] {
        counts.reduce(into: [:]) { result, entry in
            if let state = JobState(rawValue: entry.key), entry.value > 0 { result[state] = entry.value }
        }
    }
}

/// A window's size, and how it is divided.
struct WatchSize: Equatable, Sendable {
    var columns: Int
    var rows: Int

    /// Below this there are plain lines instead of a screen.
    static let smallest = WatchSize(columns: 40, rows: 6)

    /// Whether a screen fits.
    var isEnough: Bool { self.columns >= Self.smallest.columns && self.rows >= Self.smallest.rows }

    /// The columns that are written to: the last one stays free, since a terminal may wrap after it.
    var width: Int { max(1, self.columns - 1) }

    /// The rows of the graph.
    var graphRows: Int {
        switch self.rows {
        case ..<14: 0
        case ..<20: 2
        case ..<40: 3
        default: 5
        }
    }

    /// The rows of the list: all but totals, graph and the last line.
    var listRows: Int { max(0, self.rows - 2 - self.graphRows) }
}
