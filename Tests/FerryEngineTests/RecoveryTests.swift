import FerryCore
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

/// What a service does before anything runs.
@Suite(.timeLimit(.minutes(5))) struct RecoveryTests {
    private static let object = TestObject(size: 1_000_000, seed: 43)

    /// A way in which a folder cannot be used, and back.
    enum Trouble: Sendable, CaseIterable {
        /// A link that leads to itself.
        case loop
        /// A name that is too long for the file system once it is a link to one.
        case longName

        var target: String {
            switch self {
            case .loop: "data"
            case .longName: String(repeating: "n", count: 300)
            }
        }
    }

    @Test(arguments: Trouble.allCases, [Cleanup.cancel, Cleanup.unlink])
    func `a clean-up whose folder cannot be used keeps no service from starting`(
        trouble: Trouble,
        kind: String
    ) async throws {
        let server = try ScriptedServer { request, _ in
            let reply = Reply.object(Self.object, for: request)
            return request.path == "/file.bin" ? reply.with(.cut(after: 300_000)) : reply
        }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            _ = try await scope.next(id, .waiting)
            let partial = FileName.partial(name: "file.bin", job: id, generation: 1)
            #expect(try scope.names == [partial])
            // What is committed before the partial goes; a crash has come between.
            let now = scope.now
            try await scope.store.write { transaction in
                let file = try #require(try transaction.file(id))
                let detail = kind == Cleanup.cancel ? "" : try Cleanup.detail(file)
                _ = try transaction.add(cleanup: kind, job: id, detail: detail, at: now)
            }
            let data = scope.folder.file("data")
            try #require(rename(data, scope.folder.file("away")) == 0)
            try #require(symlink(trouble.target, data) == 0)

            try await scope.restart()
            #expect(try await scope.job(id).state == .waiting)
            #expect(try await scope.store.read { try $0.cleanups() }.map(\.kind) == [kind])
            let other = try scope.folder.makeFolder("other")
            let job = try await scope.fetch(server.url("other.bin")) { $0.directory = other }
            #expect(job.state == .completed, "\(job.message ?? "")")

            try #require(unlink(data) == 0)
            try #require(rename(scope.folder.file("away"), data) == 0)
            try await scope.restart()
            #expect(try scope.names.isEmpty)
            #expect(try await scope.store.read { try $0.cleanups() }.isEmpty)
            if kind == Cleanup.cancel { #expect(try await scope.job(id).state == .cancelled) }
        }
    }
}
