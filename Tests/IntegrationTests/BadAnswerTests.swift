import FerryTestSupport
import Glibc
import Testing

/// Answers that are no file, or not as they should be: nothing wrong is ever saved.
@Suite(.serialized, .timeLimit(.minutes(5))) struct BadAnswerTests {
    private static let object = TestObject(size: 300_000, seed: 41)

    /// What a server answers, and how the job must end.
    struct Answer: Sendable {
        let name: String
        let reason: String
        let says: [String]
        let reply: @Sendable (RecordedRequest) -> Reply

        init(
            _ name: String,
            _ reason: String,
            says: String...,
            reply: @escaping @Sendable (RecordedRequest) -> Reply
        ) {
            self.name = name
            self.reason = reason
            self.says = says
            self.reply = reply
        }
    }

    private static let page = "<html><body>Please log in</body></html>"

    private static let answers = [
        Answer("404.bin", "not-found", says: "answered 404 (not found)") { _ in
            .text(404, page, type: "text/html")
        },
        Answer("410.bin", "not-found", says: "answered 410 (gone)") { _ in Reply(410) },
        Answer("403.bin", "forbidden", says: "answered 403 (forbidden)") { _ in
            .text(403, page, type: "text/html")
        },
        Answer("401.bin", "unauthorized", says: "answered 401") { _ in
            Reply(401, headers: ["WWW-Authenticate: Basic realm=\"x\""])
        },
        Answer("400.bin", "server", says: "answered 400 (bad request): no such bucket") { _ in
            .text(400, "no such bucket\nsecond line")
        },
        Answer("500.bin", "server", says: "answered 500 (internal server error)") { _ in
            .text(500, page, type: "text/html")
        },
        Answer("204.bin", "bad-response", says: "204") { _ in Reply(204) },
        Answer("part.bin", "bad-response", says: "part of the file without being asked") { _ in
            Reply(206, headers: ["Content-Range: bytes 0-99/300000"], body: .slice(object, 0..<100))
        },
        Answer("lengths.bin", "bad-response", says: "localhost") { _ in
            Reply(
                200,
                body: .slice(object, 0..<200),
                declaredLength: .raw(["Content-Length: 100", "Content-Length: 200"])
            )
        },
        Answer("portal.zip", "bad-response", says: "sent a web page instead of the file") { request in
            request.path == "/login"
                ? .text(200, page, type: "text/html; charset=utf-8") : .redirect(302, to: "/login")
        },
        Answer("circle.bin", "bad-response", says: "redirects in a circle") { _ in
            .redirect(302, to: "/circle.bin")
        },
        Answer("nowhere.bin", "bad-response", says: "redirects to nowhere") { _ in Reply(302) },
        Answer("plain.bin", "policy", says: "plain http to example.org is refused") { _ in
            .redirect(302, to: "http://example.org/file")
        },
        Answer("ftp.bin", "policy", says: "ftp") { _ in .redirect(302, to: "ftp://localhost/file") },
    ]

    @Test func `an answer that is no file fails the job and saves nothing`() async throws {
        let server = try ScriptedServer { request, _ in
            let name = request.path.dropFirst()
            let answer =
                Self.answers.first { $0.name == name } ?? Self.answers.first { $0.name == "portal.zip" }
            return answer?.reply(request) ?? Reply(404)
        }
        try await withDesk { desk in
            for (index, answer) in Self.answers.enumerated() {
                let url = server.url(answer.name)
                let result = try await desk.ferry("get", "--attempts", "1", "-d", desk.target(), url)
                let context: Comment = "\(answer.name): \(result.stderr)"
                #expect(result.status == 1 && result.stdout.isEmpty, context)
                let told = result.errorLines.filter { $0.hasPrefix("ferry: ") }
                let opening = "ferry: job \(index + 1) (\(url)) failed: \(answer.reason): "
                #expect(told.count == 1 && told.first?.hasPrefix(opening) == true, context)
                for part in answer.says { #expect(told.first?.contains(part) == true, context) }
                #expect(!result.stderr.contains("<html>") && !result.stderr.contains("second line"), context)
                let job = try await desk.job(index + 1)
                #expect(job["state"] == .string("failed") && job["reason"] == .string(answer.reason), context)
                #expect(try desk.files().isEmpty, context)
            }
        }
    }

    @Test func `doubtful answers are tried again, clear ones are not`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, number in
                request.path == "/404"
                    ? Reply(404) : number < 2 ? Reply(500) : .object(Self.object, for: request)
            }
            try await desk.success("get", "-d", desk.target(), server.url("500"))
            #expect(server.requests(for: "/500").count == 3)
            #expect(try Self.object.matches("\(desk.target())/500") == nil)
            #expect(try await desk.ferry("get", "-d", desk.target(), server.url("404")).status == 1)
            #expect(server.requests(for: "/404").count == 1)
        }
    }

    /// A label of more than 63 bytes is never asked for (RFC 1035 §2.3.4), so this needs no name server.
    ///
    /// The second try once failed for good with `unsupported`, since libcurl's handle could not be used again.
    @Test func `a name that is not found is looked up again`() async throws {
        try await withDesk { desk in
            let url = "https://\(String(repeating: "n", count: 70)).invalid/file"
            for id in 1...2 {
                let get = try await desk.ferry("get", "--attempts", "3", "-d", desk.target(), "\(url)\(id)")
                #expect(get.status == 1 && get.stderr.contains("could not be resolved"), "\(get.stderr)")
                #expect(get.errorLines.count { $0.contains("waiting (") } == 2, "\(get.stderr)")
                let job = try await desk.job(id)
                #expect(job["reason"] == .string("gave-up") && job["attempt"] == .number(3))
            }
        }
    }

    @Test func `a body without a length is complete, and it is told whether that is proved`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, _ in
                .object(
                    Self.object,
                    for: request,
                    quirks: request.path == "/close" ? [.noLength] : [.chunked]
                )
            }
            let target = try desk.target()
            for (index, name) in ["close", "chunked"].enumerated() {
                try await desk.success("get", "-d", target, server.url(name))
                #expect(try Self.object.matches("\(target)/\(name)") == nil)
                let job = try await desk.job(index + 1)
                #expect(job["length_proved"] == .bool(name == "chunked"))
                #expect(job["bytes_total"] == .number(300_000))
            }
            #expect(try await desk.success("show", "1").contains("length:     not proved"))
            #expect(try await !desk.success("show", "2").contains("not proved"))
        }
    }

    @Test func `bytes after the promised length are no part of the file`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { _, _ in
                Reply(200, body: .slice(Self.object, 0..<200_000), declaredLength: .lie(100_000))
            }
            let target = try desk.target()
            try await desk.success("get", "-d", target, server.url("file"))
            #expect(try TestObject(size: 100_000, seed: 41).matches("\(target)/file") == nil)
            #expect(try desk.files() == ["file"])
        }
    }

    @Test func `an empty file is a file`() async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { _, _ in Reply(200) }
            try await desk.success("get", "-d", desk.target(), server.url("file"))
            #expect(try desk.folder.read("files/file").isEmpty)
        }
    }

    /// A `Content-Disposition` and the name that it must give.
    @Test(arguments: [
        (#"attachment; filename="report.pdf""#, "report.pdf"),
        (#"attachment; filename="x"; filename*=UTF-8''na%C3%AFve.pdf"#, "naïve.pdf"),
        (#"attachment; filename="../../etc/passwd""#, "passwd"),
        (#"attachment; filename=".bashrc""#, "_.bashrc"),
        (#"attachment; filename="-rf""#, "_-rf"),
        (#"inline"#, "file.bin"),
    ])
    func `a server names a file but never a place`(field: String, name: String) async throws {
        try await withDesk { desk in
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request).with(header: "Content-Disposition: \(field)")
            }
            let target = try desk.target()
            #expect(
                try await desk.success("get", "-d", target, server.url("file.bin")) == "\(target)/\(name)\n"
            )
            #expect(try desk.files() == [name])
        }
    }
}
