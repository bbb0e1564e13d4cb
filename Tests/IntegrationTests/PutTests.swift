import FerryTestSupport
import Glibc
import Testing

/// `ferry put` with the built tools, as users send files, forms and what a pipe gives.
@Suite(.serialized, .timeLimit(.minutes(5))) struct PutTests {
    /// Takes every body and says where it is kept.
    private static func server() throws -> ScriptedServer {
        try ScriptedServer { request, _ in
            switch request.method {
            case "PUT", "POST", "PATCH": .text(201, "stored\n").with(header: "Location: /kept/7")
            default: .text(404, "no such method here")
            }
        }
    }

    @Test func `a form of three files arrives as two frameworks read it`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let sizes: [Int64] = [0, (1 << 20) - 1, (1 << 20) + 1]
            for size in sizes {
                try writeFile(desk.folder.file("f\(size)"), TestObject(size: size).bytes(0..<size))
            }
            let files = sizes.flatMap { ["--form-file", "file=\(desk.folder.file("f\($0)"))"] }
            let result = try await desk.ferry(
                ["put", "--form", "title=July"] + files + [server.url("form/")]
            )
            #expect(result.status == 0, "\(result.stderr)")
            #expect(result.lines == [server.url("kept/7")])
            let sent = server.requests.filter { $0.method == "POST" }
            #expect(sent.map(\.path) == ["/form/"])
            let request = try #require(sent.first)
            #expect(request.header("Content-Length") == "\(request.body.count)")
            #expect(request.header("Transfer-Encoding") == nil)
            try writeFile(desk.folder.file("body"), request.body)
            let type = try #require(request.header("Content-Type"))
            var found: [[FormReader.Part]] = []
            for reader in FormReader.allCases {
                found.append(try await reader.parts(of: desk.folder.file("body"), contentType: type))
            }
            #expect(found[0].count == 4)
            #expect(found[0] == found[1])
            #expect(try await folderIsEmpty(desk.stateFolder + "/spool"))
        }
    }

    @Test func `what a pipe gives is sent from a copy, which goes with the job`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let bytes = TestObject(size: 300_000).bytes(0..<300_000)
            let arguments = desk.arguments(["put", "-", server.url("stream")])
            let result = try await desk.tool.run(arguments, input: .bytes(bytes))
            #expect(result.status == 0 && result.lines == [server.url("kept/7")], "\(result.stderr)")
            #expect(server.requests.last?.body == bytes)
            #expect(try await folderIsEmpty(desk.stateFolder + "/spool"))
        }
    }

    @Test func `several files get their names, and show has the server's answer`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            try desk.folder.write("a b", "one")
            try desk.folder.write("c.txt", "two")
            let put = try await desk.ferry(
                "put",
                "--response",
                desk.folder.file("answer"),
                desk.folder.file("a b"),
                server.url("in/")
            )
            #expect(put.status == 0, "\(put.stderr)")
            #expect(try desk.folder.text("answer") == "stored\n")
            let both = try await desk.ferry(
                "put",
                "-q",
                desk.folder.file("a b"),
                desk.folder.file("c.txt"),
                server.url("in/")
            )
            #expect(both.status == 0 && both.stderr.isEmpty, "\(both.stderr)")
            #expect(
                Set(server.requests.filter { $0.method == "PUT" }.map(\.path)) == ["/in/a%20b", "/in/c.txt"]
            )
            let shown = try await desk.success("show", "1")
            #expect(shown.contains("answer:     status 201\n") && shown.contains("| stored\n"), "\(shown)")
            #expect(shown.contains("source:     \(desk.folder.file("a b"))\n"), "\(shown)")
        }
    }
}

/// Whether nothing is left in a folder; what goes after a job's end is waited for.
private func folderIsEmpty(_ path: String) async throws -> Bool {
    let end = ContinuousClock.now + .seconds(60)
    while ContinuousClock.now < end {
        guard let folder = opendir(path) else { throw TestSupportError("\(path) is missing") }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        if count == 2 { return true }
        await Task.yield()
    }
    return false
}
