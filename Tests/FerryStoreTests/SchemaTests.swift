import CSQLite
import FerryCore
import Testing

@testable import FerryStore

@Suite struct SchemaTests {
    @Test(
        arguments: [
            ("job", "kind", JobKind.allCases.map(\.rawValue)),
            ("job", "state", JobState.allCases.map(\.rawValue)),
            ("job", "phase", JobPhase.allCases.map(\.rawValue)),
            ("job", "wait_reason", WaitReason.allCases.map(\.rawValue)),
            ("job", "failure_reason", FailureReason.allCases.map(\.rawValue)),
            ("event", "state", JobState.allCases.map(\.rawValue)),
        ]
    )
    func `the words of the checks are those of the enums`(table: String, column: String, words: [String])
        async throws
    {
        let sql = try await withStore { store in
            try await store.read {
                try $0.connection.first("SELECT sql FROM sqlite_schema WHERE name = ?", [table]) { $0.text() }
            }
        }
        let definition = try #require(sql).split(separator: "\n").joined(separator: " ")
        let start = try #require(definition.range(ofText: "CHECK (\(column) IN"))
        let list = definition[start...].prefix { $0 != ")" }
        let found = list.split(separator: "'").enumerated().filter { $0.offset % 2 == 1 }
        #expect(found.map { String($0.element) } == words)
    }

    @Test func `the states that end and that are final are those of the core`() {
        let quoted = { (states: [JobState]) in states.map { "'\($0.rawValue)'" }.joined(separator: ", ") }
        let ended = quoted(JobState.allCases.filter(\.isEnded))
        let final = quoted(JobState.allCases.filter(\.isFinal))
        #expect(Schema.migrations[0].range(ofText: "= (state IN (\(ended)))") != nil)
        #expect(Schema.migrations[0].range(ofText: "WHERE state NOT IN (\(final))") != nil)
        #expect(Schema.migrations[0].range(ofText: "WHERE state IN (\(final))") != nil)
    }

    @Test(
        arguments: [
            (Reader.Query.queuedHeads, ["SEARCH job USING INDEX job_queued (host=?)"]),
            (Reader.Query.due, ["SEARCH job USING INDEX job_due (next_try<?)"]),
            (Reader.Query.nextDue, ["SEARCH job USING INDEX job_due (next_try>?)"]),
            (Reader.Query.running, ["SEARCH job USING INDEX job_live (state=?)"]),
            (Reader.Query.queuedHosts, ["SEARCH counter USING PRIMARY KEY (scope=? AND state=?)"]),
            (
                Reader.Query.sameTransfer,
                [
                    "SEARCH job_request USING COVERING INDEX job_request_same "
                        + "(url_fingerprint=? AND directory=? AND output=?)",
                    "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)",
                ]
            ),
            (
                JobFilter(jobs: [JobID(rawValue: 1)]).query.sql,
                [
                    "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)", "LIST SUBQUERY 1",
                    "SCAN json_each VIRTUAL TABLE INDEX 1:",
                ]
            ),
            (
                JobFilter(states: [.failed]).query.sql,
                ["SEARCH job USING INDEX job_live (state=?)"]
            ),
        ]
    )
    func `the scheduler's queries walk their index and sort nothing`(sql: String, plan: [String]) async throws
    {
        let found = try await withStore { store in
            try await store.read { reader in
                let count = sql.utf8.count { $0 == UInt8(ascii: "?") }
                let values: [any SQLBindable] = Array(repeating: 1, count: count)
                return try reader.connection.rows("EXPLAIN QUERY PLAN " + sql, values) { row in
                    for _ in 0..<3 { _ = row.integer() }
                    return row.text()
                }
            }
        }
        #expect(found == plan)
    }

    @Test func `the head of a host costs the same among a thousand and a hundred thousand queued jobs`()
        async throws
    {
        try await withFolder { folder in
            let store = try JobStore(directory: folder)
            defer { store.close() }
            func fill(_ count: Int) async throws {
                try await store.write { transaction in
                    try transaction.connection.run(
                        """
                        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
                        INSERT INTO job (kind, state, priority, host, url, attempts, transient_tries,
                            doubtful_tries, forgiven_attempts, restarts, mismatches, best_bytes, bytes_durable, created_at)
                        SELECT 'download', 'queued', i % 7, 'h' || (i % 5), 'u', 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM n
                        """,
                        count
                    )
                }
            }
            try await fill(1_000)
            let few = try steps(Reader.Query.queuedHeads, in: folder)
            try await fill(99_000)
            let many = try steps(Reader.Query.queuedHeads, in: folder)
            #expect(try await store.read { try $0.counts() }[.queued] == 100_000)
            #expect(try await store.read { try $0.queuedHosts() } == ["h0", "h1", "h2", "h3", "h4"])
            #expect(few.rows == 8)
            #expect(many.rows == 8)
            #expect(many.steps == few.steps)
        }
    }
}

/// The rows and virtual machine steps of the head of `h1`, on a connection of its own.
private func steps(_ sql: String, in folder: String) throws -> (rows: Int, steps: Int32) {
    var database: OpaquePointer?
    var statement: OpaquePointer?
    #expect(sqlite3_open_v2(folder + "/jobs.db", &database, SQLITE_OPEN_READONLY, nil) == SQLITE_OK)
    defer { sqlite3_close_v2(database) }
    #expect(sqlite3_prepare_v2(database, sql, -1, &statement, nil) == SQLITE_OK)
    defer { sqlite3_finalize(statement) }
    #expect(ferry_sqlite_bind_text(try #require(statement), 1, "h1", 2) == SQLITE_OK)
    #expect(sqlite3_bind_int(statement, 2, 8) == SQLITE_OK)
    var rows = 0
    while sqlite3_step(statement) == SQLITE_ROW { rows += 1 }
    return (rows, sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 0))
}

extension String {
    /// Where a text begins, nil if it is not in.
    fileprivate func range(ofText text: String) -> String.Index? {
        self.indices.first { self[$0...].hasPrefix(text) }
    }
}
