import FerryControl
import FerryCore

/// What a command that stays knows about its jobs: notifications in, things to tell out; no clock, no I/O.
struct FollowState {
    /// Which jobs are followed.
    enum Scope: Equatable, Sendable {
        /// These, until each has ended or is paused.
        case jobs([JobID])
        /// All; jobs that come later too.
        case queue
    }

    /// Something to tell.
    enum Output: Equatable, Sendable {
        /// An entry of the event log.
        case event(EventDocument)
        /// Where running jobs stand.
        case progress([ProgressDocument])
        /// A job works, for the first time or again.
        case began(JobDocument)
        /// A job waits, or waits for something else.
        case waits(JobDocument)
        /// A person stopped a job.
        case paused(JobDocument)
        /// A job has ended; told once.
        case ended(JobDocument)
        /// A job that had not ended is no longer in the queue.
        case vanished(JobID)
    }

    /// How a job's story ended for this command.
    private enum Outcome: Sendable {
        case completed, failed, cancelled, vanished
    }

    /// The jobs followed.
    let scope: Scope
    private let wanted: Set<JobID>
    private var jobs: [JobID: JobDocument] = [:]
    private var byState: [JobState: Set<JobID>] = [:]
    private var outcomes: [JobID: Outcome] = [:]

    /// Starts with nothing known.
    init(_ scope: Scope) {
        self.scope = scope
        if case .jobs(let jobs) = scope { self.wanted = Set(jobs) } else { self.wanted = [] }
    }

    /// The jobs that have neither ended nor vanished, in order; all of a queue are not listed.
    var openJobs: [JobID] {
        switch self.scope {
        case .jobs(let jobs): jobs.filter { self.outcomes[$0] == nil }
        case .queue: self.jobs.keys.sorted()
        }
    }

    /// Takes the documents that answer a subscription, the first or one after a new connection.
    ///
    /// - Returns: What to tell, and the open jobs that the answer lacks; they are to be asked for.
    mutating func begin(_ documents: [JobDocument]) -> (outputs: [Output], missing: [JobID]) {
        var outputs: [Output] = []
        var seen: Set<JobID> = []
        for document in documents where self.isWanted(document.id) {
            seen.insert(document.id)
            // Of a queue, what ended before it was followed is no matter of this command.
            if self.scope == .queue, document.state.isEnded, self.jobs[document.id] == nil { continue }
            outputs += self.update(document)
        }
        return (outputs, self.openJobs.filter { !seen.contains($0) })
    }

    /// Takes a notification.
    mutating func apply(_ notification: ControlNotification) -> [Output] {
        switch notification {
        case .event(let event, let document):
            guard let job = event.job else { return [.event(event)] }
            guard self.isWanted(job) else { return [] }
            if let document { return [.event(event)] + self.update(document) }
            return [.event(event)] + self.vanish(job)
        case .progress(let documents):
            let known = documents.filter { self.jobs[$0.id] != nil }
            for document in known { self.progress(document) }
            return known.isEmpty ? [] : [.progress(known)]
        case .changed:
            return []  // who shows jobs that are queued asks for them
        case .overrun:
            return []  // who follows subscribes again, and `begin` tells what has changed
        }
    }

    /// Takes a job's present document.
    mutating func update(_ document: JobDocument) -> [Output] {
        let id = document.id
        if self.outcomes[id] != nil {
            // A job that ended is done with, except in a queue, where it may be retried.
            guard self.scope == .queue, !document.state.isEnded else { return [] }
            self.outcomes[id] = nil
        }
        let before = self.jobs[id]
        self.set(document)
        switch document.state {
        case .queued:
            // Where its host is left alone, it tells so.
            let isNews = document.retryAt != nil && before?.retryAt != document.retryAt
            return isNews ? [.waits(document)] : []
        case .running:
            return before?.state == .running ? [] : [.began(document)]
        case .waiting:
            let isSame =
                before?.state == .waiting && before?.reason == document.reason
                && before?.message == document.message && before?.retryAt == document.retryAt
            return isSame ? [] : [.waits(document)]
        case .paused:
            return before?.state == .paused ? [] : [.paused(document)]
        case .completed: return self.end(document, .completed)
        case .failed: return self.end(document, .failed)
        case .cancelled: return self.end(document, .cancelled)
        }
    }

    private mutating func end(_ document: JobDocument, _ outcome: Outcome) -> [Output] {
        self.forget(document.id)
        self.outcomes[document.id] = outcome
        return [.ended(document)]
    }

    /// Notes that a job is no longer in the queue.
    mutating func vanish(_ job: JobID) -> [Output] {
        guard self.isWanted(job), self.outcomes[job] == nil, self.scope != .queue || self.jobs[job] != nil
        else { return [] }
        self.forget(job)
        self.outcomes[job] = .vanished
        return [.vanished(job)]
    }

    /// Whether nothing is left to wait for: all ended or paused; in a queue also those that wait for a schedule.
    var isFinished: Bool {
        switch self.scope {
        case .jobs(let jobs):
            jobs.allSatisfy { self.outcomes[$0] != nil || self.jobs[$0]?.state == .paused }
        case .queue:
            self.number(.queued) + self.number(.running) == 0 && self.number(.waiting) == self.scheduled
        }
    }

    /// The number of jobs that wait for a schedule.
    var scheduled: Int {
        (self.byState[.waiting] ?? []).filter { self.jobs[$0]?.reason == WaitReason.schedule.rawValue }.count
    }

    /// The exit status that follows from the jobs.
    ///
    /// `successes` is the number of items that were done before anything was followed.
    func exitStatus(successes: Int = 0) -> ExitStatus {
        var completed = successes
        var failed = 0
        for outcome in self.outcomes.values {
            switch outcome {
            case .completed: completed += 1
            case .cancelled where self.scope == .queue: break
            case .failed, .cancelled, .vanished: failed += 1
            }
        }
        let paused = self.scope == .queue ? 0 : self.number(.paused)
        return ExitStatus.of(completed: completed, failed: failed, paused: paused)
    }

    /// Jobs to draw, those at work first, and how many more are under way.
    func active(limit: Int) -> (jobs: [JobDocument], more: Int) {
        var ids: [JobID] = []
        var total = 0
        for state in [JobState.running, .waiting, .queued] {
            let members = self.byState[state] ?? []
            total += members.count
            // Nobody reads thousands of lines, so a long queue is only counted.
            guard ids.count < limit, state != .queued || members.count <= 100 else { continue }
            ids += members.sorted().prefix(limit - ids.count)
        }
        return (ids.compactMap { self.jobs[$0] }, total - ids.count)
    }

    /// Queued jobs whose wait may be shown: the first of them.
    func queued(limit: Int) -> [JobID] {
        Array((self.byState[.queued] ?? []).sorted().prefix(limit))
    }

    /// The running jobs.
    var running: [JobDocument] {
        (self.byState[.running] ?? []).sorted().compactMap { self.jobs[$0] }
    }

    private func isWanted(_ job: JobID) -> Bool { self.scope == .queue || self.wanted.contains(job) }

    private func number(_ state: JobState) -> Int { self.byState[state]?.count ?? 0 }

    private mutating func set(_ document: JobDocument) {
        self.forget(document.id)
        self.jobs[document.id] = document
        self.byState[document.state, default: []].insert(document.id)
    }

    private mutating func forget(_ job: JobID) {
        if let old = self.jobs.removeValue(forKey: job) { self.byState[old.state]?.remove(job) }
    }

    private mutating func progress(_ document: ProgressDocument) {
        guard var job = self.jobs[document.id] else { return }
        job.phase = document.phase
        job.path = document.path ?? job.path
        job.bytesDone = document.bytesDone
        job.bytesDurable = document.bytesDurable
        job.bytesTotal = document.bytesTotal
        job.rateBytesPerS = document.rateBytesPerS
        job.etaS = document.etaS
        self.jobs[document.id] = job
    }
}

extension ExitStatus {
    /// The status of a command that stood for several items.
    static func of(completed: Int, failed: Int, paused: Int = 0) -> ExitStatus {
        if paused > 0 { return .notFinished }
        if failed == 0 { return .success }
        return completed == 0 ? .failed : .partlyFailed
    }
}
