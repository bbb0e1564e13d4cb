import CSQLite
import Dispatch
import FerryCore
import Glibc
import Synchronization
import Testing

@testable import FerryStore

@Suite(.timeLimit(.minutes(5))) struct CommitTests {
    private struct Refusal: Error {}

    /// Holds the store's queue while `submit` fills the next commit, then waits for all answers.
    private func inOneCommit<Value: Sendable>(
        _ store: JobStore,
        _ bodies: [@Sendable (Transaction) throws -> Value]
    ) async -> [Result<Value, any Error>] {
        let gate = DispatchSemaphore(value: 0)
        let held = AsyncStream<Void>.makeStream()
        store.submit { _ in
            held.continuation.finish()
            gate.wait()
        } completion: { _ in
        }
        for await _ in held.stream {}  // the first commit has begun
        let answers = AsyncStream<(Int, Result<Value, any Error>)>.makeStream()
        for (index, body) in bodies.enumerated() {
            store.submit(body) { answers.continuation.yield((index, $0)) }
        }
        gate.signal()
        var results: [Int: Result<Value, any Error>] = [:]
        for await (index, result) in answers.stream {
            results[index] = result
            if results.count == bodies.count { break }
        }
        return bodies.indices.compactMap { results[$0] }
    }

    @Test func `what arrives during a commit shares the next one`() async throws {
        try await withStore { store async throws in
            let before = store.commitCount
            let ids = await self.inOneCommit(store, (0..<500).map { _ in { try $0.insert(newJob()) } })
            #expect(store.commitCount - before == 2)
            #expect(try ids.map { try $0.get().rawValue } == Array(1...500))
        }
    }

    @Test func `many tasks writing at once need fewer commits than writes, and none is lost`() async throws {
        try await withStore { store in
            let ids = try await withThrowingTaskGroup(of: JobID.self) { group in
                for _ in 0..<400 { group.addTask { try await store.write { try $0.insert(newJob()) } } }
                return try await group.reduce(into: Set<JobID>()) { $0.insert($1) }
            }
            #expect(ids.count == 400)
            #expect(store.commitCount < 400)
            #expect(try await store.read { try $0.counts() }[.queued] == 400)
        }
    }

    @Test func `a closure that throws is undone alone`() async throws {
        try await withStore { store in
            let bodies: [@Sendable (Transaction) throws -> JobID] = [
                { try $0.insert(newJob("a")) },
                {
                    _ = try $0.insert(newJob("b"))
                    throw Refusal()
                },
                {
                    let id = try $0.insert(newJob("c"))
                    try $0.update(id) { $0.priority = 1_000 }
                    return id
                },
                { try $0.insert(newJob("d")) },
            ]
            let results = await self.inOneCommit(store, bodies)
            #expect(throws: Never.self) { try results[0].get() }
            #expect(throws: Refusal.self) { try results[1].get() }
            #expect(throws: StoreError.self) { try results[2].get() }
            #expect(throws: Never.self) { try results[3].get() }
            let jobs = try await store.read { try $0.jobs(JobFilter()) }
            #expect(jobs.map(\.url) == ["a", "d"].map { newJob($0).redactedURL })
            #expect(try await store.read { try $0.counts() }[.queued] == 2)
        }
    }

    @Test func `a commit that fails tells every caller, stores nothing, and the next one works`() async throws
    {
        try await withStore { store async throws in
            let bodies: [@Sendable (Transaction) throws -> JobID] = [
                { try $0.insert(newJob("a")) },
                {
                    // Broken at the commit, not before.
                    try $0.connection.execute("PRAGMA defer_foreign_keys = ON")
                    try $0.save(AttemptRecord(job: JobID(rawValue: 77), number: 1, beganAt: time(0)))
                    return JobID(rawValue: 77)
                },
            ]
            let results = await self.inOneCommit(store, bodies)
            for result in results { #expect(throws: StoreError.self) { try result.get() } }
            #expect(try await store.read { try $0.jobs(JobFilter()) } == [])
            #expect(try await store.write { try $0.insert(newJob()) }.rawValue == 1)
        }
    }

    @Test func `a full disk is told from damage, and writing goes on when there is space`() async throws {
        try await withStore { store in
            let setLimit = { @Sendable (pages: Int64) in
                { @Sendable (transaction: Transaction) in
                    try transaction.connection.execute("PRAGMA max_page_count = \(pages)")
                }
            }
            let pages = try await store.read { try $0.connection.number("PRAGMA page_count") }
            try await store.write(setLimit(pages))
            let error = await #expect(throws: StoreError.self) {
                try await store.write { transaction in
                    for _ in 0..<200 { _ = try transaction.insert(newJob()) }
                }
            }
            #expect(error?.isDiskFull == true)
            #expect(error?.isDamage == false)
            #expect(error?.ferryError.exitStatus == .database)
            #expect(error?.ferryError.code == .database)
            #expect(error?.ferryError.message.contains("no space") == true)
            let failedWrite = SQLITE_IOERR | 3 << 8  // SQLITE_IOERR_WRITE
            #expect(StoreError(extendedCode: failedWrite, path: "", systemError: EDQUOT).isDiskFull)
            #expect(!StoreError(extendedCode: failedWrite, path: "", systemError: EIO).isDiskFull)
            try await store.write(setLimit(1_000_000))
            #expect(try await store.write { try $0.insert(newJob()) }.rawValue == 1)
        }
    }

    @Test func `when a write has returned, another connection sees it`() async throws {
        try await withFolder { folder in
            let store = try JobStore(directory: folder)
            defer { store.close() }
            let other = try Connection(path: folder + "/jobs.db", mode: .readOnly)
            for count in 1...20 as ClosedRange<Int64> {
                _ = try await store.write { try $0.insert(newJob()) }
                #expect(try other.number("SELECT count(*) FROM job") == count)
            }
        }
    }

    @Test func `closing finishes what was accepted and refuses the rest`() async throws {
        try await withFolder { folder in
            let store = try JobStore(directory: folder)
            let answered = Atomic<Int>(0)
            for _ in 0..<50 {
                store.submit {
                    try $0.insert(newJob())
                } completion: { result in
                    if case .success = result { answered.add(1, ordering: .relaxed) }
                }
            }
            store.close()
            #expect(answered.load(ordering: .relaxed) == 50)
            let writing = await #expect(throws: FerryError.self) {
                try await store.write { try $0.insert(newJob()) }
            }
            #expect(writing?.code == .stopping)
            let reading = await #expect(throws: FerryError.self) { try await store.read { try $0.counts() } }
            #expect(reading?.code == .stopping)
            let again = try JobStore(directory: folder)
            #expect(try await again.read { try $0.counts() }[.queued] == 50)
            again.close()
        }
    }

    @Test func `counters equal what they count after random steps`() async throws {
        let seed = UInt64.random(in: .min ... .max)
        try await withStore { store in
            try await store.write { transaction in
                var random = SeededGenerator(seed: seed)
                var ids: [JobID] = []
                for _ in 0..<1_500 {
                    let id = ids.randomElement(using: &random)
                    switch Int.random(in: 0..<10, using: &random) {
                    case 0...3:
                        let group = [nil, "g", "h"].randomElement(using: &random) ?? nil
                        let host = ["a:1", "b:1", "c:1"].randomElement(using: &random) ?? ""
                        ids.append(try transaction.insert(newJob(host: host, group: group)))
                    case 4...7:
                        guard let id, let state = JobState.allCases.randomElement(using: &random) else {
                            continue
                        }
                        try transaction.update(id) { $0.move(to: state) }
                    case 8:
                        guard let id else { continue }
                        try transaction.update(id) { job in
                            job.group = job.group == nil ? "g" : nil
                            job.host = "d:1"
                        }
                    default:
                        guard let id, try transaction.job(id)?.state.isEnded == true else { continue }
                        try transaction.remove(id)
                        ids.removeAll { $0 == id }
                    }
                }
                #expect(ids.count > 100, "seed \(seed)")
                let counted = try transaction.connection.rows(
                    """
                    SELECT 'all', state, '', count(*) FROM job GROUP BY state
                    UNION ALL SELECT 'host', state, host, count(*) FROM job GROUP BY state, host
                    UNION ALL SELECT 'group', state, group_name, count(*) FROM job
                        WHERE group_name IS NOT NULL GROUP BY state, group_name
                    ORDER BY 1, 2, 3
                    """
                ) { "\($0.text()) \($0.text()) \($0.text()) \($0.integer())" }
                let kept = try transaction.connection.rows(
                    "SELECT scope, state, name, count FROM counter ORDER BY scope, state, name"
                ) { "\($0.text()) \($0.text()) \($0.text()) \($0.integer())" }
                #expect(kept == counted, "seed \(seed)")
                let failed = try transaction.connection.number(
                    "SELECT count(*) FROM job WHERE state = 'failed' AND host = 'd:1'"
                )
                #expect(try transaction.counts(host: "d:1")[.failed] == failed, "seed \(seed)")
                #expect(try transaction.counts(group: "none").values.allSatisfy { $0 == 0 })
            }
        }
    }

    @Test func `erased secrets are in no byte of the files`() async throws {
        try await withFolder { folder in
            func copies(of text: String) -> Int {
                let needle = Array(text.utf8)
                return names(in: folder).reduce(0) { count, name in
                    let content = bytes(folder + "/" + name)
                    return count
                        + content.indices.count {
                            content[$0] == needle[0] && content[$0...].starts(with: needle)
                        }
                }
            }
            let secrets = ["me:pa55word", "s1gnature", "t0ken", "pr0xyword", "f0rmtext"]
            let request = JobRequest(
                url: "https://me:pa55word@example.org/x?sig=s1gnature",
                directory: "/data",
                headers: [RequestHeader(name: "Authorization", value: "Bearer t0ken")],
                proxy: ProxyEnvironment(all: "http://u:pr0xyword@proxy"),
                upload: UploadOrder(body: .form([FormPart(name: "password", content: .value("f0rmtext"))]))
            )
            let new = NewJob(
                request: request,
                redactedURL: "https://example.org/x?sig=…",
                urlFingerprint: "f",
                host: "example.org:443",
                createdAt: time(0)
            )
            let first = try JobStore(directory: folder)
            let ids = try await first.write { transaction in
                try (0..<40).map { _ in try transaction.insert(new) }
            }
            first.close()
            for secret in secrets { #expect(copies(of: secret) == 40) }

            let second = try JobStore(directory: folder)
            let more = try await second.write { transaction in try transaction.insert(new) }
            for id in ids + [more] {
                try await second.write { transaction in
                    try transaction.update(id) { $0.move(to: .completed) }
                    try transaction.eraseSecrets(id)
                }
            }
            second.close()
            for secret in secrets { #expect(copies(of: secret) == 0) }
            #expect(copies(of: "https://example.org/x?sig=") > 40, "the search finds what is there")
        }
    }
}
