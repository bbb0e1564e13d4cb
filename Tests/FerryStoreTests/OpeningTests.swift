import CSQLite
import FerryCore
import Glibc
import Testing

@testable import FerryStore

@Suite struct OpeningTests {
    /// What a refusal says, and that it leaves the database's bytes alone.
    private func refusal(_ folder: String, migrations: [String] = Schema.migrations) throws -> FerryError {
        let path = folder + "/jobs.db"
        let before = bytes(path)
        let error = try #require(throws: FerryError.self) {
            _ = try JobStore(file: StoreFile(directory: folder, migrations: migrations))
        }
        #expect(error.code == .database)
        #expect(error.exitStatus == .database)
        #expect(error.message.contains(folder))
        #expect(error.message.contains("\n"), "it names the way out")
        #expect(bytes(path) == before)
        return error
    }

    /// A closed database with one job.
    private func makeDatabase(_ folder: String) async throws {
        let store = try JobStore(directory: folder)
        _ = try await store.write { try $0.insert(newJob()) }
        store.close()
    }

    @Test func `a new database is private to its owner, and leaves no log behind`()
        async throws
    {
        try await withFolder { folder in
            let store = try JobStore(directory: folder)
            _ = try await store.write { try $0.insert(newJob()) }
            for name in names(in: folder) {
                var status = stat()
                #expect(stat(folder + "/" + name, &status) == 0)
                #expect(status.st_mode & 0o777 == 0o600, "\(name)")
            }
            store.close()
            store.close()
            #expect(names(in: folder) == ["jobs.db"])
            #expect(try JobStore.check(directory: folder) == ["ok"])
        }
    }

    @Test func `every setting that durability and safety hang on is in force`() async throws {
        try await withStore { store in
            let settings = try await store.write { transaction throws in
                try [
                    "application_id", "user_version", "synchronous", "foreign_keys", "secure_delete",
                    "trusted_schema", "busy_timeout", "temp_store", "journal_size_limit",
                    "wal_autocheckpoint",
                ].map { try transaction.connection.number("PRAGMA \($0)") }
            }
            #expect(settings == [0x4652_5259, 3, 2, 1, 1, 0, 5_000, 2, 8_388_608, 1_000])
            let reading = try await store.read { reader throws in
                let mode = try reader.connection.first("PRAGMA journal_mode") { $0.text() }
                return (mode, try reader.connection.number("PRAGMA wal_autocheckpoint"))
            }
            #expect(reading.0 == "wal")
            #expect(reading.1 == 0)
            await #expect(throws: StoreError.self, "a double-quoted string is no string") {
                try await store.read { try $0.connection.number("SELECT \"text\"") }
            }
            await #expect(throws: StoreError.self, "the reader cannot write") {
                try await store.read { try $0.connection.execute("DELETE FROM job") }
            }
        }
    }

    @Test func `what was accepted is there after closing, and after an end without closing`() async throws {
        try await withFolder { folder in
            try await self.makeDatabase(folder)
            let log: (database: [UInt8], wal: [UInt8])
            do {
                let store = try JobStore(directory: folder)
                _ = try await store.write { try $0.insert(newJob("second")) }
                // Reading drops the locks of this process; nobody else opens this folder.
                log = (bytes(folder + "/jobs.db"), bytes(folder + "/jobs.db-wal"))
                store.close()
            }
            // The files as a killed process leaves them.
            write(log.database, to: folder + "/jobs.db")
            write(log.wal, to: folder + "/jobs.db-wal")
            let store = try JobStore(directory: folder)
            let jobs = try await store.read { try $0.jobs(JobFilter()) }
            #expect(jobs.map(\.id.rawValue) == [1, 2])
            store.close()
        }
    }

    @Test(arguments: [0, 4_096]) func `an unfinished creation is finished`(size: Int) async throws {
        try await withFolder { folder in
            let path = folder + "/jobs.db"
            write([], to: path)
            if size > 0 { try Connection(path: path, mode: .readWrite).execute("PRAGMA journal_mode = WAL") }
            try await self.makeDatabase(folder)
            #expect(try JobStore.check(directory: folder) == ["ok"])
        }
    }

    @Test func `a file that is no database is refused`() async throws {
        try await withFolder { folder in
            write(
                Array(String(repeating: "a diary, not a database\n", count: 100).utf8),
                to: folder + "/jobs.db"
            )
            let error = try self.refusal(folder)
            #expect(error.message.contains("is no job database of Ferry: file is not a database"))
            #expect(try JobStore.check(directory: folder) == ["file is not a database"])
        }
    }

    @Test func `the database of another program is refused`() async throws {
        try await withFolder { folder in
            write([], to: folder + "/jobs.db")
            try Connection(path: folder + "/jobs.db", mode: .readWrite).execute(
                "CREATE TABLE diary (day TEXT)"
            )
            #expect(try self.refusal(folder).message.contains("belongs to another program"))
            #expect(try JobStore.check(directory: folder) == ["the file belongs to another program"])
            try Connection(path: folder + "/jobs.db", mode: .readWrite).execute("PRAGMA application_id = 7")
            #expect(try self.refusal(folder).message.contains("belongs to another program"))
        }
    }

    @Test func `a newer database is refused`() async throws {
        try await withFolder { folder in
            try await self.makeDatabase(folder)
            let (known, newer) = (Schema.migrations.count, Schema.migrations.count + 1)
            try Connection(path: folder + "/jobs.db", mode: .readWrite).execute(
                "PRAGMA user_version = \(newer)"
            )
            let error = try self.refusal(folder)
            #expect(
                error.message.contains(
                    "written by a newer Ferry (version \(newer), this one reads up to \(known))"
                )
            )
        }
    }

    @Test(arguments: [-1, 0]) func `a database with an impossible version is refused`(version: Int)
        async throws
    {
        try await withFolder { folder in
            try await self.makeDatabase(folder)
            try Connection(path: folder + "/jobs.db", mode: .readWrite).execute(
                "PRAGMA user_version = \(version)"
            )
            #expect(try self.refusal(folder).message.contains("its version is \(version)"))
        }
    }

    @Test func `a damaged database is refused after an unclean end, and check says what is wrong`()
        async throws
    {
        try await withFolder { folder in
            try await self.makeDatabase(folder)
            let path = folder + "/jobs.db"
            let root = try Connection(path: path, mode: .readWrite)
            try root.run("UPDATE meta SET value = '0' WHERE key = 'clean'")
            let page = try root.number("SELECT rootpage FROM sqlite_schema WHERE name = 'job_queued'")
            try root.execute("PRAGMA journal_mode = DELETE")
            var content = bytes(path)
            for index in Int(page - 1) * 4_096..<Int(page) * 4_096 { content[index] = 0xa5 }
            write(content, to: path)
            #expect(try self.refusal(folder).message.contains("is damaged"))
            let lines = try JobStore.check(directory: folder)
            #expect(lines != ["ok"])
            #expect(!lines.isEmpty)
            #expect(bytes(path) == content)
        }
    }

    @Test func `check of a folder without a database says so`() async throws {
        try await withFolder { folder in
            let error = try #require(throws: FerryError.self) { try JobStore.check(directory: folder) }
            #expect(error.code == .database)
            #expect(names(in: folder) == [])
        }
    }

    @Test func `a folder that is missing is refused`() throws {
        let error = try self.refusal("/proc/self/ferry")
        #expect(error.message.contains("cannot be made in /proc/self/ferry"))
    }

    @Test(arguments: ["folder", "file", "new"])
    func `a folder or file that cannot be written is refused`(what: String) async throws {
        try await withFolder { folder in
            if what != "new" { try await self.makeDatabase(folder) }
            chown(folder, 65_534, 65_534)
            chown(folder + "/jobs.db", 65_534, 65_534)
            chmod(what == "file" ? folder + "/jobs.db" : folder, 0o500)
            let error = try withoutPrivileges { try self.refusal(folder) }
            #expect(error.message.contains(what == "new" ? "cannot be made" : "cannot be written"))
            chmod(folder, 0o700)
            #expect(
                names(in: folder).filter { !$0.hasPrefix("jobs.db-") } == (what == "new" ? [] : ["jobs.db"])
            )
        }
    }

    @Test func `an older database is migrated, and a copy of it is kept`() async throws {
        try await withFolder { folder in
            try await self.makeDatabase(folder)
            let migrations = Schema.migrations + ["ALTER TABLE job ADD COLUMN colour TEXT"]
            let old = Schema.migrations.count
            write([1, 2, 3], to: folder + "/jobs.db.v\(old).new")  // an earlier try was cut off
            let store = try JobStore(file: StoreFile(directory: folder, migrations: migrations))
            let version = try await store.read { try $0.connection.number("PRAGMA user_version") }
            #expect(version == Int64(old) + 1)
            #expect(try await store.read { try $0.jobs(JobFilter()) }.count == 1)
            store.close()
            #expect(names(in: folder) == ["jobs.db", "jobs.db.v\(old)"])
            var status = stat()
            #expect(stat(folder + "/jobs.db.v\(old)", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            let copy = try Connection(path: folder + "/jobs.db.v\(old)", mode: .readOnly)
            #expect(try copy.number("PRAGMA user_version") == Int64(old))
            #expect(try copy.number("SELECT count(*) FROM job") == 1)
        }
    }

    @Test func `a migration that fails leaves the old version`() async throws {
        try await withFolder { folder in
            try await self.makeDatabase(folder)
            let broken = Schema.migrations + ["ALTER TABLE job ADD COLUMN colour TEXT; SELECT no_such_column"]
            #expect(throws: FerryError.self) {
                try JobStore(file: StoreFile(directory: folder, migrations: broken))
            }
            let store = try JobStore(directory: folder)
            #expect(try await store.read { try $0.jobs(JobFilter()) }.count == 1)
            store.close()
        }
    }

    @Test func `a database of version 1 opens, with all that was in it`() async throws {
        try await withFolder { folder in
            write([], to: folder + "/jobs.db")
            let script = String(decoding: bytes(fixture("v1.sql")), as: UTF8.self)
            try Connection(path: folder + "/jobs.db", mode: .readWrite).execute(script)
            let store = try JobStore(directory: folder)
            defer { store.close() }
            try await store.read { reader throws in
                let jobs = try reader.jobs(JobFilter())
                #expect(jobs.map(\.id.rawValue) == [1, 2, 3])
                #expect(jobs.map(\.state) == [.running, .waiting, .completed])
                #expect(jobs[0].bytesDurable == 1_048_576)
                #expect(jobs[1].waitReason == .retry)
                let request = try #require(try reader.request(JobID(rawValue: 1)))
                #expect(request.url == "https://user:word@example.org/a.iso?token=s3cret")
                #expect(request.headers == [RequestHeader(name: "Authorization", value: "Bearer s3cret")])
                #expect(try reader.file(JobID(rawValue: 1))?.partialName == ".a.iso.1.ferry-part")
                #expect(try reader.segments(JobID(rawValue: 1), generation: 1).count == 2)
                #expect(try reader.reservation(directory: "/data", name: "a.iso") == JobID(rawValue: 1))
                #expect(try reader.attempts(JobID(rawValue: 1)).count == 1)
                #expect(try reader.hops(JobID(rawValue: 1)).map(\.status) == [302, 200])
                #expect(try reader.events(since: 0, limit: 10).map(\.kind) == ["added", "started"])
                #expect(try reader.cleanups().map(\.kind) == ["unlink"])
                #expect(try reader.hosts().map(\.host) == ["example.org:443"])
                #expect(try reader.published(path: "/data/c.iso")?.size == 7)
                #expect(try reader.counts()[.running] == 1)
            }
            let next = try await store.write { try $0.insert(newJob()) }
            #expect(next.rawValue == 5, "the number of a removed job is not given again")
        }
    }

    @Test func `an upload of version 2 opens, with the URL that was kept as a secret`() async throws {
        try await withFolder { folder in
            write([], to: folder + "/jobs.db")
            let script = String(decoding: bytes(fixture("v2.sql")), as: UTF8.self)
            try Connection(path: folder + "/jobs.db", mode: .readWrite).execute(script)
            let store = try JobStore(directory: folder)
            defer { store.close() }
            let (job, upload) = try await store.read { reader throws in
                let job = try #require(try reader.jobs(JobFilter()).first { $0.kind == .upload })
                return (job, try #require(try reader.upload(job.id)))
            }
            #expect(job.bytesDurable == 4_096)
            #expect(upload.transport == .tus)
            #expect(upload.offset == 4_096)
            #expect(upload.url == "https://up.example.org/files/1?key=s3cret")
            #expect(upload.source?.inode == 77)
            #expect(upload.state == #"{"creations":1}"#)
        }
    }

    @Test(arguments: [(1, 3), (2, 4), (3, 5)])
    func `a database of an earlier version is saved with all that can be read`(version: Int, jobs: Int)
        async throws
    {
        try await withFolder { folder in
            write([], to: folder + "/jobs.db")
            let script = String(decoding: bytes(fixture("v\(version).sql")), as: UTF8.self)
            try Connection(path: folder + "/jobs.db", mode: .readWrite).execute(script)
            let now = Timestamp(milliseconds: 1_800_000_000_000)
            #expect(try StoreSalvage(directory: folder, now: now).run().jobs == jobs)
            let store = try JobStore(directory: folder)
            defer { store.close() }
            #expect(try await store.read { try $0.jobs(JobFilter()) }.count == jobs)
        }
    }

    @Test func `a job of version 3 opens, with its window and what it waits for`() async throws {
        try await withFolder { folder in
            write([], to: folder + "/jobs.db")
            let script = String(decoding: bytes(fixture("v3.sql")), as: UTF8.self)
            try Connection(path: folder + "/jobs.db", mode: .readWrite).execute(script)
            let store = try JobStore(directory: folder)
            defer { store.close() }
            try await store.read { reader throws in
                let id = JobID(rawValue: 6)
                let job = try #require(try reader.job(id))
                #expect(job.after.map(\.rawValue) == [1, 2, 3])
                #expect(job.window?.hours == "22:00-06:00")
                #expect(job.window?.clock.changes.map(\.offset) == [7_200])
                #expect(try reader.dependencies(of: id).map(\.id.rawValue) == [1, 2])
                let request = try #require(try reader.request(id))
                #expect(request.window == job.window)
                #expect(request.after == job.after)
                #expect(request.renew == "/usr/local/bin/fresh")
            }
        }
    }

    @Test(arguments: Array(1...Schema.migrations.count))
    func `the schema of each version is what was released`(version: Int) async throws {
        try await withFolder { folder in
            let query = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name"
            let layouts = try [
                String(decoding: bytes(fixture("v\(version).sql")), as: UTF8.self),
                Schema.migrations.prefix(version).joined(separator: "\n"),
            ].enumerated().map { index, script in
                let path = folder + "/\(index).db"
                write([], to: path)
                let connection = try Connection(path: path, mode: .readWrite)
                try connection.execute(script)
                return try connection.rows(query) { $0.text() }
            }
            #expect(layouts[0] == layouts[1])
        }
    }
}

/// Runs a body as an unprivileged user, on this thread only (setfsuid(2)); root may write everywhere.
private func withoutPrivileges<Value>(_ body: () throws -> Value) throws -> Value {
    guard geteuid() == 0 else { return try body() }
    let symbol = try #require(dlsym(nil, "setfsuid"))
    let setfsuid = unsafeBitCast(symbol, to: (@convention(c) (UInt32) -> Int32).self)
    _ = setfsuid(65_534)
    defer { _ = setfsuid(0) }
    return try body()
}
