public import FerryCore
import CSQLite
import Glibc

/// Moves a damaged database aside and begins a new one with the rows that can still be read.
///
/// Only the owner of the folder may use it. Every row passes the new database's checks. What a job had fetched
/// is kept only where two tables on different pages agree about it; the next attempt compares it with the file
/// besides. Where they do not, the job begins anew: bytes are lost, and never truth.
public struct StoreSalvage {
    /// What was saved.
    public struct Result: Sendable {
        /// The damaged database's new name in the folder.
        public var keptAs: String
        /// Jobs in the new database.
        public var jobs: Int
        /// Those of them that kept what they had fetched.
        public var offsets: Int
    }

    private let directory: String
    private let now: Timestamp

    /// Names the folder and the time, which becomes part of the damaged database's name.
    public init(directory: String, now: Timestamp) {
        self.directory = directory
        self.now = now
    }

    /// The tables worth saving, parents first, each with a key that can be walked from both ends.
    private static let tables: [(name: String, key: String)] = [
        ("job", "id"), ("job_request", "job"), ("secret", "job"), ("job_file", "job"), ("segment", "job"),
        ("reservation", "directory"), ("attempt", "job"), ("published", "path"), ("host", "host"),
        ("\"limit\"", "scope"), ("cleanup", "id"), ("dependency", "job"),
    ]

    /// How far job numbers are advanced where the last one given is not known.
    private static let numberGap: Int64 = 1_000

    /// Does it; a failure before the new database is whole leaves both under the names that are told.
    public func run() throws -> Result {
        let stamp = self.now.description.filter { $0.isASCII && ($0.isNumber || $0.isLetter) }
        let kept = "\(StoreFile.name).damaged-\(stamp)"
        try self.moveAside(as: kept)
        let connection = try StoreFile(directory: self.directory).openForWriting()
        try connection.execute("BEGIN IMMEDIATE")
        if let old = try? Connection(path: "\(self.directory)/\(kept)", mode: .readOnly) {
            for table in Self.tables { Self.copy(table.name, key: table.key, from: old, to: connection) }
            let last = try? old.number("SELECT seq FROM sqlite_sequence WHERE name = 'job'")
            try Self.continueNumbers(after: last ?? nil, in: connection)
        }
        let offsets = try Self.keepProved(in: connection)
        let jobs = try connection.number("SELECT count(*) FROM job")
        try connection.execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
        return Result(keptAs: kept, jobs: Int(jobs), offsets: offsets)
    }

    /// Renames the file with its log and index, which belong together (sqlite.org/howtocorrupt.html §1.4).
    private func moveAside(as kept: String) throws {
        for suffix in ["-wal", "-shm", ""] {
            let (old, new) = (
                "\(self.directory)/\(StoreFile.name)\(suffix)", "\(self.directory)/\(kept)\(suffix)"
            )
            guard rename(old, new) == 0 || errno == ENOENT else {
                throw StoreError(
                    extendedCode: SQLITE_IOERR,
                    path: old,
                    detail: "cannot be renamed: \(String(cString: strerror(errno)))"
                )
            }
        }
    }

    /// Copies what can be read of a table, from its beginning and, where that ends in damage, from its end.
    private static func copy(_ table: String, key: String, from old: Connection, to new: Connection) {
        // One of an earlier version lacks the columns that have come since; they get their defaults.
        let names = try? old.rows("SELECT * FROM pragma_table_info(?)", [table.filter { $0 != "\"" }]) {
            row in
            _ = row.integer()
            return row.text()
        }
        let columns = names.map { "(\($0.joined(separator: ", ")))" } ?? ""
        // A damaged page ends a walk, and a row that the new database's checks refuse is left out.
        for order in ["ASC", "DESC"] {
            let isWhole: ()? = try? old.each("SELECT * FROM \(table) ORDER BY \(key) \(order)") { values in
                let places = Array(repeating: "?", count: values.count).joined(separator: ", ")
                try? new.run("INSERT OR IGNORE INTO \(table) \(columns) VALUES (\(places))", values: values)
            }
            if isWhole != nil { return }
        }
    }

    /// Takes care that no number is given twice.
    private static func continueNumbers(after last: Int64?, in connection: Connection) throws {
        let highest = try connection.number("SELECT coalesce(max(id), 0) FROM job")
        let next = max(highest, last ?? highest + Self.numberGap)
        try connection.run("DELETE FROM sqlite_sequence WHERE name = 'job'")
        try connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('job', ?)", next)
    }

    /// Drops jobs without a request, and offsets that two tables do not agree about.
    ///
    /// - Returns: How many jobs that are not final kept an offset.
    private static func keepProved(in connection: Connection) throws -> Int {
        try connection.execute(
            """
            DELETE FROM job WHERE id NOT IN (SELECT job FROM job_request);
            CREATE TEMP TABLE proved AS SELECT job.id FROM job
                JOIN job_file ON job_file.job = job.id AND job_file.inode IS NOT NULL
                JOIN segment ON segment.job = job.id AND segment.generation = job_file.generation
                GROUP BY job.id
                HAVING count(*) = 1 AND min(segment.start) = 0 AND min(segment.durable) = job.bytes_durable;
            DELETE FROM job_file WHERE job NOT IN (SELECT id FROM proved)
                AND job IN (SELECT id FROM job WHERE state NOT IN ('completed', 'cancelled'));
            UPDATE job SET bytes_durable = 0
                WHERE id NOT IN (SELECT id FROM proved) AND state NOT IN ('completed', 'cancelled');
            """
        )
        let kept = try connection.number(
            """
            SELECT count(*) FROM job JOIN proved ON proved.id = job.id
            WHERE bytes_durable > 0 AND state NOT IN ('completed', 'cancelled')
            """
        )
        try connection.execute("DROP TABLE proved")
        return Int(kept)
    }
}

extension Connection {
    /// Calls `body` with the values of each row of a query, as they come.
    fileprivate func each(_ sql: String, _ body: ([any SQLBindable]) -> Void) throws {
        _ = try self.rows(sql) { row in body(row.values()) }
    }
}
