import CSQLite
import FerryCore
import Glibc

/// The database's file: made, judged and opened, or refused with a sentence and left as it is.
///
/// The file is never opened other than by SQLite while SQLite may have it open: closing any descriptor of it
/// drops the process's locks (sqlite.org/howtocorrupt.html §2.2).
struct StoreFile {
    /// The file's name in the state folder.
    static let name = "jobs.db"

    /// The largest file that is checked before use after an unclean end, in bytes.
    static let quickCheckLimit: Int64 = 64 << 20

    /// The key in `meta` that tells whether the last user closed the database.
    static let cleanKey = "clean"

    private static let foreign = "the file belongs to another program"

    let directory: String
    let migrations: [String]

    init(directory: String, migrations: [String] = Schema.migrations) {
        self.directory = directory
        self.migrations = migrations
    }

    var path: String { self.directory + "/" + StoreFile.name }

    /// Opens the database for writing, made or migrated as needed.
    ///
    /// - Throws: `FerryError` `.database`; the file has then not been changed, or a migration was rolled back.
    func openForWriting() throws(FerryError) -> Connection {
        try self.translated {
            try self.create()
            let version = try self.inspect()
            let connection = try Connection(path: self.path, mode: .readWrite)
            guard !connection.isReadOnly else {
                throw StoreError(extendedCode: SQLITE_READONLY, path: self.path)
            }
            let mode = try connection.first("PRAGMA journal_mode = WAL") { $0.text() }
            guard mode == "wal" else {
                throw FerryError(
                    .database,
                    """
                    the job database \(self.path) cannot use a write-ahead log on this file system
                    Put the state folder on a local disk, with --state-dir
                    """,
                    exitStatus: .database
                )
            }
            try self.migrate(connection, from: version)
            return connection
        }
    }

    /// Opens the database for reading; the writer must have it open.
    func openForReading() throws(FerryError) -> Connection {
        try self.translated { try Connection(path: self.path, mode: .readOnly) }
    }

    /// All that is wrong with the file, in SQLite's words; `["ok"]` if nothing is.
    func check() throws(FerryError) -> [String] {
        guard access(self.path, F_OK) == 0 else {
            throw FerryError(.database, "there is no job database \(self.path)", exitStatus: .database)
        }
        return try self.translated {
            do {
                let connection = try Connection(path: self.path, mode: .readOnly)
                let lines = try connection.rows("PRAGMA integrity_check") { $0.text() }
                let strangers = try connection.rows("PRAGMA foreign_key_check") { row in
                    "\(row.text()): row \(row.optionalInteger() ?? 0) refers to a missing row of \(row.text())"
                }
                var wrong = lines.filter { $0 != "ok" } + strangers
                if try connection.number("PRAGMA application_id") != Schema.applicationID {
                    wrong.append(StoreFile.foreign)
                }
                return wrong.isEmpty ? ["ok"] : wrong
            } catch let error as StoreError where error.isDamage {
                return [error.detail]
            }
        }
    }

    /// Makes an empty file that only its owner can read, if there is none; SQLite gives its companions the same mode.
    private func create() throws {
        let descriptor = ferryCreateExclusively(self.path)
        guard descriptor >= 0 else {
            let reason = errno
            guard reason != EEXIST else { return }
            throw FerryError(
                .database,
                """
                the job database cannot be made in \(self.directory): \(String(cString: strerror(reason)))
                Make the folder writable for this user, or name another one with --state-dir
                """,
                exitStatus: .database
            )
        }
        // A strange umask could have taken bits away; a failure shows when SQLite opens the file.
        _ = fchmod(descriptor, 0o600)
        _ = close(descriptor)  // nothing was written
    }

    /// Judges the file without changing it, and gives its version; 0 is new.
    private func inspect() throws -> Int {
        let connection = try Connection(path: self.path, mode: .readOnly)
        let version = try connection.number("PRAGMA user_version")
        let application = try connection.number("PRAGMA application_id")
        let objects = try connection.number("SELECT count(*) FROM sqlite_schema")
        if version == 0, application == 0, objects == 0 { return 0 }
        guard application == Schema.applicationID else {
            throw StoreError(
                extendedCode: SQLITE_NOTADB,
                path: self.path,
                detail: StoreFile.foreign
            )
        }
        guard version >= 1 else {
            throw StoreError(
                extendedCode: SQLITE_CORRUPT,
                path: self.path,
                detail: "its version is \(version)"
            )
        }
        guard version <= self.migrations.count else {
            throw FerryError(
                .database,
                """
                the job database \(self.path) was written by a newer Ferry (version \(version), this one \
                reads up to \(self.migrations.count))
                Use that Ferry, or name another folder with --state-dir
                """,
                exitStatus: .database
            )
        }
        let clean = try connection.first("SELECT value FROM meta WHERE key = ?", [StoreFile.cleanKey]) {
            $0.text()
        }
        let pages = try connection.number("PRAGMA page_count")
        let pageSize = try connection.number("PRAGMA page_size")
        if clean != "1", pages * pageSize <= StoreFile.quickCheckLimit {
            let lines = try connection.rows("PRAGMA quick_check(5)") { $0.text() }
            guard lines == ["ok"] else {
                throw StoreError(
                    extendedCode: SQLITE_CORRUPT,
                    path: self.path,
                    detail: lines.first ?? "the check gave no answer"
                )
            }
        }
        return Int(version)
    }

    /// Runs the migrations that are missing, each in a transaction of its own; keeps a copy of an older database.
    private func migrate(_ connection: Connection, from version: Int) throws {
        guard version < self.migrations.count else { return }
        if version > 0 { try self.keepCopy(connection, version: version) }
        for next in version..<self.migrations.count {
            try connection.execute("BEGIN IMMEDIATE")
            do {
                try connection.execute(self.migrations[next])
                try connection.execute(
                    "PRAGMA user_version = \(next + 1); PRAGMA application_id = \(Schema.applicationID)"
                )
                try connection.execute("COMMIT")
            } catch {
                // The first error tells.
                if connection.isInTransaction { try? connection.execute("ROLLBACK") }
                throw error
            }
        }
    }

    /// Writes `jobs.db.v<version>` beside the file; one that is there from an earlier try is replaced.
    private func keepCopy(_ connection: Connection, version: Int) throws {
        let copy = "\(self.path).v\(version)"
        let unfinished = copy + ".new"
        _ = unlink(unfinished)  // usually not there
        let descriptor = ferryCreateExclusively(unfinished)
        guard descriptor >= 0 else { throw StoreError(extendedCode: SQLITE_CANTOPEN, path: unfinished) }
        defer { _ = close(descriptor) }  // SQLite has the copy open no longer
        try connection.run("VACUUM INTO ?", unfinished)
        let folder = open(self.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if folder >= 0 { _ = close(folder) } }  // nothing was written to it
        guard fsync(descriptor) == 0, rename(unfinished, copy) == 0, fsync(folder) == 0 else {
            throw StoreError(
                extendedCode: SQLITE_IOERR,
                path: copy,
                detail: String(cString: strerror(errno))
            )
        }
    }

    private func translated<Value>(_ body: () throws -> Value) throws(FerryError) -> Value {
        do {
            return try body()
        } catch let error as FerryError {
            throw error
        } catch let error as StoreError {
            throw error.ferryError
        } catch {
            throw FerryError(
                .database,
                "the job database \(self.path) failed: \(error)",
                exitStatus: .database
            )
        }
    }
}

/// Makes an empty file of mode 0600, which must not be there (open(2)).
private func ferryCreateExclusively(_ path: String) -> Int32 {
    open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0o600)
}
