import CSQLite
public import FerryCore
import Glibc

/// Looks at a job database for what is wrong, without changing it; works beside the running service too.
///
/// It has a connection of its own, for reading only. One thread at a time may use it. Every method reads for as
/// long as the tables are large.
public final class StoreAudit {
    /// What kind of file there is.
    public enum Condition: Sendable, Equatable {
        /// No database yet.
        case missing
        /// Empty: a service was about to make it.
        case new
        /// Of this or an earlier version, which the next start migrates.
        case ours(version: Int, current: Int)
        /// Of a newer Ferry.
        case newer(version: Int)
        /// Another program's.
        case foreign
        /// SQLite cannot make sense of it; its words.
        case damaged(String)
    }

    let connection: Connection

    /// Opens the database of a folder for reading.
    ///
    /// - Throws: `FerryError` `.database` if it cannot be read.
    public init(directory: String) throws(FerryError) {
        self.connection = try StoreFile(directory: directory).openForReading()
    }

    /// The names of the database's files in its folder that exist: the file, its log, its index.
    public static func files(in directory: String) -> [String] {
        ["", "-wal", "-shm"].map { StoreFile.name + $0 }
            .filter { access("\(directory)/\($0)", F_OK) == 0 }
    }

    /// Judges the file of a folder.
    ///
    /// - Throws: `FerryError` `.database` if it cannot be read for a reason that is no damage.
    public static func condition(directory: String) throws(FerryError) -> Condition {
        let file = StoreFile(directory: directory)
        guard access(file.path, F_OK) == 0 else { return .missing }
        do {
            let connection = try Connection(path: file.path, mode: .readOnly)
            let version = Int(try connection.number("PRAGMA user_version"))
            let application = try connection.number("PRAGMA application_id")
            let objects = try connection.number("SELECT count(*) FROM sqlite_schema")
            if version == 0, application == 0, objects == 0 { return .new }
            guard application == Schema.applicationID else { return .foreign }
            guard version <= file.migrations.count else { return .newer(version: version) }
            guard version >= 1 else { return .damaged("its version is \(version)") }
            return .ours(version: version, current: file.migrations.count)
        } catch let error as StoreError {
            guard error.isDamage else { throw error.ferryError }
            return .damaged(error.detail)
        } catch {
            throw FerryError(.database, "\(file.path) cannot be read: \(error)", exitStatus: .database)
        }
    }

    /// What SQLite finds wrong in the file, in its words; empty if nothing is.
    ///
    /// A quick look leaves out whether the indexes fit the tables (`quick_check`).
    public func integrity(quick: Bool) throws -> [String] {
        let pragma = quick ? "PRAGMA quick_check(100)" : "PRAGMA integrity_check(100)"
        do {
            return try self.connection.rows(pragma) { $0.text() }.filter { $0 != "ok" }
        } catch let error as StoreError where error.isDamage {
            return [error.detail]
        }
    }

    /// Whether lines of ``integrity(quick:)`` speak of indexes only, which can be made anew from their tables.
    public static func isOnlyOfIndexes(_ lines: [String]) -> Bool {
        let phrases = [" missing from index ", "wrong # of entries in index ", "non-unique entry in index "]
        return lines.allSatisfy { line in phrases.contains { line.contains($0) } }
    }

    /// Rows that refer to a row that is not there, a line a table.
    public func strangers() throws -> [String] {
        var counts: [String: Int] = [:]
        for pair in try self.connection.rows(
            "PRAGMA foreign_key_check",
            [],
            { row -> String in
                let table = row.text()
                _ = row.optionalInteger()
                return "\(table) that belong to no \(row.text())"
            }
        ) {
            counts[pair, default: 0] += 1
        }
        return counts.sorted { $0.key < $1.key }.map { "\($0.value) rows of \($0.key)" }
    }

    /// Counters that differ from the rows, as `scope/state/name`.
    public func wrongCounters() throws -> [String] {
        try self.connection.rows(
            """
            SELECT scope || '/' || state || CASE name WHEN '' THEN '' ELSE '/' || name END FROM (
                SELECT * FROM (\(StoreAudit.counted) EXCEPT SELECT scope, state, name, count FROM counter)
                UNION
                SELECT * FROM (SELECT scope, state, name, count FROM counter EXCEPT \(StoreAudit.counted)))
            GROUP BY 1 ORDER BY 1
            """
        ) { $0.text() }
    }

    /// The counters as the rows give them.
    static let counted = """
        SELECT * FROM (
            SELECT 'all' AS scope, state, '' AS name, count(*) AS count FROM job GROUP BY state
            UNION ALL SELECT 'host', state, host, count(*) FROM job GROUP BY host, state
            UNION ALL SELECT 'group', state, group_name, count(*) FROM job WHERE group_name IS NOT NULL
                GROUP BY group_name, state)
        """

    /// Jobs whose rows contradict each other, each with a sentence fragment that fits after "job 3 …".
    public func impossibleJobs() throws -> [(job: JobID, problem: String)] {
        try self.connection.rows(
            """
            SELECT id, 'has no request' FROM job
                WHERE NOT EXISTS (SELECT 1 FROM job_request WHERE job_request.job = job.id)
            UNION ALL
            SELECT id, 'is completed and has no path' FROM job
                WHERE kind = 'download' AND state = 'completed' AND path IS NULL
            UNION ALL
            SELECT id, 'has more durable bytes than its whole size' FROM job
                WHERE bytes_total IS NOT NULL AND bytes_durable > bytes_total
            UNION ALL
            SELECT DISTINCT a.job, 'has segments that overlap' FROM segment a JOIN segment b
                ON a.job = b.job AND a.generation = b.generation AND a.start < b.start
                WHERE a.durable > b.start
            ORDER BY 1
            """
        ) { row in (row.job(), row.text()) }
    }

    /// Jobs that say `running`; without a service they are what a crash has left.
    public func runningJobs() throws -> [JobRecord] {
        try Reader(connection: self.connection).runningJobs()
    }

    /// Final jobs whose secrets were not erased.
    public func leftSecrets() throws -> [JobID] {
        try self.finalJobs(in: "secret")
    }

    /// Final jobs that still have a name reserved.
    public func leftReservations() throws -> [JobID] {
        try self.finalJobs(in: "reservation")
    }

    private func finalJobs(in table: String) throws -> [JobID] {
        try self.connection.rows(
            """
            SELECT DISTINCT job.id FROM \(table) JOIN job ON job.id = \(table).job
            WHERE job.state IN ('completed', 'cancelled') ORDER BY 1
            """
        ) { $0.job() }
    }

    /// Clean-ups of jobs that are over or gone, which nothing will ever carry out.
    public func staleCleanups() throws -> [CleanupRecord] {
        try self.connection.rows(
            """
            SELECT \(CleanupRecord.columns) FROM cleanup WHERE kind = 'cancel' AND NOT EXISTS (
                SELECT 1 FROM job WHERE job.id = cleanup.job AND job.state NOT IN ('completed', 'cancelled'))
            ORDER BY id
            """,
            [],
            CleanupRecord.init(row:)
        )
    }

    /// All clean-ups that are still to be done, oldest first.
    public func cleanups() throws -> [CleanupRecord] {
        try Reader(connection: self.connection).cleanups()
    }

    /// The time of the newest event; nil if there is none.
    public func newestEvent() throws -> Timestamp? {
        try self.connection.first("SELECT time FROM event ORDER BY seq DESC LIMIT 1") { $0.time() }
    }

    /// The folders that downloads go to or went to.
    public func folders() throws -> [String] {
        try self.connection.rows(
            "SELECT directory FROM job_file UNION SELECT directory FROM job_request ORDER BY 1"
        ) { $0.text() }
    }

    /// A partial as the database knows it.
    public struct Partial: Sendable, Equatable {
        /// Its record.
        public let file: FileRecord
        /// Its segments, by their start.
        public let segments: [SegmentRecord]
        /// The job's state.
        public let state: JobState
        /// What a running job does.
        public let phase: JobPhase?

        /// One past the last byte of it that is said to be durable.
        public var durable: Int64 { self.segments.map { $0.durable > $0.start ? $0.durable : 0 }.max() ?? 0 }
    }

    /// The partials of the jobs that are not final.
    public func partials() throws -> [Partial] {
        try self.partials(where: "job.state NOT IN ('completed', 'cancelled')")
    }

    /// The partials of one job, in any state.
    public func partials(of id: JobID) throws -> [Partial] {
        try self.partials(where: "job.id = \(id.rawValue)")
    }

    private func partials(where condition: String) throws -> [Partial] {
        let columns = FileRecord.columns.split(separator: ", ").map { "job_file.\($0)" }
            .joined(separator: ", ")
        let reader = Reader(connection: self.connection)
        return try self.connection.rows(
            """
            SELECT \(columns), job.state, job.phase FROM job_file JOIN job ON job.id = job_file.job
            WHERE \(condition)
            """
        ) { row in
            let file = FileRecord(row: &row)
            return Partial(
                file: file,
                segments: try reader.segments(file.job, generation: file.generation),
                state: try row.word(JobState.self),
                phase: try row.optionalWord(JobPhase.self)
            )
        }
    }

    /// The spool files that uploads need.
    public func spools() throws -> Set<String> {
        Set(try self.connection.rows("SELECT spool FROM upload WHERE spool IS NOT NULL") { $0.text() })
    }
}
