import FerryControl
import FerryCore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryCLI

@Suite(.timeLimit(.minutes(5))) struct UploadCommandTests {
    private static func sample(
        _ id: Int64,
        _ state: JobState,
        change: (inout JobDocument) -> Void = { _ in }
    ) -> JobDocument {
        sampleJob(id, state, url: "https://example.org/inbox/a") { job in
            job.kind = .upload
            job.path = "/d/a"
            change(&job)
        }
    }

    /// Runs a command in a folder with the file `a` against a scripted service.
    private func run(
        _ words: [String],
        input: Int32 = 0,
        answer:
            @escaping @Sendable (ControlRequest, TemporaryFolder, ClientID, FakeService) throws ->
            ControlResponse
    ) async throws -> (result: CommandResult, requests: [ControlRequest], spool: [String]) {
        try await withTemporaryFolder { folder in
            try folder.makeFolder("state/ferry")
            try folder.makeFolder("run/ferry")
            try folder.write("a", "content")
            let service = try FakeService(socket: folder.socketPath, folder: folder) {
                try answer($0, folder, $1, $2)
            }
            defer { service.stop() }
            let result = try await FerryCLITests.run(words, in: folder, input: input)
            let spool = folder.exists("state/ferry/spool") ? try folder.names(in: "state/ferry/spool") : []
            return (result, service.requests, spool)
        }
    }

    /// A pipe that holds bytes and is closed behind them.
    private func pipe(holding bytes: [UInt8]) throws -> Int32 {
        var ends: [Int32] = [-1, -1]
        try #require(Glibc.pipe(&ends) == 0)
        try #require(write(ends[1], bytes, bytes.count) == bytes.count)
        close(ends[1])
        return ends[0]
    }

    @Test func `put follows its jobs to their end and prints where the server keeps them`() async throws {
        let (result, requests, _) = try await self.run(["put", "a", "https://example.org/inbox/"]) {
            request,
            _,
            client,
            service in
            switch request {
            case .add(let requests, true):
                #expect(requests.map(\.url) == ["https://example.org/inbox/a"])
                #expect(requests.map(\.kind) == [.upload])
                return .added([AddedJob(outcome: .new, job: Self.sample(1, .queued))], running: true)
            case .attach: return .done
            case .subscribe:
                let completed = Self.sample(1, .completed) { job in
                    job.resultUrl = "https://example.org/kept/7"
                    job.bytesDone = 7
                    job.bytesTotal = 7
                }
                service.notify(client, [event(Self.sample(1, .running)), event(completed)])
                return .subscribed([Self.sample(1, .queued)])
            default: throw FerryError(.wrongState, "unexpected", exitStatus: .database)
            }
        }
        #expect(result.status == .success)
        #expect(result.out == "https://example.org/kept/7\n")
        #expect(result.err == "job 1: a: started\njob 1: a: completed, 7 B\n")
        #expect(requests.count == 3)
    }

    @Test func `an upload that was complete before gives its URL at once`() async throws {
        let (result, _, _) = try await self.run(["put", "a", "https://example.org/inbox/"]) { _, _, _, _ in
            let job = Self.sample(1, .completed)
            return .added([AddedJob(outcome: .alreadyComplete, job: job, note: "n")], running: true)
        }
        #expect(
            result
                == CommandResult(status: .success, out: "https://example.org/inbox/a\n", err: "ferry: n\n")
        )
    }

    @Test func `add --upload prints numbers`() async throws {
        let (result, _, _) = try await self.run(["add", "--upload", "a", "https://example.org/inbox/"]) {
            request,
            _,
            _,
            _ in
            guard case .add(_, false) = request else {
                throw FerryError(.wrongState, "unexpected", exitStatus: .database)
            }
            return .added([AddedJob(outcome: .new, job: Self.sample(4, .queued))], running: true)
        }
        #expect(result == CommandResult(status: .success, out: "4\n", err: ""))
    }

    @Test(arguments: [0, 1, 65_536])
    func `standard input is copied into the queue first, and stays for the job`(size: Int) async throws {
        let bytes = TestObject(size: Int64(size)).bytes(0..<Int64(size))
        let input = try self.pipe(holding: bytes)
        defer { close(input) }
        let (result, _, spool) = try await self.run(["add", "--upload", "-", "https://h/x"], input: input) {
            request,
            folder,
            _,
            _ in
            guard case .add(let requests, false) = request, let request = requests.first,
                case .spool(let path)? = request.upload?.body
            else { throw FerryError(.wrongState, "unexpected", exitStatus: .database) }
            #expect(path.hasPrefix(folder.file("state/ferry/spool/")))
            #expect(try readFile(path) == bytes)
            var info = stat()
            #expect(stat(path, &info) == 0 && info.st_mode & 0o777 == 0o600)
            #expect(stat(folder.file("state/ferry/spool"), &info) == 0 && info.st_mode & 0o777 == 0o700)
            let file = open(path, O_RDONLY)
            defer { close(file) }
            #expect(flock(file, LOCK_EX | LOCK_NB) == -1, "nobody holds a lock on it")
            return .added([AddedJob(outcome: .new, job: Self.sample(1, .queued))], running: true)
        }
        #expect(result == CommandResult(status: .success, out: "1\n", err: ""))
        #expect(spool.count == 1)
    }

    @Test func `what the queue refuses leaves no copy of standard input`() async throws {
        let input = try self.pipe(holding: [1, 2, 3])
        defer { close(input) }
        let (result, _, spool) = try await self.run(["put", "-", "http://h/x"], input: input) { _, _, _, _ in
            throw FerryError.usage("plain http is refused")
        }
        #expect(result == CommandResult(status: .usage, out: "", err: "ferry: plain http is refused\n"))
        #expect(spool.isEmpty)
    }

    @Test func `a standard input that cannot be read is refused before anything is queued`() async throws {
        let folder = open("/", O_RDONLY)
        defer { close(folder) }
        for (input, message) in [(-1, "closed"), (folder, "a folder")] as [(Int32, String)] {
            let (result, requests, spool) = try await self.run(["put", "-", "https://h/x"], input: input) {
                _,
                _,
                _,
                _ in
                throw FerryError(.wrongState, "unexpected", exitStatus: .database)
            }
            #expect(
                result
                    == CommandResult(
                        status: .usage,
                        out: "",
                        err: "ferry: ferry put -: standard input is \(message)\n"
                    )
            )
            #expect(requests.isEmpty && spool.isEmpty)
        }
    }

    @Test func `a copy that is given up leaves nothing`() throws {
        try withTemporaryFolder { folder in
            let location = try QueueLocation(
                stateDirectory: folder.path,
                socketPath: folder.file("control.sock")
            )
            do {
                let spool = try InputSpool(location)
                #expect(try folder.names(in: "spool").map { folder.file("spool/\($0)") } == [spool.path])
            }
            #expect(try folder.names(in: "spool").isEmpty)
        }
    }

    @Test func `a spool folder that cannot be one is a sentence`() throws {
        try withTemporaryFolder { folder in
            try folder.write("spool", "a file")
            let location = try QueueLocation(
                stateDirectory: folder.path,
                socketPath: folder.file("control.sock")
            )
            let error = #expect(throws: FerryError.self) { _ = try InputSpool(location) }
            #expect(error?.message.hasPrefix("cannot create \(folder.file("spool/"))") == true)
            #expect(error?.message.hasSuffix(": Not a directory; nothing was queued") == true)
        }
    }
}

@Suite struct UploadTextTests {
    private static func job(
        _ transport: String?,
        change: (inout JobDocument) -> Void = { _ in }
    ) -> JobDocument {
        sampleJob(3, .running, url: "https://example.org/in/a.bin") { job in
            job.kind = .upload
            job.phase = .transferring
            job.path = "/home/u/a.bin"
            job.protocol = transport
            job.bytesDone = 3 << 20
            job.bytesTotal = 4 << 20
            job.rateBytesPerS = 1 << 20
            job.etaS = 1
            change(&job)
        }
    }

    @Test(arguments: [
        ("put", "sent"), ("multipart", "sent"), ("tus", "acknowledged"), ("ietf", "acknowledged"),
        (nil, "sent"),
    ])
    func `progress says by what bytes are counted`(transport: String?, word: String) {
        let job = Self.job(transport)
        #expect(ProgressLog.text(job) == "job 3: a.bin: 75 % of 4.0 MiB \(word), 1.0 MiB/s, 1s left")
        let live = word == "sent" ? "sent" : "acked"
        for columns in [80, 100, 140] {
            let line = ProgressView(columns: columns, rows: 24).line(job, nameWanted: 5, now: noon)
            #expect(line.contains("3.0 MiB/4.0 MiB \(live)"), "\(line)")
            #expect(TextWidth.columns(line) < columns)
        }
        #expect(JobDetails.lines(job, now: noon) { "\($0)" }.contains { $0.hasSuffix(" \(word)") })
    }

    @Test func `show tells source, offset, result and the server's answer`() {
        let job = Self.job("tus") { job in
            job.bytesDurable = 2 << 20
            job.resultUrl = "https://example.org/in/7"
            job.answer = AnswerDocument(
                status: 409,
                headers: ["Content-Type: text/plain", "Upload-Offset: 5"],
                body: "wrong \u{1B}[31moffset\r\n\nsecond line",
                isCut: true
            )
        }
        let lines = JobDetails.lines(job, now: noon) { "\($0)" }
        for line in [
            "source:     /home/u/a.bin", "result:     https://example.org/in/7",
            "offset:     2.0 MiB (2097152 bytes)", "protocol:   tus", "answer:     status 409",
            "            Content-Type: text/plain", "            Upload-Offset: 5",
            "            | wrong \\u{1B}[31moffset", "            | second line", "            | …",
        ] {
            #expect(lines.contains(line), "\(line) in \(lines)")
        }
    }
}
