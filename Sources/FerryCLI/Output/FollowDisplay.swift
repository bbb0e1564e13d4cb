import FerryControl
import FerryCore
import Glibc

/// Tells what happens to followed jobs: answers on standard output, progress and notes on standard error.
final class FollowDisplay {
    /// How progress is shown.
    enum Mode: Equatable, Sendable {
        /// Drawn in place on a terminal.
        case live
        /// Plain lines, now and then.
        case plain
        /// Not at all.
        case none
    }

    /// Before this many milliseconds nothing is drawn, so that short work does not flicker.
    static let firstDrawing: Int64 = 500
    /// The shortest time between two drawings, in milliseconds.
    static let drawingInterval: Int64 = 100
    /// The longest one: countdowns and the moving bar go on without news.
    static let idleInterval: Int64 = 500
    /// A terminal narrower than this gets plain lines.
    static let narrowest = 20

    private let console: Console
    private let printsAnswers: Bool
    /// Where plain lines go.
    private let lines: Output
    private let linesAreAnswer: Bool
    private let mode: Mode
    private let start: Int64
    private var area = LiveArea()
    private var log = ProgressLog()
    private var lastDrawing: Int64?
    private var isStale = false
    /// The longest name in the last drawing, so that lines about finished jobs stand in line with it.
    private var nameWanted = 0

    /// Begins at `now`, in milliseconds of the monotonic clock.
    ///
    /// `printsAnswers` says whether the path or URL of each completed job is the answer (`get`, `put`),
    /// `linesAreAnswer` whether plain lines are (`watch`).
    init(_ console: Console, printsAnswers: Bool, linesAreAnswer: Bool = false, now: Int64) {
        self.console = console
        self.printsAnswers = printsAnswers
        self.linesAreAnswer = linesAreAnswer
        self.lines = linesAreAnswer ? console.out : console.err
        self.start = now
        let isTerminal = console.err.isTerminal && console.environment["TERM"] != "dumb"
        let columns = console.errorColumns
        let isWide = columns == 0 || columns >= Self.narrowest
        if linesAreAnswer {
            self.mode = console.json ? .none : .plain
        } else if console.quiet || console.json {
            self.mode = .none
        } else {
            self.mode = isTerminal && isWide ? .live : .plain
        }
    }

    /// Tells one thing.
    func tell(_ output: FollowState.Output, now: Int64) throws(FerryError) {
        self.isStale = true
        switch output {
        case .event(let event):
            if self.console.json { try self.print(json: event) }
            if self.console.verbose { self.line(Self.text(event)) }
        case .progress(let documents):
            guard self.console.json else { break }
            for document in documents { try self.print(json: document) }
        case .began(let job):
            if self.mode == .plain { self.line("job \(job.id): \(JobText.name(job)): started") }
            self.log.printed(job, now: now)
        case .waits(let job):
            if self.mode == .plain {
                self.line("job \(job.id): \(JobText.name(job)): \(JobText.status(job, now: .now))")
            }
        case .paused(let job):
            if self.mode != .none { self.line("job \(job.id): \(JobText.name(job)): paused") }
        case .ended(let job):
            try self.ended(job)
        case .vanished(let job):
            self.error("job \(job) is no longer in the queue")
        }
    }

    private func ended(_ job: JobDocument) throws(FerryError) {
        self.log.ended(job.id)
        if job.state == .completed {
            if self.mode == .plain {
                self.line("job \(job.id): \(JobText.name(job)): completed, \(JobText.size(job.bytesDone))")
            } else if self.mode == .live, self.lastDrawing != nil {
                let wanted = max(self.nameWanted, TextWidth.columns(JobText.shortName(job)))
                self.line(self.view.line(job, nameWanted: wanted, now: .now))
            }
        } else if self.linesAreAnswer {
            if self.mode == .plain { self.line(JobText.failure(job)) }
        } else {
            self.error(JobText.failure(job))
        }
        if self.console.json {
            try self.print(json: job)
        } else if self.printsAnswers, job.state == .completed, let answer = JobText.answer(job) {
            self.erase()
            self.console.out.line(answer)
            self.console.out.flush()
        }
    }

    /// Draws or logs what is due.
    func tick(_ state: FollowState, now: Int64) {
        self.console.out.flush()
        switch self.mode {
        case .none: break
        case .plain:
            for job in state.running {
                if let text = self.log.line(job, now: now) { self.line(text) }
            }
        case .live:
            guard now >= self.nextDrawing else { break }
            let view = self.view
            let (jobs, more) = state.active(limit: max(1, view.rows - 1))
            self.nameWanted = jobs.map { TextWidth.columns(JobText.shortName($0)) }.max() ?? 0
            let lines = view.lines(jobs, more: more, now: .now)
            self.console.err.write(self.area.draw(lines, columns: view.columns))
            self.lastDrawing = now
            self.isStale = false
        }
        self.console.err.flush()
    }

    /// How long nothing is to be done without news, in milliseconds.
    func patience(now: Int64) -> Int64 {
        switch self.mode {
        case .none: 60_000
        case .plain: 1_000
        case .live: max(0, self.nextDrawing - now)
        }
    }

    private var nextDrawing: Int64 {
        guard let last = self.lastDrawing else { return self.start + Self.firstDrawing }
        return last + (self.isStale ? Self.drawingInterval : Self.idleInterval)
    }

    /// The terminal's size has changed.
    func resized() {
        self.erase()
        self.lastDrawing = self.lastDrawing.map { $0 - Self.idleInterval }
    }

    /// One plain line a job at once (SIGUSR1).
    func snapshot(_ state: FollowState) {
        let (jobs, more) = state.active(limit: 100)
        for job in jobs {
            let text = job.state == .running ? ProgressLog.text(job) : nil
            self.line(text ?? "job \(job.id): \(JobText.name(job)): \(JobText.status(job, now: .now))")
        }
        if more > 0 { self.line("… and \(more) more") }
    }

    /// Removes the drawing for good.
    func finish() {
        self.erase()
        self.console.out.flush()
        self.console.err.flush()
    }

    /// Says something between two drawings, unless `-q`.
    func note(_ text: String) {
        self.erase()
        self.console.note(text)
    }

    private func error(_ text: String) {
        self.erase()
        self.console.error(text)
    }

    /// A log line: the drawing is removed, the line printed, and the next tick draws again.
    private func line(_ text: String) {
        self.erase()
        self.lines.line(text)
        self.lines.flush()
    }

    private func print(json value: some Encodable) throws(FerryError) {
        if self.console.out.isTerminal { self.erase() }
        try self.console.print(json: value)
    }

    private func erase() {
        guard self.area.isDrawn else { return }
        self.console.err.write(self.area.erase(columns: self.view.columns))
        self.console.err.flush()
        self.lastDrawing = self.lastDrawing.map { $0 - Self.idleInterval }
    }

    private var view: ProgressView {
        let columns = self.console.errorColumns
        let rows = self.console.errorRows
        return ProgressView(columns: columns > 0 ? columns : 80, rows: rows > 0 ? rows : 24)
    }

    private static func text(_ event: EventDocument) -> String {
        var text = "\(JobText.time(event.time)) "
        if let job = event.job { text += "job \(job): " }
        text += event.kind.shown
        if let reason = event.reason { text += " (\(reason.shown))" }
        if let message = event.message { text += ": \(message.shown)" }
        return text
    }
}

extension Timestamp {
    /// The wall clock; for display only.
    static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000)
    }
}

/// Milliseconds of the monotonic clock.
func monotonicMilliseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
}
