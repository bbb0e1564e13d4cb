import CSQLite

/// The connection that writes: runs batches of closures, each in a savepoint, all in one transaction.
final class StoreWriter {
    private let connection: Connection
    private var isMarkedInUse = false

    init(connection: Connection) {
        self.connection = connection
    }

    /// Runs a batch and commits it; gives what tells each caller how it went.
    ///
    /// A closure that throws is undone alone. If the transaction itself fails, nothing of the batch is stored,
    /// and every caller gets the same error.
    func commit(_ batch: [PendingWrite]) -> [@Sendable () -> Void] {
        do {
            try self.connection.execute("BEGIN IMMEDIATE")
            if !self.isMarkedInUse { try self.mark(clean: false) }
            let transaction = Transaction(connection: self.connection)
            let answers = try batch.map { try self.run($0, in: transaction) }
            try self.connection.execute("COMMIT")
            self.isMarkedInUse = true
            return answers
        } catch {
            if self.connection.isInTransaction {
                // The first error tells; a next BEGIN would show more.
                try? self.connection.execute("ROLLBACK")
            }
            return batch.map { write in { write.fail(error) } }
        }
    }

    /// Marks the database clean where it was written, and moves the whole write-ahead log into it.
    ///
    /// A failure loses nothing: the next start finds the log and checks the file.
    func close() {
        if self.isMarkedInUse { try? self.mark(clean: true) }
        try? self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Runs one closure in a savepoint.
    ///
    /// - Throws: Only where the whole transaction is lost.
    private func run(_ write: PendingWrite, in transaction: Transaction) throws -> @Sendable () -> Void {
        try self.connection.execute("SAVEPOINT write")
        do {
            let answer = try write.run(transaction)
            try self.connection.execute("RELEASE write")
            return answer
        } catch {
            // Some failures of SQLite undo the transaction by themselves (sqlite.org/lang_transaction.html §4.1).
            guard self.connection.isInTransaction else { throw error }
            try self.connection.execute("ROLLBACK TO write; RELEASE write")
            return { write.fail(error) }
        }
    }

    private func mark(clean: Bool) throws {
        try self.connection.run(
            "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
            StoreFile.cleanKey,
            clean ? "1" : "0"
        )
    }
}
