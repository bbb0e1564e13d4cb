public import FerryCore

/// What can be asked of the job database, all from one snapshot.
///
/// Valid only inside the closure that got it, on the thread that runs it.
public class Reader {
    let connection: Connection

    init(connection: Connection) {
        self.connection = connection
    }

    /// A job by its number.
    public final func job(_ id: JobID) throws -> JobRecord? {
        try self.connection.first(
            "SELECT \(JobRecord.columns) FROM job WHERE id = ?",
            [id],
            JobRecord.init(row:)
        )
    }

    /// The request that made a job, its secrets merged back in.
    ///
    /// After ``Transaction/eraseSecrets(_:)`` it has the redacted URL, no header fields, and no proxies where
    /// these held a password.
    public final func request(_ id: JobID) throws -> JobRequest? {
        let stored = try self.connection.first("SELECT request FROM job_request WHERE job = ?", [id]) {
            $0.text()
        }
        guard let stored else { return nil }
        let secrets = try self.connection.rows("SELECT kind, value FROM secret WHERE job = ?", [id]) {
            RequestSecret(kind: $0.text(), value: $0.text())
        }
        return try JobRequest(stored: stored, secrets: secrets)
    }

    /// The jobs that a filter lets through, oldest first.
    public final func jobs(_ filter: JobFilter) throws -> [JobRecord] {
        let query = filter.query
        let newestFirst = try self.connection.rows(query.sql, query.values, JobRecord.init(row:))
        return newestFirst.reversed()
    }

    /// The numbers of the jobs that a filter lets through, oldest first.
    public final func jobIDs(_ filter: JobFilter) throws -> [JobID] {
        let query = filter.query(of: "id")
        return try self.connection.rows(query.sql, query.values) { $0.job() }.reversed()
    }

    /// A job's file of the highest generation.
    public final func file(_ id: JobID) throws -> FileRecord? {
        try self.connection.first(
            "SELECT \(FileRecord.columns) FROM job_file WHERE job = ? ORDER BY generation DESC LIMIT 1",
            [id],
            FileRecord.init(row:)
        )
    }

    /// A job's files of all generations, oldest first.
    public final func files(_ id: JobID) throws -> [FileRecord] {
        try self.connection.rows(
            "SELECT \(FileRecord.columns) FROM job_file WHERE job = ? ORDER BY generation",
            [id],
            FileRecord.init(row:)
        )
    }

    /// The segments of one partial, by their start.
    public final func segments(_ id: JobID, generation: Int) throws -> [SegmentRecord] {
        try self.connection.rows(
            "SELECT \(SegmentRecord.columns) FROM segment WHERE job = ? AND generation = ? ORDER BY start",
            [id, generation],
            SegmentRecord.init(row:)
        )
    }

    /// A job's attempts in order.
    public final func attempts(_ id: JobID) throws -> [AttemptRecord] {
        try self.connection.rows(
            "SELECT \(AttemptRecord.columns) FROM attempt WHERE job = ? ORDER BY number",
            [id],
            AttemptRecord.init(row:)
        )
    }

    /// The requests of all attempts of a job, in order.
    public final func hops(_ id: JobID) throws -> [HopRecord] {
        try self.connection.rows(
            "SELECT \(HopRecord.columns) FROM hop WHERE job = ? ORDER BY attempt, position",
            [id],
            HopRecord.init(row:)
        )
    }

    /// A job's events in order.
    public final func events(job id: JobID) throws -> [EventRecord] {
        try self.connection.rows(
            "SELECT \(EventRecord.columns) FROM event WHERE job = ? ORDER BY seq",
            [id],
            EventRecord.init(row:)
        )
    }

    /// The events after the one numbered `since` (0: from the first), in order.
    public final func events(since: Int64, limit: Int) throws -> [EventRecord] {
        try self.connection.rows(
            "SELECT \(EventRecord.columns) FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
            [since, limit],
            EventRecord.init(row:)
        )
    }

    /// The job that has a final name reserved.
    public final func reservation(directory: String, name: String) throws -> JobID? {
        try self.connection.first(
            "SELECT job FROM reservation WHERE directory = ? AND name = ?",
            [directory, name]
        ) { $0.job() }
    }

    /// What is known of a host.
    public final func host(_ host: String) throws -> HostRecord? {
        try self.connection.first(
            "SELECT \(HostRecord.columns) FROM host WHERE host = ?",
            [host],
            HostRecord.init(row:)
        )
    }

    /// What is known of all hosts, by name.
    public final func hosts() throws -> [HostRecord] {
        try self.connection.rows(
            "SELECT \(HostRecord.columns) FROM host ORDER BY host",
            [],
            HostRecord.init(row:)
        )
    }

    /// What is still to be done after the fact, oldest first.
    public final func cleanups() throws -> [CleanupRecord] {
        try self.connection.rows(
            "SELECT \(CleanupRecord.columns) FROM cleanup ORDER BY id",
            [],
            CleanupRecord.init(row:)
        )
    }

    /// What was put in place under a path.
    public final func published(path: String) throws -> PublishedRecord? {
        try self.connection.first(
            "SELECT \(PublishedRecord.columns) FROM published WHERE path = ?",
            [path],
            PublishedRecord.init(row:)
        )
    }
}
