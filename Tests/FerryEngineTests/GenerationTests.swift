import FerryCore
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

/// What becomes of a partial whose object is another one now, and of servers that only seem to have another one.
@Suite(.timeLimit(.minutes(5))) struct GenerationTests {
    private static let object = TestObject(size: 1_000_000, seed: 23)

    private static func names(_ id: JobID, _ generations: Int...) -> [String] {
        generations.map { FileName.partial(name: "file.bin", job: id, generation: $0) }
    }

    @Test(arguments: [false, true])
    func `a partial is kept until the new one has as much`(isRestarted: Bool) async throws {
        let new = Self.object.changed()
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 500_000)) },
            { .object(new, for: $0).with(.cut(after: 200_000)) },
            { .object(new, for: $0).with(.cut(after: 299_999)) },
            { .object(new, for: $0).with(.cut(after: 1)) },
            { .object(new, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            // The bytes that are there after each try, and the generations.
            for (durable, generations) in [
                (500_000, [1]), (200_000, [1, 2]), (499_999, [1, 2]), (500_000, [2]),
            ] as [(Int64, [Int])] {
                let job = try await scope.next(id, .waiting)
                #expect(job.bytesDurable == durable)
                #expect(try scope.names == generations.flatMap { Self.names(id, $0) })
                if generations == [1, 2] {
                    let old = Self.names(id, 1)[0]
                    #expect(try Self.object.matchesStart(scope.folder.file("data/\(old)")) == nil)
                }
                if isRestarted { try await scope.restart() }
                #expect(try scope.names == generations.flatMap { Self.names(id, $0) })
                try await scope.passWait(of: job)
            }
            let job = try await scope.end(of: id)
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.restarts == 1)
            #expect(server.ranges == [nil, 500_000, 200_000, 499_999, 500_000])
            #expect(try new.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
            #expect(try await scope.store.read { try $0.files(id).count + $0.cleanups().count } <= 1)
        }
    }

    @Test(arguments: [false, true])
    func `nothing is left when the new object is whole and shorter`(isRestarted: Bool) async throws {
        let new = Self.object.changed(size: 300_000)
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 500_000)) },
            { .object(new, for: $0).with(.cut(after: 200_000)) },
            { .object(new, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.passWait(of: scope.next(id, .waiting))
            let waiting = try await scope.next(id, .waiting)
            #expect(try scope.names == Self.names(id, 1, 2))
            if isRestarted { try await scope.restart() }
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(try new.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test(arguments: [false, true])
    func `an object that comes back is gone on with where it was left`(isRestarted: Bool) async throws {
        let new = Self.object.changed()
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 500_000)) },
            { .object(new, for: $0).with(.cut(after: 200_000)) },
            // It asks for the rest of the new one, and gets all of the old one: it asks for the rest of that.
            { .object(Self.object, for: $0) },
            { .object(Self.object, for: $0).with(.cut(after: 100_000)) },
            { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            for durable in [500_000, 200_000, 600_000] as [Int64] {
                let job = try await scope.next(id, .waiting)
                #expect(job.bytesDurable == durable)
                if isRestarted { try await scope.restart() }
                try await scope.passWait(of: job)
            }
            let job = try await scope.end(of: id)
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.restarts == 2)
            #expect(server.ranges == [nil, 500_000, 200_000, 500_000, 600_000])
            #expect(
                server.requests.map { $0.header("If-Range") } == [
                    nil, Self.object.etag, new.etag, Self.object.etag, Self.object.etag,
                ]
            )
            #expect(try await scope.events(of: id, "restarted").map(\.reason) == ["changed", "changed-back"])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
            #expect(try await scope.store.read { try $0.files(id).count + $0.cleanups().count } <= 1)
        }
    }

    @Test(arguments: [false, true])
    func `an object that is seen and brings no byte costs none`(isRestarted: Bool) async throws {
        let new = Self.object.changed()
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 500_000)) },
            { .object(new, for: $0, quirks: [.contentCoding("gzip")]).with(.cut(after: 0)) },
            // Nothing is there of the new one: it asks for all, and gets the old one.
            { .object(Self.object, for: $0) },
            { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            for durable in [500_000, 0] as [Int64] {
                let job = try await scope.next(id, .waiting)
                #expect(job.bytesDurable == durable)
                if isRestarted { try await scope.restart() }
                try await scope.passWait(of: job)
            }
            let job = try await scope.end(of: id)
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.contentEncoding == nil)
            #expect(server.ranges == [nil, 500_000, nil, 500_000])
            #expect(try await scope.events(of: id, "restarted").map(\.reason) == ["encoded", "changed-back"])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test func `a shorter object that ends where the overlap begins is another one`() async throws {
        let new = Self.object.changed(size: 500_000 - ResumePlan.overlapBytes)
        let nameless: Quirks = [.noTag, .noLastModified, .chunked]
        let server = try script([
            { .object(Self.object, for: $0, quirks: nameless).with(.cut(after: 500_000)) },
            { .object(new, for: $0, quirks: nameless) },
        ])
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(server.ranges == [nil, new.size, nil])
            #expect(try new.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test(arguments: [true, false])
    func `an object as long as what is there is compared`(isSame: Bool) async throws {
        let short = TestObject(size: 500_000, seed: Self.object.seed, version: Self.object.version)
        let now = isSame ? short : Self.object.changed(size: 500_000)
        let server = try script([
            {
                .object(Self.object, for: $0, quirks: [.noLastModified, .chunked])
                    .with(.cut(after: 500_000))
            },
            { _ in Reply(416, headers: ["Content-Range: bytes */500000"]) },
            { .object(now, for: $0, quirks: [.noLastModified, .noTag, .ifRangeIgnored]) },
        ])
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            let overlap = 500_000 - ResumePlan.overlapBytes
            #expect(server.ranges == [nil, 500_000, overlap] + (isSame ? [] : [nil]))
            #expect(try now.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test(arguments: ["file", "folder", "link", "pipe"])
    func `what another queue has left does not stand in the way`(kind: String) async throws {
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 300_000)) }, { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let names = Self.names(JobID(rawValue: 1), 1, 2)
            switch kind {
            case "file": try scope.folder.write("data/\(names[0])", "theirs")
            case "folder": _ = try scope.folder.makeFolder("data/\(names[0])")
            case "link": try #require(symlink("nowhere", scope.folder.file("data/\(names[0])")) == 0)
            default: try #require(mkfifo(scope.folder.file("data/\(names[0])"), 0o600) == 0)
            }
            let id = try await scope.add(server.url("file.bin"))
            let waiting = try await scope.next(id, .waiting)
            #expect(try scope.names == names)
            try await scope.restart()
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, 300_000])
            #expect(try scope.names == [names[0], "file.bin"])
            #expect(try kind != "file" || scope.folder.text("data/\(names[0])") == "theirs")
        }
    }

    @Test func `the newer partial stays until the older one that is gone on with has as much`() async throws {
        let new = Self.object.changed()
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 300_000)) },
            { .object(new, for: $0).with(.cut(after: 299_999)) },
            { .object(Self.object, for: $0) },
            { .object(Self.object, for: $0).with(.cut(after: 1)) },
            { .object(new, for: $0) },
            { .object(new, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            for names in [Self.names(id, 1), Self.names(id, 1, 2), Self.names(id, 1)] {
                let job = try await scope.next(id, .waiting)
                #expect(try scope.names == names)
                try await scope.passWait(of: job)
            }
            let job = try await scope.end(of: id)
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(try new.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test func `an older partial that was changed is not gone on with`() async throws {
        let new = Self.object.changed()
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 500_000)) },
            { .object(new, for: $0).with(.cut(after: 200_000)) },
            { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.passWait(of: scope.next(id, .waiting))
            let waiting = try await scope.next(id, .waiting)
            try Self.object.changed().write(
                to: scope.folder.file("data/\(Self.names(id, 1)[0])"),
                length: 500_000
            )
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(server.ranges == [nil, 500_000, 200_000])
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `a server that flips at each request is given up`() async throws {
        let new = Self.object.changed()
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(number % 2 == 0 ? Self.object : new, for: request)
            return number < 2 ? reply.with(.cut(after: number == 0 ? 300_000 : 200_000)) : reply
        }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            let job = try await scope.end(of: id)
            #expect(job.failureReason == .changed)
            #expect(job.restarts == DownloadTransfer.restartLimit)
        }
    }

    @Test func `a partial that a crash kept from being removed goes at the next start`() async throws {
        let new = Self.object.changed()
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 500_000)) },
            { .object(new, for: $0).with(.cut(after: 200_000)) },
            { .object(new, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.passWait(of: scope.next(id, .waiting))
            let waiting = try await scope.next(id, .waiting)
            // What is committed when the new one has overtaken; the removal would follow.
            let now = scope.now
            try await scope.store.write { transaction in
                try Cleanup.retireOvertaken(by: 2, durable: 500_000, of: id, in: transaction, at: now)
            }
            #expect(try scope.names == Self.names(id, 1, 2))
            try await scope.restart()
            #expect(try scope.names == Self.names(id, 2))
            #expect(try await scope.store.read { try $0.cleanups() }.isEmpty)
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test func `a cancelled job leaves no generation`() async throws {
        let new = Self.object.changed()
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: 500_000)) },
            { .object(new, for: $0).with(.cut(after: 200_000)) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.passWait(of: scope.next(id, .waiting))
            _ = try await scope.next(id, .waiting)
            #expect(try scope.names == Self.names(id, 1, 2))
            try await scope.steer(.cancel(keepPartial: false), id)
            #expect(try await scope.end(of: id).state == .cancelled)
            #expect(try scope.names.isEmpty)
        }
    }

    @Test func `bytes that only an overlap can tell from the old ones start a new generation`() async throws {
        let new = Self.object.changed()
        let bare: Quirks = [.noTag, .noLastModified]
        let server = try script([
            { .object(Self.object, for: $0, quirks: bare).with(.cut(after: 500_000)) },
            { .object(new, for: $0, quirks: bare) },
            { .object(new, for: $0, quirks: bare).with(.cut(after: 200_000)) },
            { .object(new, for: $0, quirks: bare) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            try await scope.passWait(of: scope.next(id, .waiting))
            let waiting = try await scope.next(id, .waiting)
            #expect(try scope.names == Self.names(id, 1, 2))
            #expect(waiting.restarts == 1)
            try await scope.passWait(of: waiting)
            let job = try await scope.end(of: id)
            #expect(job.state == .completed)
            let overlap = ResumePlan.overlapBytes
            #expect(server.ranges == [nil, 500_000 - overlap, nil, 200_000 - overlap])
            #expect(try new.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    // MARK: If-Range

    @Test(arguments: [false, true])
    func `a server that stumbles over If-Range is asked without it from then on`(
        isRestarted: Bool
    ) async throws {
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request, quirks: [.fullWithIfRange])
            return number == 0 ? reply.with(.cut(after: 300_000)) : reply
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.restarts == 0)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(server.ranges == [nil, 300_000, 300_000])
            #expect(server.requests.map { $0.header("If-Range") } == [nil, Self.object.etag, nil])

            if isRestarted { try await scope.restart() }
            _ = try await scope.fetch(server.url("other.bin"))
            #expect(try Self.object.matches(scope.folder.file("data/other.bin")) == nil)
            let others = server.requests(for: "/other.bin")
            #expect(others.map(\.rangeStart) == [nil, 300_000])
            #expect(others.allSatisfy { $0.header("If-Range") == nil })
        }
    }

    @Test func `without If-Range a changed object is still seen`() async throws {
        let new = Self.object.changed()
        let server = try ScriptedServer { request, number in
            let isNew = request.path == "/other.bin" && number > 0
            let reply = Reply.object(isNew ? new : Self.object, for: request, quirks: [.fullWithIfRange])
            return number == 0 ? reply.with(.cut(after: 300_000)) : reply
        }
        try await withEngine { scope in
            _ = try await scope.fetch(server.url("file.bin"))
            let job = try await scope.fetch(server.url("other.bin"))
            #expect(job.state == .completed)
            #expect(try new.matches(scope.folder.file("data/other.bin")) == nil)
            #expect(server.requests(for: "/other.bin").map(\.rangeStart) == [nil, 300_000, nil])
        }
    }

    @Test func `a server without ranges is not taken for one that stumbles`() async throws {
        let server = try ScriptedServer { request, number in
            let isWhole = request.path == "/file.bin"
            let reply = Reply.object(Self.object, for: request, quirks: isWhole ? [.rangesIgnored] : [])
            return number == 0 ? reply.with(.cut(after: 300_000)) : reply
        }
        try await withEngine { scope in
            _ = try await scope.fetch(server.url("file.bin"))
            _ = try await scope.fetch(server.url("other.bin"))
            #expect(
                server.requests(for: "/other.bin").map { $0.header("If-Range") } == [nil, Self.object.etag]
            )
        }
    }
}
