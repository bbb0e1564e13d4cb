import CSQLite

/// One connection to the job database; used by one thread at a time.
///
/// Opened with SQLITE_OPEN_NOMUTEX and SQLITE_OPEN_EXRESCODE, and never creating a file
/// (sqlite.org/c3ref/open.html).
final class Connection {
    /// What a connection may do.
    enum Mode {
        /// All writes and all checkpoints.
        case readWrite
        /// Reads; never checkpoints, so that of two connections only one does (WAL-reset bug, fixed in 3.51.3).
        case readOnly
    }

    let path: String
    private let handle: OpaquePointer
    private var statements: [String: Statement] = [:]

    /// How many statements are kept prepared; the module has fewer.
    private static let cacheLimit = 128

    init(path: String, mode: Mode) throws(StoreError) {
        var handle: OpaquePointer?
        let access = mode == .readWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
        let code = sqlite3_open_v2(path, &handle, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard let handle else { throw StoreError(extendedCode: SQLITE_NOMEM, path: path) }
        guard code == SQLITE_OK else {
            let error = StoreError(code, of: handle, path: path)
            _ = sqlite3_close_v2(handle)  // an unopened handle; nothing can fail that matters
            throw error
        }
        self.handle = handle
        self.path = path
        try self.configure(mode)
    }

    deinit {
        self.statements.removeAll()
        // All statements are finalized; a checkpoint that fails is repeated at the next start.
        _ = sqlite3_close_v2(self.handle)
    }

    /// Whether SQLite could open the file for reading only, though more was asked.
    var isReadOnly: Bool { sqlite3_db_readonly(self.handle, "main") == 1 }

    /// Whether a transaction is open; some failures end it by themselves (sqlite.org/lang_transaction.html).
    var isInTransaction: Bool { sqlite3_get_autocommit(self.handle) == 0 }

    /// The rowid of the last insert.
    var lastInsertedID: Int64 { sqlite3_last_insert_rowid(self.handle) }

    /// Rows changed by the last statement, without those of triggers and cascades.
    var changes: Int { Int(sqlite3_changes64(self.handle)) }

    /// Runs a script without parameters.
    func execute(_ script: String) throws(StoreError) {
        let code = sqlite3_exec(self.handle, script, nil, nil, nil)
        guard code == SQLITE_OK else {
            throw StoreError(code, of: self.handle, path: self.path)
        }
    }

    /// Runs a statement to its end.
    func run(_ sql: String, _ values: any SQLBindable...) throws(StoreError) {
        try self.run(sql, values: values)
    }

    /// Runs a statement to its end.
    func run(_ sql: String, values: [any SQLBindable]) throws(StoreError) {
        let statement = try self.statement(sql)
        defer { statement.reset() }
        try statement.bind(values)
        while try statement.step() {}
    }

    /// Runs a query and gives what `read` makes of each row.
    func rows<Element>(
        _ sql: String,
        _ values: [any SQLBindable] = [],
        _ read: (inout Row) throws -> Element
    ) throws -> [Element] {
        let statement = try self.statement(sql)
        defer { statement.reset() }
        try statement.bind(values)
        var result: [Element] = []
        while try statement.step() {
            var row = statement.row
            result.append(try read(&row))
        }
        return result
    }

    /// Runs a query and gives what `read` makes of its first row; nil if there is none.
    func first<Element>(
        _ sql: String,
        _ values: [any SQLBindable] = [],
        _ read: (inout Row) throws -> Element
    ) throws -> Element? {
        let statement = try self.statement(sql)
        defer { statement.reset() }
        try statement.bind(values)
        guard try statement.step() else { return nil }
        var row = statement.row
        return try read(&row)
    }

    /// The number that a pragma or an aggregate gives.
    func number(_ sql: String) throws -> Int64 {
        try self.first(sql) { $0.integer() } ?? 0
    }

    private func statement(_ sql: String) throws(StoreError) -> Statement {
        if let statement = self.statements[sql] { return statement }
        if self.statements.count >= Connection.cacheLimit { self.statements.removeAll() }
        let statement = try Statement(sql, database: self.handle, path: self.path)
        self.statements[sql] = statement
        return statement
    }

    private func configure(_ mode: Mode) throws(StoreError) {
        let options: [(option: Int32, on: Int32)] = [
            (Int32(SQLITE_DBCONFIG_DEFENSIVE), 1),
            (Int32(SQLITE_DBCONFIG_TRUSTED_SCHEMA), 0),
            (Int32(SQLITE_DBCONFIG_DQS_DDL), 0),
            (Int32(SQLITE_DBCONFIG_DQS_DML), 0),
            (Int32(SQLITE_DBCONFIG_ENABLE_FKEY), 1),
            (Int32(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE), mode == .readOnly ? 1 : 0),
        ]
        for (option, on) in options {
            let code = ferry_sqlite_db_config(self.handle, option, on)
            guard code == SQLITE_OK else { throw StoreError(extendedCode: code, path: self.path) }
        }
        _ = sqlite3_busy_timeout(self.handle, 5_000)  // milliseconds; cannot fail on an open connection
        // Temporary tables and sorts stay in memory: they may hold secrets.
        try self.execute("PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON")
        switch mode {
        case .readOnly:
            try self.execute("PRAGMA wal_autocheckpoint = 0")
        case .readWrite:
            try self.execute(
                """
                PRAGMA synchronous = FULL;
                PRAGMA secure_delete = ON;
                PRAGMA journal_size_limit = 8388608;
                PRAGMA wal_autocheckpoint = 1000;
                """
            )
        }
    }
}
