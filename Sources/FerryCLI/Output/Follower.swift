import FerryControl
import FerryCore
import Glibc

/// The loop of `get`, `wait` and `run`: one thread that waits for the service, a signal or the clock.
struct Follower {
    /// How the loop ended, short of an error.
    enum End: Equatable, Sendable {
        /// Nothing is left to wait for.
        case finished
        /// A signal asks the command to end.
        case signal(Int32)
        /// The time is over.
        case timedOut
    }

    /// What is known about the jobs.
    private(set) var state: FollowState
    private let session: Session
    private let console: Console
    private let display: FollowDisplay
    private let signals = Signals()
    private let untilEmpty: Bool
    private let deadline: Int64?
    /// What is only looked at, without standing for it; nil for commands that carry jobs out.
    private let looking: WatchQuery?
    /// The connection that was told what this command stands for.
    private var entered = 0
    private var failures = 0
    private var saidLost = false
    private var nextCount: Int64 = 0
    /// Queued jobs that are asked for when something has changed that no event tells.
    private static let shownQueued = 16

    /// Prepares to follow jobs.
    ///
    /// `untilEmpty` ends a followed queue when nothing is left to do in it; `timeout` is the longest time to
    /// follow; `looking` follows the part of the queue that it names without carrying it out.
    init(
        _ scope: FollowState.Scope,
        session: Session,
        console: Console,
        printsAnswers: Bool,
        untilEmpty: Bool = false,
        timeout: Duration? = nil,
        looking: WatchQuery? = nil
    ) {
        let now = monotonicMilliseconds()
        self.state = FollowState(scope)
        self.session = session
        self.console = console
        self.looking = looking
        self.display = FollowDisplay(
            console,
            printsAnswers: printsAnswers,
            linesAreAnswer: looking != nil,
            now: now
        )
        self.untilEmpty = untilEmpty
        self.deadline = timeout.map { now + Int64(min($0 / .milliseconds(1), 1e15)) }
    }

    /// Follows until the end.
    ///
    /// - Throws: What the service answers, and `no-service` if none stays alive.
    mutating func run() throws(FerryError) -> End {
        defer { self.display.finish() }
        try self.enter()
        while self.console.out.problem == 0 {
            let now = monotonicMilliseconds()
            if try self.isFinished(now) { return .finished }
            // A question met a dying service and went on to the next one, which has to be told.
            while self.session.connection != self.entered { try self.reenter() }
            if let deadline, now >= deadline { return .timedOut }
            self.display.tick(self.state, now: now)
            self.wait(now)
            while let signal = self.signals.next() {
                switch signal {
                case SIGWINCH: self.display.resized()
                case SIGUSR1: self.display.snapshot(self.state)
                default: return .signal(signal)
                }
            }
            try self.receive()
        }
        return .finished
    }

    /// Stands for the jobs, subscribes to them and takes their present state.
    ///
    /// A queue is subscribed to first: what ends as soon as it is attached to has then been seen before.
    private mutating func enter() throws(FerryError) {
        self.entered = self.session.connection
        if let looking {
            let isFirst = self.entered == 0
            do throws(FerryError) {
                try self.tell(self.state.begin(RunningCommand.look(looking, self.session).jobs).outputs)
            } catch {
                // What is removed later is told as it happens.
                guard !isFirst, error.code == .unknownJob else { throw error }
            }
            return
        }
        switch self.state.scope {
        case .queue:
            try self.subscribe(to: nil)
            _ = try self.session.call(.attachAll)
        case .jobs:
            let jobs = self.state.openJobs
            guard !jobs.isEmpty else { return }
            _ = try self.session.call(.attach(jobs: jobs))
            try self.subscribe(to: jobs)
        }
    }

    private mutating func subscribe(to jobs: [JobID]?) throws(FerryError) {
        guard
            case .subscribed(let documents) = try self.session.call(.subscribe(jobs: jobs, progress: true))
        else { throw Session.unexpected() }
        let (outputs, missing) = self.state.begin(documents)
        try self.tell(outputs)
        for job in missing { try self.look(job) }
    }

    /// Asks for one job.
    private mutating func look(_ job: JobID) throws(FerryError) {
        do throws(FerryError) {
            guard case .job(let document) = try self.session.call(.show(job: job)) else {
                throw Session.unexpected()
            }
            try self.tell(self.state.update(document))
        } catch {
            guard error.code == .unknownJob else { throw error }
            try self.tell(self.state.vanish(job))
        }
    }

    private func tell(_ outputs: [FollowState.Output]) throws(FerryError) {
        let now = monotonicMilliseconds()
        for output in outputs { try self.display.tell(output, now: now) }
    }

    private mutating func isFinished(_ now: Int64) throws(FerryError) -> Bool {
        guard self.state.scope == .queue else { return self.state.isFinished }
        // The service is asked as well: it knows of jobs that nothing was told about yet.
        guard self.untilEmpty, self.state.isFinished, now >= self.nextCount else { return false }
        self.nextCount = now + 1_000
        guard case .counts(let counts) = try self.session.call(.counts) else { throw Session.unexpected() }
        let left = [JobState.queued, .running, .waiting].reduce(0) { $0 + (counts.states[$1.rawValue] ?? 0) }
        return left <= Int64(self.state.scheduled)
    }

    private func wait(_ now: Int64) {
        guard !self.session.client.hasIncoming else { return }
        var patience = self.display.patience(now: now)
        if self.untilEmpty { patience = min(patience, 1_000) }
        if let deadline { patience = min(patience, max(0, deadline - now)) }
        var entries = [
            pollfd(fd: self.session.client.fileDescriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: self.signals.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&entries, nfds_t(entries.count), Int32(patience))  // an interrupted wait is just a short one
    }

    private mutating func receive() throws(FerryError) {
        for incoming in try self.session.client.receive() {
            switch incoming {
            case .notification(.overrun):
                try self.reenter()
            case .notification(let notification):
                self.failures = 0
                try self.tell(self.state.apply(notification))
                // The pause of a host is in no event of the jobs that wait for it.
                if notification == .changed, self.state.scope != .queue {
                    for job in self.state.queued(limit: Self.shownQueued) { try self.look(job) }
                }
            case .failure(_, let error):
                guard error.code == .stopping else { throw error }
            case .response:
                break  // to a question of a connection that was given up
            case .closed:
                try self.recover()
            }
        }
    }

    /// Goes on with the next service; one that does not live long enough to say anything is tried five times.
    private mutating func recover() throws(FerryError) {
        if !self.saidLost { self.display.note("the service has gone; going on with the next one") }
        self.saidLost = true
        while true {
            self.failures += 1
            do throws(FerryError) {
                try self.signals.lettingThrough { () throws(FerryError) in try self.session.reconnect() }
                try self.reenter()
                return
            } catch {
                guard self.failures < 5, self.session.isGone(after: error) else { throw error }
            }
        }
    }

    /// Enters again; jobs that are no longer there do not keep the others from going on.
    private mutating func reenter() throws(FerryError) {
        do throws(FerryError) {
            try self.enter()
        } catch {
            guard error.code == .unknownJob, case .jobs = self.state.scope else { throw error }
            for job in self.state.openJobs { try self.look(job) }
            try self.enter()
        }
    }
}
