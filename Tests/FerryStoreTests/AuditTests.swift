import CSQLite
import FerryCore
import Glibc
import Testing

@testable import FerryStore

/// The checks of the database, each finding provoked, and the repairs.
@Suite struct AuditTests {
    /// A damage done by SQL, and whether the audit sees it.
    struct Damage: Sendable {
        let sql: String
        let found: @Sendable (StoreAudit) throws -> Bool
        let repair: (@Sendable (StoreRepair) throws -> Void)?

        init(
            _ sql: String,
            repair: (@Sendable (StoreRepair) throws -> Void)? = nil,
            _ found: @escaping @Sendable (StoreAudit) throws -> Bool
        ) {
            self.sql = sql
            self.found = found
            self.repair = repair
        }
    }

    private static let one = JobID(rawValue: 1)
    private static let over =
        "UPDATE job SET state = 'completed', path = '/data/f', finished_at = 1 WHERE id = 1;"

    static let damages = [
        Damage("UPDATE counter SET count = 7 WHERE scope = 'all'", repair: { try $0.recount() }) {
            try $0.wrongCounters() == ["all/queued"]
        },
        Damage("DELETE FROM counter WHERE scope = 'group'", repair: { try $0.recount() }) {
            try $0.wrongCounters() == ["group/queued/nightly"]
        },
        Damage("INSERT INTO counter VALUES ('host', 'failed', 'x:1', 2)", repair: { try $0.recount() }) {
            try $0.wrongCounters() == ["host/failed/x:1"]
        },
        Damage("DELETE FROM job_request WHERE job = 1") {
            try $0.impossibleJobs().map(\.problem) == ["has no request"]
        },
        Damage(over + "UPDATE job SET path = NULL WHERE id = 1") {
            try $0.impossibleJobs().map(\.problem) == ["is completed and has no path"]
        },
        Damage("UPDATE job SET bytes_total = 5, bytes_durable = 6 WHERE id = 1") {
            try $0.impossibleJobs().map(\.problem) == ["has more durable bytes than its whole size"]
        },
        Damage("INSERT INTO segment VALUES (1, 1, 50, NULL, 60)") {
            try $0.impossibleJobs().map(\.problem) == ["has segments that overlap"]
        },
        Damage(over + "INSERT INTO secret VALUES (1, 'url', 'x')", repair: { try $0.eraseSecrets(of: [one]) })
        {
            try $0.leftSecrets() == [one]
        },
        Damage(over + "INSERT INTO reservation VALUES ('/d', 'n', 1)", repair: { try $0.release([one]) }) {
            try $0.leftReservations() == [one]
        },
        Damage("INSERT INTO cleanup (job, kind, detail, created_at) VALUES (9, 'cancel', '', 1)") {
            try $0.staleCleanups().map(\.job) == [JobID(rawValue: 9)]
        },
        Damage("PRAGMA foreign_keys = OFF; INSERT INTO secret VALUES (44, 'url', 'x')") {
            try $0.strangers() == ["1 rows of secret that belong to no job"]
        },
    ]

    @Test func `a good database has nothing to tell`() async throws {
        try await Self.withQueue { folder in
            let audit = try StoreAudit(directory: folder)
            #expect(
                try StoreAudit.condition(directory: folder)
                    == .ours(version: Schema.migrations.count, current: Schema.migrations.count)
            )
            #expect(try audit.integrity(quick: false) == [] && audit.integrity(quick: true) == [])
            for damage in Self.damages { #expect(try !damage.found(audit), "\(damage.sql)") }
            #expect(try audit.partials().map(\.durable) == [100])
            #expect(try audit.folders() == ["/data"])
        }
    }

    @Test(arguments: damages.indices)
    func `each contradiction is found, and repaired where nothing is guessed`(index: Int) async throws {
        let damage = Self.damages[index]
        try await Self.withQueue { folder in
            Self.run(damage.sql, in: folder)
            let audit = try StoreAudit(directory: folder)
            #expect(try damage.found(audit), "\(damage.sql)")
            guard let repair = damage.repair else { return }
            try repair(try StoreRepair(directory: folder))
            #expect(try !damage.found(audit) && audit.wrongCounters() == [])
        }
    }

    @Test func `a lowered offset is the file's size, in the job's row too`() async throws {
        try await Self.withQueue { folder in
            let file = try #require(try StoreAudit(directory: folder).partials().first?.file)
            try StoreRepair(directory: folder).lower(file, to: 60)
            let store = try JobStore(directory: folder)
            defer { store.close() }
            let (job, segments) = try await store.read { reader in
                (try reader.job(Self.one), try reader.segments(Self.one, generation: 1))
            }
            #expect(job?.bytesDurable == 60 && segments.map(\.durable) == [60])
        }
    }

    @Test func `a damaged index is told from other damage, and made anew`() async throws {
        try await Self.withQueue { folder in
            // The index is said to hold other rows than it does.
            Self.run(
                """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, 'state = ''queued''', 'state = ''paused''')
                    WHERE name = 'job_queued';
                """,
                in: folder
            )
            let lines = try StoreAudit(directory: folder).integrity(quick: false)
            #expect(!lines.isEmpty && StoreAudit.isOnlyOfIndexes(lines), "\(lines)")
            try StoreRepair(directory: folder).rebuildIndexes()
            #expect(try StoreAudit(directory: folder).integrity(quick: false) == [])
        }
        #expect(
            !StoreAudit.isOnlyOfIndexes(["row 1 missing from index a", "Tree 3 page 4: btreeInitPage()"])
        )
    }

    @Test(arguments: [0, 1, 2])
    func `a damaged file is recognised`(kind: Int) async throws {
        try await Self.withQueue { folder in
            let path = "\(folder)/jobs.db"
            var content = bytes(path)
            switch kind {
            case 0: content.replaceSubrange(0..<100, with: repeatElement(0x55, count: 100))
            case 1: content.removeLast(content.count - 5_000)
            default: content.replaceSubrange(100..<4_096, with: repeatElement(0xFF, count: 3_996))
            }
            write(content, to: path)
            guard case .damaged = try StoreAudit.condition(directory: folder) else {
                let lines = try? StoreAudit(directory: folder).integrity(quick: false)
                #expect(lines?.isEmpty != true && !StoreAudit.isOnlyOfIndexes(lines ?? ["damaged"]))
                return
            }
        }
    }

    @Test func `from a damaged database the rows that can be read are saved`() async throws {
        try await Self.withQueue(jobs: 400) { folder in
            let path = "\(folder)/jobs.db"
            var content = bytes(path)
            // One page of the job table in the middle of the file.
            let page = try Self.page(of: 200, in: folder)
            content.replaceSubrange(
                page * 4_096..<(page + 1) * 4_096,
                with: repeatElement(0xAA, count: 4_096)
            )
            write(content, to: path)
            #expect(try !StoreAudit(directory: folder).integrity(quick: false).isEmpty)
            let result = try StoreSalvage(directory: folder, now: time(0)).run()
            #expect((300..<400).contains(result.jobs) && result.offsets == 1, "\(result)")
            #expect(names(in: folder).contains(result.keptAs))

            let audit = try StoreAudit(directory: folder)
            #expect(try audit.integrity(quick: false) == [] && audit.wrongCounters() == [])
            #expect(try audit.impossibleJobs().isEmpty && audit.strangers() == [])
            #expect(try audit.partials().map(\.durable) == [100])
            let store = try JobStore(directory: folder)
            defer { store.close() }
            // No number is given twice.
            #expect(try await store.write { try $0.insert(newJob("new")) }.rawValue == 401)
        }
    }

    @Test func `offsets that two tables do not agree about are dropped`() async throws {
        try await Self.withQueue { folder in
            Self.run("UPDATE job SET bytes_durable = 99 WHERE id = 1", in: folder)
            let result = try StoreSalvage(directory: folder, now: time(0)).run()
            #expect(result.jobs == 1 && result.offsets == 0)
            #expect(try StoreAudit(directory: folder).partials().isEmpty)
        }
    }

    // MARK: Helpers

    /// A closed database with jobs, the first one with a partial of 100 durable bytes.
    private static func withQueue(jobs: Int = 1, _ body: (String) async throws -> Void) async throws {
        try await withFolder { folder in
            let store = try JobStore(directory: folder)
            try await store.write { transaction in
                for number in 0..<jobs {
                    _ = try transaction.insert(newJob("file\(number)", group: "nightly"))
                }
                try transaction.save(
                    FileRecord(
                        job: one,
                        generation: 1,
                        directory: "/data",
                        name: "f",
                        partialName: ".f.1.ferry-part",
                        device: 1,
                        inode: 2
                    )
                )
                try transaction.save(SegmentRecord(job: one, generation: 1, start: 0, end: 500, durable: 100))
                try transaction.update(one) {
                    $0.bytesTotal = 500
                    $0.bytesDurable = 100
                }
            }
            store.close()
            try await body(folder)
        }
    }

    /// Runs SQL as another program would.
    private static func run(_ sql: String, in folder: String) {
        var database: OpaquePointer?
        sqlite3_open("\(folder)/jobs.db", &database)
        let code = sqlite3_exec(database, sql, nil, nil, nil)
        #expect(code == SQLITE_OK, "\(database.map { String(cString: sqlite3_errmsg($0)) } ?? "")")
        sqlite3_close(database)
    }

    /// The page, from 0, that holds a job's row: the only one with its URL and its creation.
    private static func page(of id: Int, in folder: String) throws -> Int {
        let content = bytes("\(folder)/jobs.db")
        let needle = Array("queued".utf8)
        let url = Array("example.org:443nightlyhttps://example.org:443/file\(id - 1)".utf8)
        for page in 0..<content.count / 4_096 {
            let part = content[page * 4_096..<(page + 1) * 4_096]
            if Self.holds(part, url), Self.holds(part, needle) { return page }
        }
        throw StoreError(extendedCode: SQLITE_NOTFOUND, path: folder)
    }

    private static func holds(_ bytes: ArraySlice<UInt8>, _ wanted: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: wanted) }
    }
}
