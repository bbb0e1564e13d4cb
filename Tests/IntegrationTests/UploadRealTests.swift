import FerryCore
import FerryTestSupport
import Glibc
import Testing

/// `put` against servers that others have written.
@Suite(.serialized, .timeLimit(.minutes(3))) struct UploadRealTests {
    @Test(arguments: RealServer.Kind.allCases, [0, 1, 20_000_000])
    func `a WebDAV server keeps what was put`(kind: RealServer.Kind, size: Int64) async throws {
        try await withDesk { desk in
            let certificates = try TestCertificates.make(in: desk.folder.path)
            let server = try await RealServer(kind, in: desk.folder, certificates: certificates)
            defer { server.stop() }
            let object = TestObject(size: size, seed: 21)
            let path = desk.folder.file("a file.bin")
            try object.write(to: path)
            let result = try await desk.ferry("put", path, server.url("/dav/"))
            #expect(result.status == 0, "\(result.stderr)")
            #expect(result.stdout == server.url("/dav/a%20file.bin") + "\n")
            #expect(try object.matches("\(server.root)/dav/a file.bin") == nil)
            let job = try await desk.job()
            #expect(job["protocol"] == .string("put"))
            #expect(job["answer"]["status"] == .number(201))
        }
    }

    @Test(arguments: [
        [], ["--no-104"], ["--interop", "8"], ["--interop", "6"], ["--fail-after", "3000000"],
    ])
    func `a server of the draft keeps what was put`(options: [String]) async throws {
        try await withDesk { desk in
            let object = TestObject(size: 20_000_000, seed: 22)
            let path = desk.folder.file("a.bin")
            try object.write(to: path)
            let store = try desk.folder.makeFolder("store")
            let port = try freePort()
            let server = try ToolRunner.program("python3").start(
                [Fixtures.supportFile("rufh-server.py"), "\(port)", store] + options
            )
            defer { server.kill() }
            _ = try await server.waitForLine { $0.hasPrefix("ready") }
            let result = try await desk.ferry(
                "put",
                "--protocol",
                "ietf",
                path,
                "http://localhost:\(port)/files"
            )
            #expect(result.status == 0, "\(result.stderr)")
            let names = try desk.folder.names(in: "store")
            try #require(names.count == 1)
            #expect(try object.matches("\(store)/\(names[0])") == nil)
            #expect(try await desk.job()["protocol"] == .string("ietf"))
        }
    }
}
