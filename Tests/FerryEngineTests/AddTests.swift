import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// How requests become jobs.
@Suite(.timeLimit(.minutes(5))) struct AddTests {
    private static let object = TestObject(size: 10_000, seed: 4)

    private func server() throws -> ScriptedServer {
        try ScriptedServer { request, _ in .object(Self.object, for: request) }
    }

    @Test func `the same transfer twice is one job`() async throws {
        try await withEngine(mode: .attached) { scope in
            let url = "https://example.org/file.bin?k=1"
            let first = try await scope.engine.add([scope.request(url)], goOn: false)
            #expect(first.map(\.outcome) == [.new])
            let second = try await scope.engine.add(
                [
                    scope.request(url) { $0.priority = 5 },
                    scope.request(url) {
                        $0.headers = [RequestHeader(name: "A", value: "1")]
                        $0.attempts = 3
                    },
                    scope.request(url) { $0.output = scope.folder.file("data/other") },
                    scope.request("https://example.org/file.bin?k=2"),
                    scope.request("https://example.org/file.bin?k=1#part"),
                ],
                goOn: false
            )
            #expect(second.map(\.outcome) == [.same, .same, .new, .new, .same])
            #expect(second.map(\.job?.id.rawValue) == [1, 1, 2, 3, 1])
            #expect(second[0].note == "job 1 exists and keeps its own --priority")
            #expect(second[1].note == "job 1 exists and keeps its own --header, --attempts")
        }
    }

    @Test(arguments: [
        (JobState.paused, true, JobState.queued), (.paused, false, .paused), (.failed, true, .queued),
    ])
    func `a stopped transfer goes on where that is wanted`(_ state: JobState, _ goOn: Bool, _ then: JobState)
        async throws
    {
        try await withEngine(mode: .attached) { scope in
            let url = "https://example.org/file.bin"
            let id = try await scope.add(url)
            try await scope.put(id, into: state)
            let again = try await scope.engine.add([scope.request(url)], goOn: goOn)
            #expect(again.map(\.outcome) == [goOn ? .resumed : .same])
            #expect(again.first?.job?.id == id)
            #expect(try await scope.job(id).state == then)
        }
    }

    @Test func `what is complete is not fetched again as long as the file is as it was`() async throws {
        let server = try self.server()
        try await withEngine { scope in
            let url = server.url("file.bin")
            let job = try await scope.fetch(url)
            let path = scope.folder.file("data/file.bin")
            let again = try await scope.engine.add([scope.request(url)], goOn: false)
            #expect(again.map(\.outcome) == [.alreadyComplete])
            #expect(again.first?.job?.id == job.id)
            #expect(again.first?.note == "already complete: \(path)")
            #expect(server.requests.count == 1)
            try scope.folder.write("data/file.bin", "changed")
            let third = try await scope.fetch(url)
            #expect(third.path == scope.folder.file("data/file (2).bin"))
            #expect(try scope.folder.text("data/file.bin") == "changed")
        }
    }

    @Test(arguments: [
        ("", "is empty"), ("example.org/a", "has no scheme"), ("ftp://example.org/a", "has the scheme ftp"),
        ("http://example.org/a", "plain http to example.org is refused"),
        ("https://exa mple.org/", "does not parse"),
    ])
    func `one bad URL and nothing is queued`(_ url: String, _ reason: String) async throws {
        try await withEngine(mode: .attached) { scope in
            let requests = [scope.request("https://example.org/good"), scope.request(url)]
            let error = await #expect(throws: FerryError.self) {
                try await scope.engine.add(requests, goOn: false)
            }
            #expect(error?.code == .usage)
            #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
            let queued = try await scope.engine.jobs(JobFilter())
            #expect(queued.isEmpty)
        }
    }

    @Test func `plain http is taken with leave`() async throws {
        try await withEngine(mode: .attached) { scope in
            try await scope.add("http://example.org/a") { $0.allowHTTP = true }
            try await scope.add("http://127.0.0.1:9/a")
        }
    }

    @Test func `secrets of a URL are not shown`() async throws {
        try await withEngine(mode: .attached) { scope in
            let id = try await scope.add("https://me:pw@example.org/a?key=value#part")
            let job = try await scope.job(id)
            #expect(job.url == "https://example.org/a?key=***")
            #expect(job.host == "example.org:443")
            let request = try #require(try await scope.store.read { try $0.request(id) })
            #expect(request.url == "https://example.org/a?key=value")
            #expect(request.headers == [RequestHeader(name: "Authorization", value: "Basic bWU6cHc=")])
        }
    }

    @Test func `a folder that cannot be used is refused at once`() async throws {
        try await withEngine(mode: .attached) { scope in
            for change in [
                { $0.directory = "/nonexistent" }, { $0.output = "/nonexistent/file" },
            ] as [(inout JobRequest) -> Void] {
                let request = scope.request("https://example.org/a", change)
                let error = await #expect(throws: FerryError.self) {
                    try await scope.engine.add([request], goOn: false)
                }
                #expect(error?.code == .localIO)
                #expect(error?.exitStatus == .failed)
            }
        }
    }

    @Test func `two jobs do not share an output`() async throws {
        try await withEngine(mode: .attached) { scope in
            let output = scope.folder.file("data/out")
            let one = scope.request("https://example.org/1") { $0.output = output }
            let two = scope.request("https://example.org/2") { $0.output = output }
            let error = await #expect(throws: FerryError.self) {
                try await scope.engine.add([one, two], goOn: false)
            }
            #expect(error?.code == .exists)
            #expect(try await scope.engine.jobs(JobFilter()).isEmpty)
            let id = try await scope.add("https://example.org/1") { $0.output = output }
            await #expect(throws: FerryError.self) { try await scope.engine.add([two], goOn: false) }
            // A name is free again once its job is final.
            try await scope.steer(.cancel(keepPartial: false), id)
            #expect(try await scope.engine.add([two], goOn: false).map(\.outcome) == [.new])
        }
    }

    // MARK: --if-exists

    @Test(arguments: IfExists.allCases, [true, false])
    func `a name that is taken`(_ policy: IfExists, hasOutput: Bool) async throws {
        let server = try self.server()
        try await withEngine { scope in
            let path = try scope.folder.write("data/file.bin", "old")
            let request = scope.request(server.url("file.bin")) {
                $0.ifExists = policy
                $0.output = hasOutput ? path : nil
            }
            if hasOutput, policy == .fail {
                let error = await #expect(throws: FerryError.self) {
                    try await scope.engine.add([request], goOn: false)
                }
                #expect(error?.code == .exists)
                #expect(error?.exitStatus == .failed)
                #expect(server.requests.isEmpty)
                return
            }
            let added = try await scope.engine.add([request], goOn: false)
            if policy == .skip {
                #expect(added.map(\.outcome) == [.skipped])
                #expect(added.first?.job == nil)
                #expect(server.requests.isEmpty)
                return
            }
            try await scope.engine.runAdded()
            let job = try await scope.end(of: try #require(added.first?.job?.id))
            switch policy {
            case .fail:
                #expect(job.failureReason == .exists)
            case .rename:
                #expect(job.path == scope.folder.file("data/file (2).bin"))
                #expect(try Self.object.matches(scope.folder.file("data/file (2).bin")) == nil)
            case .overwrite, .update:
                #expect(job.path == path)
                #expect(try Self.object.matches(path) == nil)
                #expect(try scope.names == ["file.bin"])
                return
            case .skip:
                Issue.record("skip makes no job")
            }
            #expect(try scope.folder.text("data/file.bin") == "old")
        }
    }

    @Test func `update asks with what is known and leaves the same file alone`() async throws {
        let changed = Self.object.changed()
        let server = try ScriptedServer { request, number in
            let object = number < 2 ? Self.object : changed
            return request.header("If-None-Match") == object.etag
                ? Reply(304, headers: ["ETag: \(object.etag)"]) : .object(object, for: request)
        }
        try await withEngine { scope in
            let url = server.url("file.bin")
            let path = scope.folder.file("data/file.bin")
            _ = try await scope.fetch(url)
            let second = try await scope.fetch(url) { $0.ifExists = .update }
            #expect(second.state == .completed)
            #expect(second.path == path)
            #expect(second.message == "the file that is there is up to date")
            #expect(try Self.object.matches(path) == nil)
            let third = try await scope.fetch(url) { $0.ifExists = .update }
            #expect(third.state == .completed)
            #expect(try changed.matches(path) == nil)
            #expect(
                server.requests.map { $0.header("If-None-Match") } == [
                    nil, Self.object.etag, Self.object.etag,
                ]
            )
            // A file that somebody changed is compared by its date.
            try scope.folder.write("data/file.bin", "mine")
            _ = try await scope.fetch(url) { $0.ifExists = .update }
            #expect(server.requests.last?.header("If-None-Match") == nil)
            #expect(server.requests.last?.header("If-Modified-Since")?.hasSuffix(" GMT") == true)
            #expect(try changed.matches(path) == nil)
        }
    }
}
