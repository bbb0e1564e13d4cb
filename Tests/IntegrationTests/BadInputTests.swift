import FerryTestSupport
import Glibc
import Testing

/// Wrong use: each gives one sentence and its status, and neither queue nor folder is touched.
@Suite(.serialized, .timeLimit(.minutes(5))) struct BadInputTests {
    /// A command line, in which `URL` stands for one that works, and what must be said.
    struct Misuse: Sendable {
        let arguments: [String]
        let status: Int32
        let says: [String]

        init(_ arguments: String..., status: Int32 = 2, says: String...) {
            self.arguments = arguments
            self.status = status
            self.says = says
        }
    }

    private static let misuses = [
        Misuse("get", says: "ferry get needs a URL"),
        Misuse("add", says: "ferry add needs a URL"),
        Misuse("get", "", says: "a URL is empty"),
        Misuse("add", "http://[bad/x", says: "http://[bad/x does not parse"),
        Misuse("add", "http://localhost:99999/x", says: "http://localhost:99999/x"),
        Misuse("add", "http://", says: "the URL http://"),
        Misuse("add", "http://loc al/x", says: "does not parse"),
        Misuse("add", "localhost/x", says: "has no scheme; write https://localhost/x"),
        Misuse("add", "ftp://localhost/x", says: "has the scheme ftp; only https and http are known"),
        Misuse("add", "file:///etc/passwd", says: "file:///etc/passwd"),
        Misuse("add", "http://example.org/x", says: "plain http to example.org is refused", "--allow-http"),
        Misuse("get", "http://10.1.2.3/x", says: "plain http to 10.1.2.3 is refused", "--allow-http"),
        Misuse("add", "URL", "ftp://localhost/x", says: "has the scheme ftp"),
        Misuse("get", "-d", "new/deep", "ftp://localhost/x", says: "has the scheme ftp"),
        Misuse("get", "-o", "x", "URL", "URL/2", says: "-o names one file, but there are 2 URLs"),
        Misuse("get", "-o", "x", "-o", "y", "URL", says: "only one -o"),
        Misuse("get", "-o", "-", "URL", says: "-o - is not possible"),
        Misuse("get", "-o", "x/", "URL", says: "names a folder"),
        Misuse("get", "--bogus", "URL", says: "unknown option '--bogus'"),
        Misuse("get", "-x", "URL", says: "unknown option '-x'"),
        Misuse("get", "--attempts", "many", "URL", says: "--attempts: 'many' is no whole number"),
        Misuse("get", "--if-exists", "ask", "URL", says: "--if-exists", "'ask'"),
        Misuse("get", "-H", "no colon", "URL", says: "-H"),
        Misuse("get", "-H", "Name: a\nInjected: b", "URL", says: "-H"),
        Misuse("get", "--cacert", "missing.pem", "URL", says: "--cacert", "missing.pem", "cannot be read"),
        Misuse("wait", "1", "--timeout", "soon", says: "--timeout", "'soon'"),
        Misuse("list", "--state", "lost", says: "--state", "'lost'"),
        Misuse("show", "one", says: "'one' is no number of a job"),
        Misuse("pause", says: "ferry pause needs numbers of jobs"),
        Misuse("frobnicate", says: "unknown command 'frobnicate'"),
        Misuse("get", "-d", "taken", "URL", status: 1, says: "taken", "is no folder"),
        Misuse("get", "-d", "taken/below", "URL", status: 1, says: "taken", "is no folder"),
        Misuse("get", "-o", "missing/x", "URL", status: 1, says: "missing", "does not exist"),
        Misuse("get", "-o", "taken", "URL", status: 1, says: "taken exists", "--if-exists overwrite"),
        Misuse("get", "-o", "home", "URL", status: 1, says: "it is a folder"),
        Misuse("show", "7", status: 1, says: "there is no job 7"),
        Misuse("wait", "7", status: 1, says: "job 7"),
        Misuse("cancel", "7", status: 1, says: "job 7"),
    ]

    @Test func `each misuse is told in one sentence, and nothing is lost or left`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { _, _ in Reply(200) }
            try desk.folder.write("taken", "mine")
            try await desk.success("add", "-o", "kept", server.url("kept"))
            let names = try desk.folder.names()
            for misuse in Self.misuses {
                let arguments = misuse.arguments.map { word in
                    word.hasPrefix("URL") ? server.url("file") + word.dropFirst(3) : word
                }
                let result = try await desk.ferry(arguments)
                expectRefusal(result, status: misuse.status, says: misuse.says, "\(misuse.arguments)")
            }
            #expect(try desk.folder.names() == names)
            #expect(try desk.folder.text("taken") == "mine")
            let jobs = try await desk.json("list", "--all")["jobs"].elements
            #expect(jobs.map { $0["id"] } == [.number(1)] && jobs.first?["state"] == .string("queued"))
            #expect(server.requests.isEmpty)
        }
    }
}
