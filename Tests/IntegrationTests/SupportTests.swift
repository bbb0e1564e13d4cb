import FerryTestSupport
import Glibc
import Testing

/// Runs curl in a folder and returns its exit status and what `-w` printed.
private func curl(_ folder: TemporaryFolder, _ arguments: String...) async throws -> ToolResult {
    try await ToolRunner(path: "/usr/bin/curl", environment: folder.environment, workingFolder: folder.path)
        .run(["-sS", "-D", "head", "-o", "body", "-w", "%{http_code}"] + arguments)
}

@Suite(.timeLimit(.minutes(2))) struct ScriptedServerTests {
    private static let object = TestObject(size: 300_001, seed: 7)

    @Test(arguments: [0, 1, 4095, 4096, 4097, 65_536, 300_001] as [Int64])
    func `a correct server sends the whole object`(size: Int64) async throws {
        try await withTemporaryFolder { folder in
            let object = TestObject(size: size)
            let server = try ScriptedServer { request, _ in .object(object, for: request) }
            let result = try await curl(folder, server.url("file?x=1"))
            #expect(result.stdout == "200")
            #expect(try object.matches(folder.file("body")) == nil)
            #expect(server.bytesSent == size)
            let request = try #require(server.requests.first)
            #expect(request.method == "GET" && request.path == "/file" && request.target == "/file?x=1")
            #expect(request.header("host") == "localhost:\(server.port)")
        }
    }

    @Test func `a partial file goes on where it ends`() async throws {
        try await withTemporaryFolder { folder in
            let server = try ScriptedServer { request, _ in .object(Self.object, for: request) }
            try Self.object.write(to: folder.file("body"), length: 100_000)
            let result = try await curl(folder, "-C", "-", server.url("file"))
            #expect(result.stdout == "206")
            #expect(server.requests.first?.rangeStart == 100_000)
            #expect(try Self.object.matches(folder.file("body")) == nil)
            #expect(server.bytesSent == 200_001)
        }
    }

    /// What curl sends beside the URL, the status that must come, and a part of the head that must be in it.
    struct Exchange: Sendable {
        let quirks: Quirks
        let arguments: [String]
        let status: String
        let head: String

        init(_ quirks: Quirks, _ fields: [String], _ status: String, _ head: String) {
            self.quirks = quirks
            self.arguments = fields.flatMap { ["-H", $0] }
            self.status = status
            self.head = head
        }
    }

    private static let tag = Self.object.etag
    private static let part = "Range: bytes=1000-"

    @Test(arguments: [
        Exchange([], [part], "206", "Content-Range: bytes 1000-300000/300001\r\n"),
        Exchange([], ["Range: bytes=10-19"], "206", "Content-Range: bytes 10-19/300001\r\n"),
        Exchange([], [part, "If-Range: \(tag)"], "206", "ETag: \(tag)\r\n"),
        Exchange([], [part, "If-Range: \"other\""], "200", "Content-Length: 300001\r\n"),
        Exchange(
            [],
            [part, "If-Range: \(object.lastModified)"],
            "206",
            "Last-Modified: \(object.lastModified)"
        ),
        Exchange([], [part, "If-Match: \"other\""], "412", "ETag: \(tag)\r\n"),
        Exchange([], [part, "If-Match: \(tag)"], "206", "Accept-Ranges: bytes\r\n"),
        Exchange([], ["Range: bytes=300001-"], "416", "Content-Range: bytes */300001\r\n"),
        Exchange([.unsatisfiableTotal(5)], ["Range: bytes=300001-"], "416", "bytes */5\r\n"),
        Exchange([.unsatisfiablePage(contentRange: false)], ["Range: bytes=300001-"], "416", "text/html\r\n"),
        Exchange([.rangesIgnored], [part], "200", "Content-Length: 300001\r\n"),
        Exchange([.fullAlthoughUnchanged], [part], "200", "Accept-Ranges: bytes\r\n"),
        Exchange([.earlyStart(by: 100)], [part], "206", "Content-Range: bytes 900-300000/300001\r\n"),
        Exchange([.lateStart(by: 100)], [part], "206", "Content-Range: bytes 1100-300000/300001\r\n"),
        Exchange([.shortEnd(by: 100)], [part], "206", "Content-Range: bytes 1000-299900/300001\r\n"),
        Exchange([.noContentRange], [part], "206", "Content-Length: 299001\r\n"),
        Exchange([.otherTotal(9)], [part], "206", "Content-Range: bytes 1000-300000/9\r\n"),
        Exchange([.unknownTotal], [part], "206", "Content-Range: bytes 1000-300000/*\r\n"),
        Exchange([.contentRange("odd")], [part], "206", "Content-Range: odd\r\n"),
        Exchange([.otherTag("\"x\"")], [part], "206", "ETag: \"x\"\r\n"),
        Exchange([.multipart], [part], "206", "Content-Type: multipart/byteranges; boundary=FERRY\r\n"),
        Exchange([.chunked], [part], "206", "Transfer-Encoding: chunked\r\n"),
        Exchange([.noLength], [part], "206", "Connection: close\r\n"),
        Exchange([.contentCoding("gzip")], [part], "206", "Content-Encoding: gzip\r\n"),
        Exchange([.weakTag], [part, "If-Range: \(tag)"], "200", "ETag: W/\(tag)\r\n"),
        Exchange([.newTagEachRequest], [], "200", "ETag: \"ferry-request-0\"\r\n"),
        Exchange([.ifRangeIgnored], [part, "If-Range: \"other\""], "206", "ETag: \(tag)\r\n"),
        Exchange([.ifMatchIgnored], [part, "If-Match: \"other\""], "206", "ETag: \(tag)\r\n"),
    ])
    func `a server of files answers as its quirks say`(exchange: Exchange) async throws {
        try await withTemporaryFolder { folder in
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request, quirks: exchange.quirks)
            }
            let result = try await ToolRunner(path: "/usr/bin/curl", workingFolder: folder.path)
                .run(
                    ["-sS", "-D", "head", "-o", "body", "-w", "%{http_code}", server.url("f")]
                        + exchange.arguments
                )
            #expect(result.status == 0, "\(result.stderr)")
            #expect(result.stdout == exchange.status)
            #expect(try folder.text("head").contains(exchange.head))
        }
    }

    @Test(arguments: [
        (Quirk.noTag, "ETag:"), (.noLastModified, "Last-Modified:"), (.noDate, "Date:"),
        (.noContentRange, "Content-Range:"), (.noValidatorOnPart, "ETag:"),
        (.rangesIgnored, "Accept-Ranges:"),
    ])
    func `a server of files leaves a field out`(quirk: Quirk, field: String) async throws {
        try await withTemporaryFolder { folder in
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request, quirks: [quirk])
            }
            _ = try await curl(folder, "-r", "5-", server.url("f"))
            #expect(try !folder.text("head").split(separator: "\r\n").contains { $0.hasPrefix(field) })
        }
    }

    /// A fault, curl's exit status (curl(1)), and the bytes that arrive.
    struct Damage: Sendable {
        let fault: Fault?
        var length = DeclaredLength.exact
        let status: Int32
        let bytes: Int?
    }

    @Test(arguments: [
        Damage(fault: .cut(after: 0), status: 18, bytes: 0),
        Damage(fault: .cut(after: 70_000), status: 18, bytes: 70_000),
        Damage(fault: .cut(after: 70_000), length: .chunked, status: 18, bytes: 70_000),
        Damage(fault: .cut(after: 70_000), length: .none, status: 0, bytes: 70_000),
        Damage(fault: .reset(after: 70_000), status: 56, bytes: 70_000),
        Damage(fault: .reset(after: 300_001), length: .none, status: 56, bytes: 300_001),
        Damage(fault: .truncateHead, status: 0, bytes: nil),
        Damage(fault: .closeBeforeHead, status: 52, bytes: nil),
        Damage(fault: nil, length: .lie(400_000), status: 18, bytes: 300_001),
        Damage(fault: nil, length: .lie(100), status: 0, bytes: 100),
        Damage(fault: nil, length: .raw(["Content-Length: 5", "Content-Length: 7"]), status: 0, bytes: 7),
        Damage(fault: .trickle(chunk: 100_000, every: .milliseconds(1)), status: 0, bytes: 300_001),
    ])
    func `a reply goes wrong as its fault says`(damage: Damage) async throws {
        try await withTemporaryFolder { folder in
            let server = try ScriptedServer { _, _ in
                Reply(
                    200,
                    body: .slice(Self.object, 0..<Self.object.size),
                    declaredLength: damage.length,
                    fault: damage.fault
                )
            }
            let result = try await curl(folder, server.url("file"))
            #expect(result.status == damage.status, "\(result.stderr)")
            if let bytes = damage.bytes {
                #expect(try (folder.exists("body") ? folder.read("body").count : 0) == bytes)
                if folder.exists("body") { #expect(try Self.object.matchesStart(folder.file("body")) == nil) }
            }
        }
    }

    @Test func `a stalled reply goes on when its gate opens`() async throws {
        try await withTemporaryFolder { folder in
            let gate = Gate()
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request).with(.stall(after: 50_000, until: gate))
            }
            async let result = curl(folder, server.url("file"))
            try await server.waitForBytesSent(50_000)
            #expect(server.bytesSent == 50_000)
            #expect(server.openConnections.now == 1)
            gate.open()
            #expect(try await result.status == 0)
            #expect(try Self.object.matches(folder.file("body")) == nil)
        }
    }

    @Test func `a stalled reply ends when the server stops`() async throws {
        try await withTemporaryFolder { folder in
            let server = try ScriptedServer { request, _ in
                .object(Self.object, for: request).with(.stall(after: 50_000))
            }
            async let result = curl(folder, server.url("file"))
            try await server.waitForBytesSent(50_000)
            server.stop()
            #expect(try await result.status == 18)
            #expect(try await curl(folder, server.url("file")).status == 7)
        }
    }

    @Test func `a held reply lets another pass`() async throws {
        try await withTemporaryFolder { folder in
            let gate = Gate()
            let server = try ScriptedServer { request, number in
                let reply = Reply.text(200, "\(request.path) \(number)")
                return request.path == "/held" ? reply.with(.hold(gate)) : reply
            }
            let tool = ToolRunner(path: "/usr/bin/curl")
            async let held = tool.run(["-sS", server.url("held")])
            _ = try await server.waitForRequests(1)
            #expect(
                try await tool.run(["-sS", server.url("free"), server.url("free")]).stdout == "/free 0/free 1"
            )
            gate.open()
            #expect(try await held.stdout == "/held 0")
            #expect(server.requests.map(\.connection) == [0, 1, 1])
            #expect(server.requests.map(\.index) == [0, 1, 2])
            #expect(server.requests(for: "/free").count == 2)
            #expect(server.openConnections.most == 2)
        }
    }

    @Test func `a request's body is recorded`() async throws {
        try await withTemporaryFolder { folder in
            let server = try ScriptedServer { _, _ in Reply(204) }
            try TestObject(size: 2_000_000).write(to: folder.file("source"))
            let result = try await curl(
                folder,
                "-H",
                "Expect: 100-continue",
                "-T",
                "source",
                server.url("up")
            )
            #expect(result.stdout == "204")
            let request = try #require(server.requests.first)
            #expect(request.method == "PUT" && request.bodyLength == 2_000_000)
            #expect(request.body == TestObject(size: 2_000_000).bytes(0..<2_000_000))
        }
    }

    @Test func `a body can be a file and a redirect leads to it`() async throws {
        try await withTemporaryFolder { folder in
            let path = try folder.write("source", "from a file")
            let server = try ScriptedServer { request, _ in
                request.path == "/old" ? .redirect(to: "/new") : Reply(200, body: .file(path))
            }
            #expect(try await curl(folder, "-L", server.url("old")).stdout == "200")
            #expect(try folder.text("body") == "from a file")
        }
    }

    @Test func `waiting for a request that never comes fails with a sentence`() async throws {
        let server = try ScriptedServer { _, _ in Reply(200) }
        await #expect(throws: TestSupportError.self) {
            try await server.waitForRequests(1, timeout: .milliseconds(1))
        }
    }
}

@Suite(.timeLimit(.minutes(2))) struct TLSTests {
    @Test func `a scripted server speaks TLS with its own authority`() async throws {
        try await withTemporaryFolder { folder in
            let tls = try TestCertificates.make(in: folder.path)
            let object = TestObject(size: 3_000_000)
            let server = try ScriptedServer(tls: tls) { request, _ in .object(object, for: request) }
            #expect(server.url("file").hasPrefix("https://localhost:"))
            let result = try await curl(folder, "--cacert", tls.authorityPath, server.url("file"))
            #expect(result.status == 0, "\(result.stderr)")
            #expect(try object.matches(folder.file("body")) == nil)
            #expect(try await curl(folder, server.url("file")).status == 60)
        }
    }

    /// How a reply's connection ends; curl cannot tell, it takes a missing close_notify for an end.
    struct TLSEnd: Sendable {
        let fault: Fault?
        let bytes: Int
        /// What `openssl s_client` says; nothing after a close_notify.
        let complaint: String
    }

    @Test(arguments: [
        TLSEnd(fault: nil, bytes: 400_000, complaint: ""),
        TLSEnd(fault: .noCloseNotify, bytes: 400_000, complaint: "unexpected eof while reading"),
        TLSEnd(fault: .cut(after: 70_000), bytes: 70_000, complaint: ""),
        TLSEnd(fault: .reset(after: 70_000), bytes: 70_000, complaint: "errno=104"),
    ])
    func `a TLS connection ends as the reply's fault says`(end: TLSEnd) async throws {
        try await withTemporaryFolder { folder in
            let tls = try TestCertificates.make(in: folder.path)
            let server = try ScriptedServer(tls: tls) { _, _ in
                Reply(200, body: .generated(size: 400_000, seed: 3), declaredLength: .none, fault: end.fault)
            }
            let result = try await ToolRunner.program("openssl").run(
                [
                    "s_client", "-quiet", "-verify_quiet", "-servername", "localhost", "-CAfile",
                    tls.authorityPath,
                ]
                    + ["-connect", "127.0.0.1:\(server.port)"],
                input: .text("GET / HTTP/1.1\r\n\r\n")
            )
            let separator = try #require(result.stdoutBytes.firstRange(of: Array("\r\n\r\n".utf8)))
            #expect(result.stdoutBytes.count - separator.upperBound == end.bytes)
            let isAsExpected =
                end.complaint.isEmpty ? result.stderr.isEmpty : result.stderr.contains(end.complaint)
            #expect(isAsExpected, "\(result.stderr)")
        }
    }
}

@Suite struct TestObjectTests {
    @Test func `content is the same at whatever offset it is asked for`() {
        let object = TestObject(size: 20_000, seed: 5)
        let all = object.bytes(0..<20_000)
        for start in [0, 1, 7, 8, 9, 4095, 4096, 4097, 12_345] as [Int64] {
            #expect(object.bytes(start..<20_000) == Array(all[Int(start)...]))
        }
        #expect(object.bytes(0..<20_000) != object.changed().bytes(0..<20_000))
        #expect(object.etag != object.changed().etag)
        #expect(object.bytes(0..<4096) != object.bytes(4096..<8192))
    }

    @Test func `content far out is computed at once`() {
        let object = TestObject(size: 100 << 30)
        #expect(object.bytes((100 << 30) - 5..<(100 << 30)).count == 5)
    }

    @Test(arguments: [0, 1, 4096, 262_143, 262_144, 262_145] as [Int64])
    func `a comparison names the first wrong offset`(offset: Int64) throws {
        try withTemporaryFolder { folder in
            let object = TestObject(size: 300_000)
            let path = folder.file("file")
            try object.write(to: path)
            #expect(try object.matches(path) == nil)
            let descriptor = open(path, O_WRONLY)
            defer { close(descriptor) }
            var wrong = ~object.bytes(offset..<(offset + 1))[0]
            #expect(pwrite(descriptor, &wrong, 1, off_t(offset)) == 1)
            #expect(try object.matches(path)?.offset == offset)
            #expect(try object.matchesStart(path)?.offset == offset)
            #expect(ftruncate(descriptor, off_t(offset)) == 0)
            #expect(try object.matches(path)?.offset == offset)
            #expect(try object.matchesStart(path) == nil)
        }
    }

    @Test func `a file that is too long differs at the object's end`() throws {
        try withTemporaryFolder { folder in
            let object = TestObject(size: 10)
            let path = folder.file("file")
            try object.write(to: path)
            #expect(truncate(path, 11) == 0)
            #expect(try object.matches(path)?.offset == 10)
            #expect(try object.matchesStart(path)?.offset == 10)
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct ManualClockTests {
    @Test func `sleepers wake when the clock has moved far enough`() async throws {
        let clock = ManualClock()
        let woken = Watched<[Int]>([])
        for seconds in [1, 2, 3] {
            Task {
                try await clock.sleep(for: .seconds(seconds))
                woken.update { $0.append(seconds) }
            }
        }
        try await clock.waitForSleepers(3)
        #expect(clock.wakeTimes.map(\.offset) == [.seconds(1), .seconds(2), .seconds(3)])
        clock.advance(by: .milliseconds(999))
        #expect(clock.wakeTimes.count == 3)
        clock.advance(by: .milliseconds(1001))
        let early = try await woken.wait(for: "two sleepers") { $0.count == 2 ? $0.sorted() : nil }
        #expect(early == [1, 2])
        #expect(clock.wakeTimes.count == 1)
        clock.advance(by: .seconds(1))
        try await woken.wait(for: "the last sleeper") { $0.count == 3 ? () : nil }
    }

    @Test func `a cancelled sleeper leaves the clock`() async throws {
        let clock = ManualClock()
        let sleeper = Task { try await clock.sleep(for: .seconds(1)) }
        try await clock.waitForSleepers(1)
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
        #expect(clock.wakeTimes.isEmpty)
    }

    @Test func `an open gate holds nobody`() async throws {
        let gate = Gate()
        let passed = Task { try await gate.wait() }
        #expect(!gate.isOpen)
        gate.open()
        try await passed.value
        try await gate.wait()
        #expect(gate.waitBlocking(timeout: .zero))
        #expect(!Gate().waitBlocking(timeout: .milliseconds(1)))
    }
}

@Suite(.timeLimit(.minutes(5))) struct ToolRunnerTests {
    private let shell = ToolRunner(path: "/bin/sh")

    @Test func `both streams are read however much comes`() async throws {
        let script = "head -c 1000000 /dev/zero; head -c 900000 /dev/zero >&2; exit 3"
        let result = try await self.shell.run(["-c", script])
        #expect(result.status == 3)
        #expect(result.stdoutBytes.count == 1_000_000 && result.stderrBytes.count == 900_000)
    }

    @Test func `a program gets its input, folder and environment`() async throws {
        try await withTemporaryFolder { folder in
            var tool = self.shell
            tool.environment = folder.environment
            tool.workingFolder = folder.path
            let result = try await tool.with(["MORE": "x y"]).run(
                ["-c", "cat; pwd; echo $HOME $MORE"],
                input: .text("in ")
            )
            #expect(result.stdout == "in \(folder.path)\n\(folder.path)/home x y\n")
        }
    }

    @Test func `a program that runs too long is killed with its children`() async throws {
        let running = try self.shell.start(["-c", "sleep 600 & echo ready; wait"])
        _ = try await running.waitForLine()
        await #expect(throws: TestSupportError.self) {
            try await running.waitForExit(timeout: .milliseconds(1))
        }
        // The output ends only when the child, which holds it open too, is gone.
        let result = try await running.waitForExit()
        #expect(result.ending == .signalled(SIGKILL))
    }

    @Test func `lines are awaited and signals arrive`() async throws {
        let running = try self.shell.start(
            ["-c", "trap 'echo got it; exit 5' TERM; echo ready; read line"],
            input: .keptOpen
        )
        #expect(try await running.waitForLine { $0.hasPrefix("re") } == "ready")
        running.kill(SIGTERM)
        #expect(try await running.waitForLine { $0.hasPrefix("got") } == "got it")
        #expect(try await running.waitForExit().status == 5)
        await #expect(throws: TestSupportError.self) { try await running.waitForLine { $0 == "never" } }
    }

    @Test func `a program ends when its input is closed`() async throws {
        let running = try ToolRunner(path: "/bin/cat").start([], input: .keptOpen)
        running.closeInput()
        #expect(try await running.waitForExit().status == 0)
    }

    @Test func `a missing program is an error with a sentence`() {
        #expect(throws: TestSupportError.self) { try ToolRunner(path: "/nonexistent/tool").start([]) }
        #expect {
            try ToolRunner.program("no-such-program", package: "some-package")
        } throws: { "\($0)".contains("apt-get install some-package") }
    }

    @Test func `the built tools are found beside the test binary`() throws {
        try withTemporaryFolder { folder in
            let ferry = try ToolRunner.product("ferry", in: folder)
            #expect(ferry.path.hasSuffix("/ferry"))
            #expect(ferry.workingFolder == folder.path)
            #expect(ferry.environment?["XDG_STATE_HOME"] == folder.file("state"))
        }
        #expect(access("\(Fixtures.projectFolder)/Package.swift", R_OK) == 0)
    }

    @Test func `a folder is there for its test alone`() throws {
        let path = try withTemporaryFolder { folder in
            try folder.makeFolder("inner/", mode: 0o000)
            try folder.write("state/file", "x")
            #expect(try folder.names() == ["cache", "config", "data", "home", "inner", "run", "state"])
            #expect(try folder.text("state/file") == "x")
            return folder.path
        }
        #expect(access(path, F_OK) != 0)
    }
}

@Suite(.timeLimit(.minutes(5))) struct ServiceProbeTests {
    private static let service = """
        import os, socket, sys
        server = socket.socket(socket.AF_UNIX)
        server.bind(sys.argv[1]); server.listen(); print("ready", flush=True)
        while True:
            client, _ = server.accept()
            client.sendall(sys.argv[2].replace("PID", str(os.getpid())).encode() + b"\\n")
            client.close()
        """

    @Test func `the process behind a socket is found and killed`() async throws {
        try await withTemporaryFolder { folder in
            let probe = ServiceProbe(stateFolder: folder.path)
            #expect(try probe.pid() == nil)
            let service = try ToolRunner.program("python3").start(
                ["-c", Self.service, probe.socketPath, #"{"hello":{"protocol_version":1,"pid":PID}}"#]
            )
            _ = try await service.waitForLine()
            #expect(try probe.pid() == service.pid)
            #expect(try probe.kill() == service.pid)
            #expect(try await service.waitForExit().ending == .signalled(SIGKILL))
            #expect(try probe.kill() == nil)
        }
    }

    @Test func `another greeting is an error`() async throws {
        try await withTemporaryFolder { folder in
            let probe = ServiceProbe(stateFolder: folder.path)
            let service = try ToolRunner.program("python3").start([
                "-c", Self.service, probe.socketPath, "220 mail",
            ])
            _ = try await service.waitForLine()
            #expect { try probe.pid() } throws: { "\($0)".contains("220 mail") }
        }
    }
}

@Suite(.timeLimit(.minutes(2))) struct RealServerTests {
    @Test(arguments: RealServer.Kind.allCases)
    func `a real server answers in each of its ways`(kind: RealServer.Kind) async throws {
        try await withTemporaryFolder { folder in
            let tls = try TestCertificates.make(in: folder.path)
            let server = try await RealServer(kind, in: folder, certificates: tls)
            let object = TestObject(size: 200_000)
            try object.write(to: "\(server.root)/file")

            #expect(try await curl(folder, server.url("/file")).stdout == "200")
            #expect(try object.matches(folder.file("body")) == nil)
            #expect(try await curl(folder, "-r", "100-", server.url("/file")).stdout == "206")
            #expect(try await curl(folder, "-r", "100-", server.url("/slow/file")).stdout == "206")
            #expect(try await curl(folder, "-r", "100-", server.url("/norange/file")).stdout == "200")
            #expect(
                try await curl(folder, "-H", "Accept-Encoding: gzip", server.url("/gz/file")).stdout == "200"
            )
            #expect(try folder.text("head").lowercased().contains("content-encoding: gzip"))
            #expect(try await curl(folder, server.url("/redir/file")).stdout == "302")
            #expect(try await curl(folder, "-L", server.url("/redir/file")).stdout == "200")
            #expect(try await curl(folder, server.url("/503")).stdout == "503")
            #expect(try folder.text("head").contains("Retry-After: 1"))
            let secure = try await curl(folder, "--cacert", tls.authorityPath, server.secureURL("/file"))
            #expect(secure.stdout == "200", "\(secure.stderr)")
            server.stop()
            #expect(try await curl(folder, server.url("/file")).status == 7)
        }
    }
}
