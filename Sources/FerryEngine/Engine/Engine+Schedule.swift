import FerryCore
import FerryStore

extension Engine {
    /// Ends the runs of jobs whose window has closed, and lets those that are ready wait until it opens.
    func closeWindows() async {
        let now = self.services.time.now()
        do {
            guard try await !self.services.store.read({ try $0.windows().isEmpty }) else { return }
            let (changes, running, next) = try await self.services.store.write {
                transaction -> ([JobChange], [JobID], Timestamp?) in
                var changes: [JobChange] = []
                var running: [JobID] = []
                var next: Timestamp?
                for (window, from) in try transaction.windows() {
                    guard from.map({ $0 <= now }) ?? true, !window.isOpen(at: now) else {
                        let closing = window.closing(after: max(now, from ?? now))
                        next = min(next ?? closing, closing)
                        continue
                    }
                    for job in try transaction.jobs(in: window, from: from) {
                        if job.state == .running {
                            running.append(job.id)
                        } else if let change = try JobSchedule.reconsider(job.id, in: transaction, at: now) {
                            changes.append(change)
                        }
                    }
                }
                return (changes, running, next)
            }
            self.tell(changes)
            // The ledger lets a job wait that would be queued outside its window.
            for id in running { self.running[id]?.requestStop(.interrupted) }
            if let next { self.wake(at: next) }
        } catch {
            self.wake(at: now + .seconds(5))  // the database refuses; the rows are still there
        }
    }

    /// Sees to it that jobs are looked at when their waiting time is over, or their window closes.
    func wake(for changes: [JobChange]) {
        let now = self.services.time.now()
        for job in changes.flatMap(\.all).compactMap(\.job) {
            if let due = job.nextTry {
                self.dueAt = min(self.dueAt, due)
                self.wake(at: due)
            }
            if let closing = JobSchedule.closing(job, at: now) { self.wake(at: closing) }
        }
    }

    /// Jobs with those that have to be completed before them.
    func withDependencies(_ ids: some Sequence<JobID>) async -> Set<JobID> {
        let wanted = Set(ids)
        guard !wanted.isEmpty else { return [] }
        // A database that cannot be read runs nothing anyway.
        return (try? await self.services.store.read { try $0.withDependencies(wanted) }) ?? wanted
    }

    /// Lets clients stand for what jobs come after since a change, too.
    func attachDependencies(of ids: [JobID]) async {
        let added = await self.withDependencies(ids)
        for (client, attachment) in self.attachments where !attachment.jobs.isDisjoint(with: ids) {
            self.attachments[client]?.jobs.formUnion(added)
        }
        if self.view == .wanted { self.view = .none }
    }

    /// Refuses jobs to come after that do not exist, or that come after this one themselves.
    static func check(after others: [JobID], of id: JobID?, in reader: Reader) throws {
        for other in others where try reader.job(other) == nil {
            throw FerryError(.unknownJob, "--after: there is no job \(other)", exitStatus: .failed)
        }
        guard let id, try reader.withDependencies(Set(others)).contains(id) else { return }
        throw FerryError.usage("job \(id) cannot come after itself, nor after a job that waits for it")
    }
}
