public import FerryCore
import Glibc

/// Puts right in a job database what can be put right without guessing; only the owner of the folder may use it.
public final class StoreRepair {
    private let connection: Connection

    /// Opens the database of a folder for writing; it must exist and be of this version.
    ///
    /// - Throws: `FerryError` `.database` if it cannot be written.
    public init(directory: String) throws(FerryError) {
        let file = StoreFile(directory: directory)
        do throws(StoreError) {
            self.connection = try Connection(path: file.path, mode: .readWrite)
        } catch {
            throw error.ferryError
        }
    }

    /// Makes all indexes anew from their tables (sqlite.org/lang_reindex.html).
    public func rebuildIndexes() throws {
        try self.connection.execute("REINDEX")
    }

    /// Counts the rows anew.
    public func recount() throws {
        try self.transaction {
            try self.connection.execute(
                "DELETE FROM counter; INSERT INTO counter (scope, state, name, count) \(StoreAudit.counted)"
            )
        }
    }

    /// Erases the secrets of jobs that are final.
    public func eraseSecrets(of jobs: [JobID]) throws {
        try self.transaction {
            for job in jobs { try self.connection.run("DELETE FROM secret WHERE job = ?", job) }
        }
    }

    /// Gives up the names that final jobs have reserved.
    public func release(_ jobs: [JobID]) throws {
        try self.transaction {
            for job in jobs { try self.connection.run("DELETE FROM reservation WHERE job = ?", job) }
        }
    }

    /// Forgets clean-ups.
    public func forget(_ cleanups: [CleanupRecord]) throws {
        try self.transaction {
            for cleanup in cleanups {
                try self.connection.run("DELETE FROM cleanup WHERE id = ?", cleanup.id)
            }
        }
    }

    /// Lowers the durable offsets of a partial to what its file has.
    public func lower(_ file: FileRecord, to size: Int64) throws {
        try self.transaction {
            try self.connection.run(
                """
                UPDATE segment SET durable = max(start, min(durable, ?)) WHERE job = ? AND generation = ?
                """,
                size,
                file.job,
                file.generation
            )
            try self.connection.run(
                """
                UPDATE job SET bytes_durable = (
                    SELECT coalesce(sum(durable - start), 0) FROM segment
                    WHERE segment.job = job.id AND generation = (
                        SELECT max(generation) FROM job_file WHERE job_file.job = job.id))
                WHERE id = ?
                """,
                file.job
            )
        }
    }

    private func transaction(_ body: () throws -> Void) throws {
        try self.connection.execute("BEGIN IMMEDIATE")
        do {
            try body()
            try self.connection.execute("COMMIT")
        } catch {
            if self.connection.isInTransaction {
                try? self.connection.execute("ROLLBACK")  // the first error tells
            }
            throw error
        }
    }
}
