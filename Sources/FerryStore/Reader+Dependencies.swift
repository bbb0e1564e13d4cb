public import FerryCore

/// A job that another one comes after.
public struct Dependency: Sendable, Equatable {
    /// Its number.
    public let id: JobID
    /// Its state; nil if it has been removed.
    public let state: JobState?

    /// Names one.
    public init(id: JobID, state: JobState?) {
        self.id = id
        self.state = state
    }
}

extension Reader {
    /// The jobs that are still to be completed before this one.
    public final func dependencies(of id: JobID) throws -> [Dependency] {
        try self.connection.rows(
            """
            SELECT dependency.other, job.state FROM dependency LEFT JOIN job ON job.id = dependency.other
            WHERE dependency.job = ? ORDER BY dependency.other
            """,
            [id]
        ) { Dependency(id: $0.job(), state: try $0.optionalWord(JobState.self)) }
    }

    /// The jobs that wait for this one to be completed.
    public final func dependents(of id: JobID) throws -> [JobID] {
        try self.connection.rows("SELECT job FROM dependency WHERE other = ? ORDER BY job", [id]) { $0.job() }
    }

    /// Jobs with all those that are still to be completed before them, and before those.
    public final func withDependencies(_ ids: Set<JobID>) throws -> Set<JobID> {
        let found = try self.connection.rows(
            """
            WITH RECURSIVE wanted (id) AS (
                SELECT value FROM json_each(?)
                UNION SELECT dependency.other FROM wanted JOIN dependency ON dependency.job = wanted.id)
            SELECT id FROM wanted
            """,
            ["[" + ids.map(\.description).joined(separator: ",") + "]"]
        ) { $0.job() }
        return Set(found)
    }

    /// The windows of the jobs that are ready or run, each once.
    public final func windows() throws -> [(window: RunWindow, from: Timestamp?)] {
        try self.connection.rows(
            """
            SELECT DISTINCT run_window, window_from FROM job
            WHERE run_window IS NOT NULL AND state IN ('queued', 'running')
            """
        ) { row in
            let text = row.text()
            let from = row.optionalTime()
            return RunWindow(stored: text).map { ($0, from) }
        }.compactMap { $0 }
    }

    /// The jobs that are ready or run and have this window.
    public final func jobs(in window: RunWindow, from: Timestamp?) throws -> [JobRecord] {
        try self.connection.rows(
            """
            SELECT \(JobRecord.columns) FROM job
            WHERE run_window = ? AND window_from IS ? AND state IN ('queued', 'running') ORDER BY id
            """,
            [window.description, from],
            JobRecord.init(row:)
        )
    }

    /// The jobs that wait for a new link, oldest first.
    public final func expiredLinks() throws -> [JobRecord] {
        try self.connection.rows(
            """
            SELECT \(JobRecord.columns) FROM job
            WHERE wait_reason = 'auth' AND next_try IS NULL ORDER BY id
            """,
            [],
            JobRecord.init(row:)
        )
    }
}

extension Transaction {
    /// Notes which jobs have to be completed before this one; those that are already are left out.
    ///
    /// The job's own row is left alone.
    public func setDependencies(of id: JobID, to others: [JobID]) throws {
        try self.connection.run("DELETE FROM dependency WHERE job = ?", id)
        for other in others where try self.job(other)?.state != .completed {
            try self.connection.run("INSERT OR IGNORE INTO dependency VALUES (?, ?)", id, other)
        }
    }

    /// Forgets that anything waits for a job: it is completed.
    public func removeDependencies(on other: JobID) throws {
        try self.connection.run("DELETE FROM dependency WHERE other = ?", other)
    }
}
