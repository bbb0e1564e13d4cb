import FerryControl
import FerryCore
import Glibc

/// The loop of a watching screen: one thread that waits for the service, keys, the window or the clock.
///
/// It only looks: it stands for no job, so nothing runs because of it.
struct WatchScreen {
    /// The shortest time between two drawings, in milliseconds, and between two of mere progress.
    static let drawingInterval: Int64 = 100
    static let progressInterval: Int64 = 250
    /// The shortest time between two questions for the queue.
    static let refreshInterval: Int64 = 1_000
    /// How long a sequence of a key may be on its way.
    static let keyInterval: Int64 = 100

    /// What an answer is awaited for.
    private enum Question {
        case queue(sentAt: Int64)
        case job(JobID)
        case log(JobID)
        case steer(SteerAction)
        case priority(Int)
    }

    private(set) var state: WatchState
    private let session: Session
    private let console: Console
    private let terminal: Terminal
    private var writer: ScreenWriter
    private var keys = KeyDecoder()
    private var questions: [Int: Question] = [:]
    private var failures = 0

    private var drawAt: Int64? = 0
    private var lastDrawing: Int64 = 0
    private var refreshAt: Int64?
    private var nextRefresh: Int64 = 0
    private var lastSecond: Int64
    private var keysUntil: Int64?
    private var hasQuit = false

    /// Begins with the first answer.
    init(_ state: WatchState, session: Session, console: Console, terminal: Terminal) {
        self.state = state
        self.session = session
        self.console = console
        self.terminal = terminal
        self.writer = ScreenWriter(style: console.outStyle, isASCII: !Self.showsUTF8(console.environment))
        self.lastSecond = monotonicMilliseconds()
        self.nextRefresh = self.lastSecond + Self.refreshInterval
        self.state.resize(terminal.size)
        self.state.isOnDemand = !session.hasDaemon
    }

    /// Whether the caller's locale has UTF-8 (locale(7): the first of these that is set counts).
    static func showsUTF8(_ environment: [String: String]) -> Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"]
        let locale = names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? "C"
        let charset = locale.lowercased().filter { $0 != "-" }
        return charset.hasSuffix(".utf8") || charset.contains(".utf8@")
    }

    /// Shows the queue until a key ends it or the terminal has gone.
    ///
    /// - Throws: What the service answers to a question for the queue, and `no-service` if none stays alive.
    mutating func run() throws(FerryError) {
        defer { self.terminal.leave() }
        while !self.hasQuit, self.console.out.problem == 0 {
            self.tick(monotonicMilliseconds())
            self.draw(monotonicMilliseconds())
            let ready = self.wait(monotonicMilliseconds())
            if ready.hasEvents { self.look() }
            if ready.hasKeys || ready.isGone { self.takeKeys() }
            try self.receive()
        }
    }

    // MARK: The clock

    private mutating func tick(_ now: Int64) {
        if let until = self.keysUntil, now >= until {
            self.keysUntil = nil
            self.press(self.keys.flush())
        }
        if self.state.expireNotice(now: .now) { self.wantDrawing(now) }
        let seconds = (now - self.lastSecond) / 1_000
        if self.state.movesWithTime {
            if seconds > 0 {
                self.lastSecond += seconds * 1_000
                self.state.sample(after: seconds)
                self.refreshDetails(now)
                self.wantDrawing(now)
            }
        } else {
            self.lastSecond = max(self.lastSecond, now - 1_000)
        }
        if let at = self.refreshAt, now >= at, !self.isAsking { self.ask(now) }
    }

    /// Asks for the queue; a queue that is slow to tell is asked less often.
    private mutating func ask(_ now: Int64) {
        self.refreshAt = nil
        self.nextRefresh = now + Self.refreshInterval
        self.send(.watch(self.state.query), .queue(sentAt: now))
    }

    private var isAsking: Bool {
        self.questions.values.contains { if case .queue = $0 { true } else { false } }
    }

    private mutating func refreshDetails(_ now: Int64) {
        guard case .details(let id, _) = self.state.mode else { return }
        let isAsking = self.questions.values.contains { if case .job = $0 { true } else { false } }
        if !isAsking, self.state.details.job?.state.isFinal == false { self.look(at: id) }
    }

    /// Draws soon: at once, or when the last drawing is old enough.
    private mutating func wantDrawing(_ now: Int64, after interval: Int64 = Self.drawingInterval) {
        let at = max(now, self.lastDrawing + interval)
        self.drawAt = min(self.drawAt ?? at, at)
    }

    private mutating func draw(_ now: Int64) {
        guard let at = self.drawAt, now >= at else { return }
        self.drawAt = nil
        self.lastDrawing = now
        let lines = WatchLayout(state: self.state, now: .now).lines()
        self.console.out.write(self.writer.draw(lines))
        self.console.out.flush()
    }

    private func wait(_ now: Int64) -> (hasEvents: Bool, hasKeys: Bool, isGone: Bool) {
        var times = [self.drawAt, self.keysUntil, self.isAsking ? nil : self.refreshAt].compactMap { $0 }
        if self.state.movesWithTime { times.append(self.lastSecond + 1_000) }
        if let notice = self.state.notice {
            times.append(now + max(0, notice.until.milliseconds - Timestamp.now.milliseconds))
        }
        var patience = times.min().map { max(0, $0 - now) } ?? -1
        if self.session.client.hasIncoming { patience = 0 }
        var entries = [
            pollfd(fd: self.session.client.fileDescriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: self.terminal.wake, events: Int16(POLLIN), revents: 0),
            pollfd(fd: self.terminal.input, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&entries, nfds_t(entries.count), Int32(min(patience, 60_000)))  // interrupted: a short wait
        let trouble = Int16(POLLHUP | POLLERR | POLLNVAL)
        return (
            entries[1].revents != 0, entries[2].revents & Int16(POLLIN) != 0,
            entries[2].revents & trouble != 0
        )
    }

    // MARK: Keys and window

    private mutating func look() {
        let events = self.terminal.events()
        if events.isLost { self.writer.forget() }
        guard events.isResized || events.isLost else { return }
        let size = self.terminal.size
        if size != self.state.size { self.writer.forget() }
        self.state.resize(size)
        self.drawAt = 0
    }

    private mutating func takeKeys() {
        guard let bytes = self.terminal.read() else {
            self.hasQuit = true
            return
        }
        self.press(self.keys.feed(bytes))
        self.keysUntil = self.keys.isWaiting ? monotonicMilliseconds() + Self.keyInterval : nil
    }

    private mutating func press(_ keys: [Key]) {
        for key in keys {
            for action in self.state.press(key, now: .now) { self.perform(action) }
        }
        if !keys.isEmpty { self.drawAt = min(self.drawAt ?? .max, self.lastDrawing + 20) }
    }

    private mutating func perform(_ action: WatchState.Action) {
        switch action {
        case .quit: self.hasQuit = true
        case .redraw: self.writer.forget()
        case .refresh: self.refreshAt = monotonicMilliseconds() + 150  // more keys may follow
        case .look(let id): self.look(at: id)
        case .steer(let action, let selector):
            self.send(.steer(action: action, selector: selector, keepPartial: false), .steer(action))
        case .prioritize(let id, let priority):
            let changes = JobChanges(priority: priority)
            self.send(.set(selector: Selector(jobs: [id]), changes: changes), .priority(priority))
        }
    }

    private mutating func look(at id: JobID) {
        self.send(.show(job: id), .job(id))
        self.send(.log(job: id), .log(id))
    }

    // MARK: The service

    /// Sends a question; one that does not get through is asked again, or forgotten, by the next connection.
    private mutating func send(_ request: ControlRequest, _ question: Question) {
        guard let number = try? self.session.client.send(request) else { return }
        self.questions[number] = question
    }

    private mutating func receive() throws(FerryError) {
        let incoming: [ServiceClient.Incoming]
        do throws(FerryError) {
            incoming = try self.session.client.receive()
        } catch {
            throw error
        }
        let now = monotonicMilliseconds()
        for entry in incoming {
            switch entry {
            case .notification(.changed), .notification(.overrun):
                self.refreshAt = min(self.refreshAt ?? .max, max(now, self.nextRefresh))
            case .notification(.progress(let progress)):
                self.failures = 0
                if self.state.take(progress) { self.wantDrawing(now, after: Self.progressInterval) }
            case .notification(.event): break
            case .response(let number, let response):
                guard let question = self.questions.removeValue(forKey: number) else { continue }
                self.answer(question, response, now)
            case .failure(let number, let error):
                try self.fail(self.questions.removeValue(forKey: number), error)
                self.wantDrawing(now)
            case .closed:
                try self.recover()
            }
        }
    }

    private mutating func answer(_ question: Question, _ response: ControlResponse, _ now: Int64) {
        self.failures = 0
        switch (question, response) {
        case (.queue(let sentAt), .watched(let answer)):
            self.state.take(answer)
            // What takes long to tell and to take in is asked for less often.
            let cost = monotonicMilliseconds() - sentAt
            self.nextRefresh = max(self.nextRefresh, sentAt + cost * 20)
        case (.job(let id), .job(let job)):
            if case .details(id, _) = self.state.mode { self.state.details.job = job }
        case (.log(let id), .log(_, let attempts, let events)):
            guard case .details(id, _) = self.state.mode else { break }
            self.state.details.attempts = attempts
            self.state.details.events = events
        case (.steer(let action), .steered(let jobs, let running)):
            self.state.take(jobs, running: running, action: action, now: .now)
            self.refreshAt = now
        case (.priority(let priority), .steered(let jobs, _)):
            self.state.take(jobs, priority: priority, now: .now)
            self.refreshAt = now
        default: break  // to a question that no longer matters
        }
        self.wantDrawing(now)
    }

    private mutating func fail(_ question: Question?, _ error: FerryError) throws(FerryError) {
        if error.code == .stopping { return }  // it closes next
        switch question {
        case .queue, nil: throw error
        case .job(let id):
            if error.code == .unknownJob, case .details(id, _) = self.state.mode {
                self.state.details.job = nil
            }
        case .log: break
        case .steer, .priority: self.state.say(error.message.shown, isError: true, now: .now)
        }
    }

    /// Goes on with the next service, which is started only to be looked at.
    private mutating func recover() throws(FerryError) {
        self.questions = [:]
        self.state.say("the service has gone; looking for the next one", now: .now)
        self.drawAt = 0
        self.draw(monotonicMilliseconds())
        while true {
            self.failures += 1
            do throws(FerryError) {
                try self.session.reconnect()
                break
            } catch {
                guard self.failures < 5, self.session.isGone(after: error) else { throw error }
            }
        }
        self.state.isOnDemand = !self.session.hasDaemon
        self.state.say("the service has gone; this is the next one", now: .now)
        self.ask(monotonicMilliseconds())
        self.drawAt = 0
    }
}
