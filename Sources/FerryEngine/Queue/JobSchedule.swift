import FerryCore
import FerryStore

/// When a job that is ready may run, by its owner's wish: not before a time, after other jobs, within its window.
///
/// ``JobLedger`` asks it of every job that would be queued, so that no way leads round it, and tells it of every
/// job that has ended.
enum JobSchedule {
    /// What keeps a job from running.
    enum Hold {
        /// It waits: until a time, or until other jobs are completed.
        case wait(until: Timestamp?, message: String?)
        /// It never will: a job that it comes after has failed. What happened, and what helps.
        case never(String, advice: String)
    }

    /// What keeps a job from running now; nil if nothing does.
    static func hold(_ job: JobRecord, in reader: Reader, at now: Timestamp) throws -> Hold? {
        let others = job.after.isEmpty ? [] : try reader.dependencies(of: job.id)
        if let lost = others.first(where: { $0.state.map { $0 == .failed || $0 == .cancelled } ?? true }) {
            return self.never(job.id, after: lost)
        }
        if let time = job.notBefore, time > now { return .wait(until: time, message: nil) }
        if !others.isEmpty {
            return .wait(until: nil, message: self.message(after: others))
        }
        if let window = job.window, job.windowFrom.map({ $0 <= now }) ?? true, !window.isOpen(at: now) {
            return .wait(until: window.opening(after: now), message: "outside its window \(window.hours)")
        }
        return nil
    }

    /// Says which jobs one waits for, and which of them go on only when a person resumes them.
    static func message(after others: [Dependency]) -> String {
        func list(_ jobs: [Dependency]) -> String { jobs.map(\.id.description).joined(separator: ", ") }
        let paused = others.filter { $0.state == .paused }
        let text = "after job\(others.count == 1 ? "" : "s") \(list(others))"
        if paused.isEmpty { return text }
        if paused.count == others.count {
            return others.count == 1 ? "\(text), which is paused" : "\(text), which are paused"
        }
        return "\(text), of which \(list(paused)) \(paused.count == 1 ? "is" : "are") paused"
    }

    private static func never(_ id: JobID, after other: Dependency) -> Hold {
        let anew = "ferry set \(id) --after none waits for it no longer"
        return switch other.state {
        case .failed:
            .never(
                "job \(other.id), which it comes after, has failed",
                advice: "see to that job, then: ferry retry \(other.id) \(id); \(anew)"
            )
        case .cancelled: .never("job \(other.id), which it comes after, was cancelled", advice: anew)
        default: .never("job \(other.id), which it comes after, is not there any more", advice: anew)
        }
    }

    /// When a job that is ready or runs has to stop for its window; nil if it has none.
    static func closing(_ job: JobRecord, at now: Timestamp) -> Timestamp? {
        guard let window = job.window, job.state == .queued || job.state == .running else { return nil }
        return window.closing(after: max(now, job.windowFrom ?? now))
    }

    // MARK: What follows

    /// Lets a job that has just been queued wait or fail if something keeps it from running.
    static func apply(to job: inout JobRecord, _ machine: inout JobMachine, _ hold: Hold) {
        switch hold {
        case .wait(let time, let message):
            guard case .moved = machine.apply(.schedule(time)) else { return }
            job.status = machine.status
            job.message = message
        case .never(let message, let advice):
            guard case .moved = machine.apply(.schedule(nil)), case .moved = machine.apply(.dependencyFailed)
            else { return }
            job.status = machine.status
            job.message = message
            job.advice = advice
        }
    }

    /// Takes a job whose schedule is new to where that wants it.
    static func reconsider(_ id: JobID, in transaction: Transaction, at now: Timestamp) throws -> JobChange? {
        guard let job = try transaction.job(id) else { return nil }
        if job.state == .waiting, job.waitReason == .schedule {
            return try JobLedger.apply(.due, to: id, in: transaction, at: now).change
        }
        guard job.state == .queued, let hold = try self.hold(job, in: transaction, at: now) else {
            return nil
        }
        switch hold {
        case .wait(let time, let message):
            return try JobLedger.apply(.schedule(time), to: id, in: transaction, at: now) { row in
                row.message = message
            }.change
        case .never(let message, let advice):
            _ = try JobLedger.apply(.schedule(nil), to: id, in: transaction, at: now)
            return try JobLedger.apply(.dependencyFailed, to: id, in: transaction, at: now) { row in
                row.message = message
                row.advice = advice
            }.change
        }
    }

    /// Lets those that wait for a job say that it is paused, or is not any more.
    static func renewMessages(after other: JobID, in transaction: Transaction, at now: Timestamp) throws
        -> [JobChange]
    {
        var changes: [JobChange] = []
        for id in try transaction.dependents(of: other) {
            guard var job = try transaction.job(id), job.state == .waiting, job.waitReason == .schedule,
                case .wait(until: nil, let message?)? = try self.hold(job, in: transaction, at: now),
                message != job.message
            else { continue }
            job.message = message
            try transaction.save(job)
            let event = try transaction.append(
                event: JobState.waiting.rawValue,
                job: id,
                state: .waiting,
                reason: WaitReason.schedule.rawValue,
                message: message,
                at: now
            )
            changes.append(JobChange(event: event, job: job, remote: nil))
        }
        return changes
    }

    /// Notes which jobs come before this one, in its row and where they are looked up.
    static func set(after others: [JobID], of job: inout JobRecord, in transaction: Transaction) throws {
        job.after = others
        try transaction.setDependencies(of: job.id, to: others)
    }

    /// Lets go those that waited for a job that is completed, and fails those of one that has failed or was
    /// cancelled, and what comes after them.
    static func settle(after ended: JobRecord, in transaction: Transaction, at now: Timestamp) throws
        -> [JobChange]
    {
        var changes: [JobChange] = []
        var pending = [ended][...]
        while let other = pending.popFirst() {
            let dependents = try transaction.dependents(of: other.id)
            if other.state == .completed { try transaction.removeDependencies(on: other.id) }
            for id in dependents {
                guard let change = try self.settle(id, in: transaction, at: now) else { continue }
                changes.append(change)
                if let job = change.job, job.state.isEnded { pending.append(job) }
            }
        }
        return changes
    }

    private static func settle(_ id: JobID, in transaction: Transaction, at now: Timestamp) throws
        -> JobChange?
    {
        guard let job = try transaction.job(id), job.state == .waiting else { return nil }
        if case .never(let message, let advice) = try self.hold(job, in: transaction, at: now) {
            return try JobLedger.apply(.dependencyFailed, to: id, in: transaction, at: now, settles: false) {
                $0.message = message
                $0.advice = advice
            }.change
        }
        // One that waits for something else as well goes on with that.
        guard job.waitReason == .schedule else { return nil }
        return try JobLedger.apply(.due, to: id, in: transaction, at: now, settles: false) { row in
            row.progressAt = now  // the time that it was not to run counts for nothing
        }.change
    }
}

extension LedgerResult {
    /// The change, nil if there was none.
    var change: JobChange? {
        if case .moved(let change) = self { change } else { nil }
    }
}
