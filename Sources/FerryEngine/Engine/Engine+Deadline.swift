import FerryCore
import FerryStore

extension Engine {
    /// Requests that are read at once to find those with a deadline.
    private static let deadlinePage = 5_000

    /// Finds the deadlines that the database holds; jobs that are added meanwhile are entered by ``take(_:)``.
    func loadDeadlines() async {
        var last = JobID(rawValue: 0)
        while !self.isStopping {
            do {
                let from = last
                let (found, end) = try await self.services.store.read {
                    try $0.deadlines(after: from, limit: Self.deadlinePage)
                }
                for (id, time) in found { self.deadlines.set(id, time) }
                guard let end else { break }
                last = end
            } catch {
                try? await self.services.time.sleep(.seconds(5))  // cut short only when all ends
            }
        }
        if let next = self.deadlines.next { self.wake(at: next) }
    }

    /// Fails the jobs whose deadline has passed.
    func passDeadlines(at now: Timestamp) async throws {
        let due = self.deadlines.due(at: now)
        guard !due.isEmpty else { return }
        do {
            // What is in memory may be older than what the database says.
            let passed = try await self.services.store.read { reader in
                try due.filter { try reader.request($0)?.deadlineAt.map { $0 <= now } ?? false }
            }
            await self.stopTransfers(of: passed, for: .deadlinePassed)
            let changes = try await self.services.store.write { transaction in
                try passed.compactMap { id -> JobChange? in
                    // Those that ran have been committed with their end, and may have been set going again since.
                    guard try transaction.job(id)?.state != .running,
                        let time = try transaction.request(id)?.deadlineAt, time <= now
                    else { return nil }
                    let words = try Self.deadlineWords(id, transaction)
                    let result = try JobLedger.apply(.deadlinePassed, to: id, in: transaction, at: now) {
                        row in
                        (row.message, row.advice) = words
                    }
                    guard case .moved(let change) = result else { return nil }
                    return change
                }
            }
            self.tell(changes)
        } catch {
            for id in due { self.deadlines.set(id, now) }
            throw error
        }
    }

    /// What a job says whose deadline has passed: the last cause is kept.
    static func deadlineWords(_ id: JobID, _ transaction: Transaction) throws -> (String, String) {
        let last = try transaction.attempts(id).last { $0.message != nil }?.message
        return (
            "its deadline has passed" + (last.map { "; before that: \($0)" } ?? ""),
            "give it more time with: ferry set \(id) --deadline DURATION"
        )
    }
}
