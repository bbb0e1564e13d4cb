import FerryCore
import Testing

@testable import FerryStore

@Suite struct RecordTests {
    @Test func `a new job is queued, with its request whole and its row free of secrets`() async throws {
        try await withStore { store in
            let request = JobRequest(
                kind: .upload,
                url: "https://me:pass@example.org/x?sig=abc",
                directory: "/data",
                output: "/data/x",
                ifExists: .update,
                headers: [
                    RequestHeader(name: "X-Key", value: "v"), RequestHeader(name: "X-Key", value: "w"),
                ],
                proxy: ProxyEnvironment(https: "http://u:p@proxy:3128", no: "*.lan"),
                group: "isos",
                priority: -100
            )
            let new = NewJob(
                request: request,
                redactedURL: "https://example.org/x?sig=…",
                urlFingerprint: "f",
                host: "example.org:443",
                createdAt: time(1),
                session: "photos"
            )
            let id = try await store.write { try $0.insert(new) }
            #expect(id.rawValue == 1)
            try await store.read { reader throws in
                #expect(
                    try reader.job(id)
                        == JobRecord(
                            id: id,
                            session: "photos",
                            kind: .upload,
                            priority: -100,
                            host: "example.org:443",
                            group: "isos",
                            url: "https://example.org/x?sig=…",
                            createdAt: time(1)
                        )
                )
                #expect(try reader.request(id) == request)
                let stored = try reader.connection.first("SELECT request FROM job_request") { $0.text() }
                for secret in ["pass", "abc", "X-Key", "u:p"] { #expect(stored?.contains(secret) == false) }
            }
            try await store.write { try $0.eraseSecrets(id) }
            let erased = try #require(try await store.read { try $0.request(id) })
            #expect(erased.url == "https://example.org/x?sig=…")
            #expect(erased.headers == [])
            #expect(erased.proxy == ProxyEnvironment())
            #expect(erased.output == "/data/x")
        }
    }

    @Test func `the texts of a form are secrets, its files and the order of its parts are kept`() async throws
    {
        try await withStore { store in
            let file = FormPart(name: "f", content: .file(path: "/data/f"), contentType: "text/plain")
            let parts = [
                FormPart(name: "user", content: .value("us3r")), file,
                FormPart(name: "password", content: .value("s3cret")), file,
            ]
            var changed = newJob()
            changed.request.kind = .upload
            changed.request.upload = UploadOrder(body: .form(parts), nameWasAdded: true)
            let new = changed
            let id = try await store.write { try $0.insert(new) }
            try await store.read { reader throws in
                #expect(try reader.request(id) == new.request)
                let stored = try reader.connection.first("SELECT request FROM job_request") { $0.text() }
                for secret in ["us3r", "password", "s3cret"] { #expect(stored?.contains(secret) == false) }
            }
            try await store.write { try $0.eraseSecrets(id) }
            let erased = try #require(try await store.read { try $0.request(id) })
            #expect(erased.upload == UploadOrder(body: .form([file, file]), nameWasAdded: true))
        }
    }

    @Test func `every column of a job comes back`() async throws {
        try await withStore { store in
            let id = try await store.write { try $0.insert(newJob()) }
            var job = JobRecord(
                id: id,
                session: "s",
                kind: .upload,
                state: .running,
                phase: .verifying,
                message: "m",
                advice: "a",
                priority: 7,
                host: "h:1",
                group: "g",
                url: "u",
                path: "/p\u{e9}",
                notBefore: time(1),
                nextTry: time(2),
                attempts: 3,
                transientTries: 4,
                doubtfulTries: 5,
                restarts: 6,
                progressAt: time(3),
                bestBytes: 8,
                bytesTotal: .max,
                bytesDurable: 9,
                createdAt: time(4),
                startedAt: time(5),
                lengthProved: false,
                httpVersion: "2",
                contentEncoding: "gzip",
                protocolName: "http"
            )
            for change in [
                { @Sendable (_: inout JobRecord) in }, { $0.bytesDurable = 10 }, { $0.move(to: .waiting) },
                { $0.move(to: .failed) }, { $0.move(to: .completed, at: time(9)) }, { $0.group = nil },
                { $0.after = [JobID(rawValue: 7), JobID(rawValue: 9)] }, { $0.renewals = 2 },
                { $0.window = RunWindow("22:00-06:00", clock: LocalClock(offset: 3_600)) },
                { $0.windowFrom = time(10) },
            ] {
                change(&job)
                let saved = job
                try await store.write { try $0.save(saved) }
                #expect(try await store.read { try $0.job(id) } == saved)
            }
        }
    }

    @Test func `records that break the schema's rules are refused`() async throws {
        try await withStore { store in
            let id = try await store.write { try $0.insert(newJob()) }
            let breaches: [@Sendable (inout JobRecord) -> Void] = [
                { $0.state = .waiting }, { $0.state = .failed }, { $0.state = .completed },
                { $0.phase = .connecting }, { $0.waitReason = .disk }, { $0.failureReason = .tls },
                { $0.finishedAt = time(1) }, { $0.priority = 101 }, { $0.bytesDurable = -1 },
            ]
            for breach in breaches {
                let error = await #expect(throws: StoreError.self) {
                    try await store.write { try $0.update(id, breach) }
                }
                #expect(error?.isConstraint == true)
                #expect(error?.isDamage == false)
            }
            let error = await #expect(throws: FerryError.self) {
                try await store.write {
                    try $0.save(JobRecord(id: JobID(rawValue: 9), host: "h", url: "u", createdAt: time(0)))
                }
            }
            #expect(error?.code == .unknownJob)
        }
    }

    @Test func `what belongs to a job comes back, is replaced, and goes with it`() async throws {
        try await withStore { store in
            let id = try await store.write { transaction throws in
                let id = try transaction.insert(newJob())
                var file = FileRecord(
                    job: id,
                    generation: 1,
                    directory: "/data",
                    name: "n",
                    partialName: ".n"
                )
                try transaction.save(file)
                try transaction.save(SegmentRecord(job: id, generation: 1, start: 0, end: nil, durable: 0))
                try transaction.save(SegmentRecord(job: id, generation: 1, start: 0, end: 10, durable: 4))
                try transaction.save(SegmentRecord(job: id, generation: 1, start: 10, end: 20, durable: 10))
                file.device = 1
                file.inode = .max
                file.remote = #"{"etag":"\"x\""}"#
                file.finalURL = "u"
                try transaction.save(file)
                #expect(try transaction.file(id) == file)
                #expect(try transaction.segments(id, generation: 1).map(\.durable) == [4, 10])
                file.generation = 2
                try transaction.save(file)
                #expect(try transaction.files(id).map(\.generation) == [1, 2])
                try transaction.removeFile(id, generation: 1)
                #expect(try transaction.segments(id, generation: 1) == [])
                #expect(try transaction.file(id) == file)
                try transaction.save(SegmentRecord(job: id, generation: 2, start: 0, end: 5, durable: 5))
                try transaction.removeSegments(id, generation: 2)
                #expect(try transaction.segments(id, generation: 2) == [])

                var attempt = AttemptRecord(job: id, number: 1, beganAt: time(1))
                try transaction.save(attempt)
                var hop = HopRecord(job: id, attempt: 1, index: 0, url: "u")
                try transaction.save(hop)
                hop.status = 206
                hop.address = "::1"
                hop.httpVersion = "1.1"
                hop.firstByteMs = 5
                hop.totalMs = 6
                try transaction.save(hop)
                attempt.endedAt = time(2)
                attempt.outcome = "completed"
                attempt.message = "m"
                attempt.offset = 3
                attempt.received = 4
                try transaction.save(attempt)
                #expect(try transaction.attempts(id) == [attempt])
                #expect(try transaction.hops(id) == [hop])
                #expect(try transaction.reserve(directory: "/data", name: "n", for: id))
                return id
            }
            let events = try await store.write { transaction throws in
                try [
                    transaction.append(
                        event: "added",
                        job: id,
                        state: .queued,
                        reason: nil,
                        message: nil,
                        at: time(1)
                    ),
                    transaction.append(
                        event: "stopping",
                        job: nil,
                        state: nil,
                        reason: "r",
                        message: "m",
                        at: time(2)
                    ),
                ]
            }
            let cleanup = try await store.write {
                try $0.add(cleanup: "unlink", job: id, detail: "/data/.n", at: time(3))
            }
            try await store.read { reader throws in
                #expect(try reader.events(since: 0, limit: 5) == events)
                #expect(try reader.events(since: events[0].seq, limit: 5) == [events[1]])
                #expect(try reader.events(since: 0, limit: 1) == [events[0]])
                #expect(try reader.events(job: id) == [events[0]])
            }
            let refused = await #expect(throws: FerryError.self) {
                try await store.write { try $0.remove(id) }
            }
            #expect(refused?.code == .wrongState)
            try await store.write { transaction throws in
                try transaction.update(id) { $0.move(to: .cancelled) }
                try transaction.remove(id)
                try transaction.append(
                    event: "removed",
                    job: id,
                    state: nil,
                    reason: nil,
                    message: nil,
                    at: time(4)
                )
            }
            try await store.read { reader throws in
                #expect(try reader.job(id) == nil)
                #expect(try reader.request(id) == nil)
                #expect(try reader.events(job: id).map(\.kind) == ["removed"])
                #expect(
                    try reader.cleanups()
                        == [
                            CleanupRecord(
                                id: cleanup,
                                job: id,
                                kind: "unlink",
                                detail: "/data/.n",
                                createdAt: time(3)
                            )
                        ]
                )
                for table in [
                    "job", "job_request", "secret", "job_file", "segment", "attempt", "hop", "reservation",
                    "counter",
                ] {
                    #expect(try reader.connection.number("SELECT count(*) FROM \(table)") == 0, "\(table)")
                }
            }
            try await store.write { try $0.removeCleanup(cleanup) }
            #expect(try await store.read { try $0.cleanups() } == [])
            let unknown = await #expect(throws: FerryError.self) {
                try await store.write { try $0.remove(id) }
            }
            #expect(unknown?.code == .unknownJob)
            #expect(try await store.write { try $0.insert(newJob()) } == JobID(rawValue: 2))
        }
    }

    @Test func `two jobs never have one name`() async throws {
        try await withStore { store in
            try await store.write { transaction throws in
                let first = try transaction.insert(newJob())
                let second = try transaction.insert(newJob())
                #expect(try transaction.reserve(directory: "/d", name: "n", for: first))
                #expect(try transaction.reserve(directory: "/d", name: "n", for: first))
                #expect(try !transaction.reserve(directory: "/d", name: "n", for: second))
                #expect(try transaction.reserve(directory: "/d", name: "n (2)", for: second))
                #expect(try transaction.reserve(directory: "/e", name: "n", for: second))
                #expect(try transaction.reservation(directory: "/d", name: "n") == first)
                try transaction.release(first)
                #expect(try transaction.reservation(directory: "/d", name: "n") == nil)
                #expect(try transaction.reserve(directory: "/d", name: "n", for: second))
            }
        }
    }

    @Test func `hosts and published files are kept and replaced`() async throws {
        try await withStore { store in
            var host = HostRecord(host: "a:443")
            var published = PublishedRecord(path: "/p", device: 1, inode: 2, size: 3, mtimeNs: 4)
            for _ in 0..<2 {
                let (savedHost, savedFile) = (host, published)
                try await store.write { transaction throws in
                    try transaction.save(savedHost)
                    try transaction.save(savedFile)
                }
                try await store.read { reader throws in
                    #expect(try reader.host("a:443") == savedHost)
                    #expect(try reader.hosts() == [savedHost])
                    #expect(try reader.published(path: "/p") == savedFile)
                    #expect(try reader.host("b:443") == nil)
                }
                host = HostRecord(host: "a:443", pausedUntil: time(1), backoffLevel: 2, learned: #"{"x":1}"#)
                published.remote = #"{"etag":"x"}"#
                published.job = JobID(rawValue: 5)
                published.urlFingerprint = "f"
            }
        }
    }

    @Test func `a filter lets the right jobs through, oldest first`() async throws {
        try await withStore { store in
            try await store.write { transaction throws in
                for (index, state) in JobState.allCases.enumerated() {
                    let id = try transaction.insert(
                        newJob(host: index % 2 == 0 ? "a:443" : "b:443", group: index < 3 ? "g" : nil)
                    )
                    try transaction.update(id) { $0.move(to: state, at: time(Int64(index))) }
                }
            }
            // 1 queued, 2 running, 3 waiting, 4 paused, 5 failed, 6 completed, 7 cancelled
            let cases: [(JobFilter, [Int64])] = [
                (JobFilter(), [1, 2, 3, 4, 5, 6, 7]),
                (JobFilter(jobs: [7, 2, 9].map { JobID(rawValue: $0) }), [2, 7]),
                (JobFilter(states: [.failed, .queued]), [1, 5]),
                (JobFilter(states: [.completed, .queued]), [1, 6]),
                (JobFilter(groups: ["g"]), [1, 2, 3]),
                (JobFilter(groups: ["g", "x"], host: "a:443"), [1, 3]),
                (JobFilter(host: "A"), [1, 3, 5, 7]),
                (JobFilter(host: "a:80"), []),
                (JobFilter(host: "aa"), []),
                (JobFilter(limit: 2, before: JobID(rawValue: 6)), [4, 5]),
                (JobFilter(endedAfter: time(5)), [1, 2, 3, 4, 6, 7]),
                (JobFilter(limit: 2), [6, 7]),
                (JobFilter(states: JobState.allCases, endedAfter: time(100), limit: 3), [2, 3, 4]),
            ]
            for (filter, expected) in cases {
                let jobs = try await store.read { try $0.jobs(filter) }
                #expect(jobs.map(\.id.rawValue) == expected, "\(filter)")
                let ids = try await store.read { try $0.jobIDs(filter) }
                #expect(ids == jobs.map(\.id), "\(filter)")
            }
        }
    }

    @Test func `a job that must not begin yet waits for its time`() async throws {
        try await withStore { store in
            var later = newJob("later")
            later.request.notBefore = time(60)
            var past = newJob("past")
            past.request.notBefore = time(-60)
            let jobs = try await store.write { [later, past] transaction in
                try [later, past].map { try transaction.insert($0) }.compactMap { try transaction.job($0) }
            }
            #expect(jobs.map(\.state) == [.waiting, .queued])
            #expect(jobs.map(\.waitReason) == [.schedule, nil])
            #expect(jobs.map(\.nextTry) == [time(60), nil])
            #expect(jobs.map(\.notBefore) == [time(60), nil])
            #expect(try await store.read { try $0.nextDue() } == time(60))
        }
    }

    @Test func `a request is replaced with its secrets`() async throws {
        try await withStore { store in
            var new = newJob().request
            new.url = "https://example.org/other?token=secret"
            new.headers = [RequestHeader(name: "Authorization", value: "secret")]
            new.output = "/data/other"
            let id = try await store.write { [new] transaction in
                let id = try transaction.insert(newJob())
                let shown = "https://example.org/other?…"
                try transaction.replace(request: new, redactedURL: shown, urlFingerprint: "other", of: id)
                return id
            }
            #expect(try await store.read { try $0.request(id) } == new)
            let same = try await store.read {
                try $0.sameTransfer(fingerprint: "other", directory: "/data", output: "/data/other")
            }
            #expect(same.map(\.id) == [id])
            new.headers = []
            try await store.write { [new] transaction in
                try transaction.replace(request: new, redactedURL: new.url, urlFingerprint: nil, of: id)
            }
            #expect(try await store.read { try $0.request(id) } == new)
            try await store.write { try $0.eraseSecrets(id) }
            #expect(try await store.read { try $0.request(id)?.url } == new.url)
        }
    }

    @Test func `limits are kept until they are taken back`() async throws {
        try await withFolder { folder in
            let all = LimitRecord(scope: .all, name: "", key: "running", value: 3)
            let host = LimitRecord(scope: .host, name: "a", key: "running", value: nil)
            var store = try JobStore(directory: folder)
            try await store.write { transaction in
                try transaction.save(LimitRecord(scope: .all, name: "", key: "running", value: 9))
                try transaction.save(all)
                try transaction.save(host)
            }
            store.close()
            store = try JobStore(directory: folder)
            defer { store.close() }
            #expect(try await store.read { try $0.limits() } == [all, host])
            try await store.write { transaction in
                try transaction.removeLimit(scope: .all, name: "", key: "running")
                try transaction.removeLimit(scope: .all, name: "", key: "running")
            }
            #expect(try await store.read { try $0.limits() } == [host])
        }
    }

    @Test func `the scheduler finds heads, due jobs, running jobs and the same transfer`() async throws {
        try await withStore { store in
            try await store.write { transaction throws in
                for (priority, host) in [(0, "a:1"), (5, "a:1"), (5, "a:1"), (9, "b:1")] {
                    _ = try transaction.insert(newJob(host: host, priority: priority))
                }
                for due in [30, 10, 20] as [Int64] {
                    let id = try transaction.insert(newJob("same"))
                    try transaction.update(id) { $0.move(to: .waiting, at: time(due)) }
                }
                let untimed = try transaction.insert(newJob())
                try transaction.update(untimed) {
                    $0.move(to: .waiting)
                    $0.waitReason = .network
                    $0.nextTry = nil
                }
                let running = try transaction.insert(newJob())
                try transaction.update(running) { $0.move(to: .running) }
            }
            try await store.read { reader throws in
                func numbers(_ jobs: [JobRecord]) -> [Int64] { jobs.map(\.id.rawValue) }
                #expect(try reader.queuedHosts() == ["a:1", "b:1"])
                #expect(try reader.queuedHeads(host: "a:1", limit: 9).map(\.id.rawValue) == [2, 3, 1])
                #expect(try reader.queuedHeads(host: "a:1", limit: 1).map(\.id.rawValue) == [2])
                #expect(numbers(try reader.dueJobs(before: time(20), limit: 9)) == [6, 7])
                #expect(numbers(try reader.dueJobs(before: time(99), limit: 1)) == [6])
                #expect(try reader.nextDue() == time(10))
                #expect(numbers(try reader.runningJobs()) == [9])
                let fingerprint = newJob("same").urlFingerprint
                #expect(
                    numbers(
                        try reader.sameTransfer(fingerprint: fingerprint, directory: "/data", output: nil)
                    )
                        == [7, 6, 5]
                )
                #expect(try reader.sameTransfer(fingerprint: fingerprint, directory: "/", output: nil) == [])
                #expect(
                    try reader.sameTransfer(fingerprint: fingerprint, directory: "/data", output: "/data/x")
                        == []
                )
            }
        }
    }

    @Test func `history is trimmed oldest first, and only what is final`() async throws {
        try await withStore { store in
            try await store.write { transaction throws in
                for (index, state) in [.completed, .failed, .cancelled, .completed, .queued].enumerated()
                    as EnumeratedSequence<[JobState]>
                {
                    let id = try transaction.insert(newJob())
                    try transaction.update(id) { $0.move(to: state, at: time(Int64(10 - index))) }
                    try transaction.append(
                        event: "added",
                        job: id,
                        state: nil,
                        reason: nil,
                        message: nil,
                        at: time(0)
                    )
                }
                try transaction.append(
                    event: "removed",
                    job: JobID(rawValue: 99),
                    state: nil,
                    reason: nil,
                    message: nil,
                    at: time(1)
                )
            }
            func left() async throws -> [Int64] {
                try await store.read { try $0.jobs(JobFilter()).map(\.id.rawValue) }
            }
            #expect(try await store.write { try $0.trim(endedBefore: time(10), limit: 1) } == 1)
            #expect(try await left() == [1, 2, 3, 5])
            #expect(try await store.write { try $0.trim(endedBefore: time(10), limit: 9) } == 1)
            #expect(try await left() == [1, 2, 5])
            let events = try await store.read { try $0.events(since: 0, limit: 99) }
            #expect(events.map(\.job?.rawValue) == [1, 2, 5])
        }
    }
}
