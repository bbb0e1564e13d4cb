import FerryCore
import FoundationEssentials
import Testing

@testable import FerryControl

@Suite struct ControlJSONTests {
    static let time = Timestamp(year: 2026, month: 11, day: 30)

    static var bareJob: JobDocument {
        JobDocument(
            id: JobID(rawValue: 12),
            kind: .download,
            state: .queued,
            url: "https://example.org/a/b?…",
            priority: 0,
            createdAt: time
        )
    }

    static var fullJob: JobDocument {
        var job = bareJob
        job.state = .running
        job.phase = .transferring
        job.reason = "retry"
        job.message = "line one\nline two \u{1F600} \"quoted\" / \\"
        job.advice = "wait"
        job.path = "/srv/files/b"
        job.group = "nightly"
        job.priority = -100
        job.bytesDone = .max
        job.bytesDurable = 1
        job.bytesTotal = 2
        job.rateBytesPerS = 3
        job.etaS = 4
        job.attempt = 5
        job.retryAt = time
        job.startedAt = time
        job.finishedAt = time
        job.validator = ValidatorDocument(kind: "etag", value: "\"x\"", strong: true)
        job.checksum = ChecksumDocument(algorithm: "sha-256", expected: "ab", actual: nil, source: "user")
        job.protocol = "http"
        job.httpVersion = "1.1"
        job.lengthProved = true
        job.contentEncoding = "gzip"
        job.segments = [SegmentDocument(startBytes: 0, endBytes: nil, durableBytes: 7)]
        job.resultUrl = "https://example.org/kept/7"
        job.answer = AnswerDocument(status: 201, headers: ["Location: /kept/7"], body: "ok\n", isCut: true)
        return job
    }

    static var jobRequest: JobRequest {
        JobRequest(
            kind: .upload,
            url: "https://user:word@example.org/?q=1",
            directory: "/srv/files",
            output: "/srv/files/b",
            ifExists: .overwrite,
            headers: [RequestHeader(name: "X-A", value: "1")],
            allowHTTP: true,
            caFile: "/etc/ca.pem",
            attempts: 0,
            umask: 0o077,
            proxy: ProxyEnvironment(http: "a", https: "b", all: "c", no: "d"),
            foreground: true,
            group: "g",
            priority: 9,
            upload: UploadOrder(
                body: .form([
                    FormPart(name: "a_b", content: .value("1")),
                    FormPart(name: "f", content: .file(path: "/f"), contentType: "a/b", fileName: "n"),
                ]),
                transport: .ietf,
                method: "PATCH",
                contentType: "text/plain",
                idempotencyKey: "k",
                responsePath: "/r",
                nameWasAdded: true
            )
        )
    }

    static let ids = [JobID(rawValue: 1), JobID(rawValue: .max)]

    static let requests: [ControlRequest] =
        [
            .add(requests: [jobRequest, JobRequest(url: "http://a/", directory: "/")], attach: true),
            .list(
                selector: Selector(jobs: ids, states: JobState.allCases, groups: ["a"], all: true),
                host: "h",
                limit: 3,
                includeOld: true
            ),
            .list(selector: Selector(), host: nil, limit: nil, includeOld: false),
            .show(job: ids[0]), .log(job: ids[1]), .attach(jobs: ids), .attachAll, .counts, .handOver, .check,
            .exportResumeData(job: ids[0]),
            .set(selector: Selector(jobs: ids), changes: JobChanges(priority: 1, notBefore: time)),
            .set(
                selector: Selector(groups: ["g"]),
                changes: JobChanges(
                    group: "g",
                    url: "https://a/",
                    headers: [RequestHeader(name: "A", value: "")],
                    allowHTTP: true,
                    output: "/f",
                    attempts: 3
                )
            ),
            .limits(changes: []),
            .limits(changes: [
                LimitChange(running: .set(3)), LimitChange(host: "h", running: .configured),
            ]),
            .subscribe(jobs: nil, progress: true), .subscribe(jobs: ids, progress: false),
        ]
        + SteerAction.allCases.map { .steer(action: $0, selector: Selector(all: true), keepPartial: true) }

    @Test(arguments: requests)
    func `a request survives the way through JSON`(request: ControlRequest) throws {
        let line = RequestLine(id: 7, request: request)
        let bytes = try ControlJSON.encode(line)
        #expect(!bytes.contains(10))
        #expect(try ControlJSON.decode(RequestLine.self, from: bytes) == line)
    }

    static let counts = CountsDocument(states: ["queued": 1, "running": 2])

    static var attempt: AttemptDocument {
        var attempt = AttemptDocument(attempt: 1, beganAt: time, offsetBytes: 2, receivedBytes: 3)
        attempt.endedAt = time
        attempt.outcome = "interrupted"
        attempt.message = "lost"
        attempt.hops = [
            HopDocument(url: "https://a/", status: 302, address: "::1", httpVersion: "2", firstByteMs: 8),
            HopDocument(url: "https://b/", status: nil, address: nil, httpVersion: nil, firstByteMs: nil),
        ]
        return attempt
    }

    static let eventDocument = EventDocument(
        seq: 1,
        time: time,
        job: ids[0],
        kind: "waiting",
        state: .waiting,
        reason: "retry",
        message: "m"
    )

    static let lines: [ServiceLine] =
        [
            ServiceLine(
                hello: Hello(protocolVersion: 1, version: "0.1", pid: 2, onDemand: true, stateDir: "/d")
            ),
            ServiceLine(hello: Hello(protocolVersion: 1, version: "0.1", pid: 2)),
            ServiceLine(id: 3, error: ErrorDocument(FerryError(.database, "broken", exitStatus: .database))),
            ServiceLine(error: ErrorDocument(.usage("wrong"))),
            ServiceLine(notification: .event(eventDocument, job: fullJob)),
            ServiceLine(notification: event(2)),
            ServiceLine(notification: progress(5)),
        ]
        + [
            .added(
                [
                    AddedJob(outcome: .new, job: fullJob),
                    AddedJob(outcome: .alreadyComplete, job: bareJob, note: "n"),
                    AddedJob(outcome: .skipped, job: nil), AddedJob(outcome: .same, job: bareJob),
                    AddedJob(outcome: .resumed, job: bareJob),
                ],
                running: true
            ),
            .limits(
                LimitsDocument(
                    running: 16,
                    runningIsLive: true,
                    perHost: 6,
                    hosts: [HostLimitDocument(host: "h", running: 1, runningIsLive: false)]
                )
            ),
            .jobs([fullJob, bareJob], counts: counts), .job(fullJob),
            .log(job: bareJob, attempts: [attempt], events: [eventDocument]),
            .steered(
                [SteeredJob(id: ids[0], state: .paused), SteeredJob(id: ids[1], state: nil, error: "no")],
                running: false
            ),
            .subscribed([]), .counts(counts), .done,
        ].map { ServiceLine(id: 1, response: $0) }

    @Test(arguments: lines)
    func `an answer survives the way through JSON`(line: ServiceLine) throws {
        let bytes = try ControlJSON.encode(line)
        #expect(!bytes.contains(10))
        #expect(try ControlJSON.decode(ServiceLine.self, from: bytes) == line)
    }

    @Test func `a job shows every documented field, null if unknown, with slashes as they are`() throws {
        let text = String(decoding: try ControlJSON.encode(Self.bareJob), as: UTF8.self)
        #expect(
            text
                == #"{"advice":null,"after":[],"attempt":0,"bytes_done":0,"bytes_durable":0,"bytes_total":null,"checksum":null,"#
                + #""content_encoding":null,"created_at":"2026-11-30T00:00:00.000Z","eta_s":null,"finished_at":null,"#
                + #""group":null,"http_version":null,"id":12,"kind":"download","length_proved":null,"message":null,"#
                + #""path":null,"phase":null,"priority":0,"protocol":null,"rate_bytes_per_s":null,"reason":null,"#
                + #""result_url":null,"retry_at":null,"started_at":null,"state":"queued","type":"job","#
                + #""url":"https://example.org/a/b?…","validator":null,"window":null}"#
        )
    }

    @Test func `a job with segments shows them, and a checksum its missing digest`() throws {
        let text = String(decoding: try ControlJSON.encode(Self.fullJob), as: UTF8.self)
        #expect(text.contains(#""segments":[{"durable_bytes":7,"end_bytes":null,"start_bytes":0}]"#))
        #expect(
            text.contains(
                #""checksum":{"actual":null,"algorithm":"sha-256","expected":"ab","source":"user"}"#
            )
        )
    }

    @Test func `progress, events and attempts show every field`() throws {
        func text(_ value: some Encodable) throws -> String {
            String(decoding: try ControlJSON.encode(value), as: UTF8.self)
        }
        let event = EventDocument(
            seq: 1,
            time: Self.time,
            job: nil,
            kind: "added",
            state: nil,
            reason: nil,
            message: nil
        )
        #expect(
            try text(event)
                == #"{"job":null,"kind":"added","message":null,"reason":null,"seq":1,"state":null,"#
                + #""time":"2026-11-30T00:00:00.000Z","type":"event"}"#
        )
        let attempt = AttemptDocument(attempt: 1, beganAt: Self.time, offsetBytes: 2, receivedBytes: 3)
        #expect(
            try text(attempt)
                == #"{"attempt":1,"began_at":"2026-11-30T00:00:00.000Z","ended_at":null,"hops":[],"message":null,"#
                + #""offset_bytes":2,"outcome":null,"received_bytes":3,"type":"attempt"}"#
        )
        let hop = HopDocument(
            url: "https://a/",
            status: nil,
            address: nil,
            httpVersion: nil,
            firstByteMs: nil
        )
        #expect(
            try text(hop)
                == #"{"address":null,"first_byte_ms":null,"http_version":null,"status":null,"url":"https://a/"}"#
        )
        guard case .progress(let documents) = progress(5) else { return }
        #expect(
            try text(documents[0])
                == #"{"bytes_done":5,"bytes_durable":0,"bytes_total":null,"eta_s":null,"id":1,"#
                + #""path":null,"phase":"transferring","rate_bytes_per_s":null,"type":"progress"}"#
        )
    }

    @Test(arguments: [
        ("id", "id"), ("rate_bytes_per_s", "rateBytesPerS"), ("eta_s", "etaS"), ("allow_http", "allowHTTP"),
        ("http_version", "httpVersion"), ("_0", "_0"), ("attach_all", "attachAll"), ("", ""), ("_", "_"),
    ])
    func `a name has one Swift form`(json: String, swift: String) {
        #expect(ControlJSON.camelCase(json) == swift)
    }

    @Test func `fields that are not known are passed over`() throws {
        let line = #"{"protocol_version":1,"version":"2","pid":3,"motto":[{"a":1}]}"#
        let hello = try ControlJSON.decode(Hello.self, from: Array(line.utf8))
        #expect(hello == Hello(protocolVersion: 1, version: "2", pid: 3))
    }

    @Test func `a startup report has the two documented forms`() throws {
        #expect(StartupReport.ready.line == Array("{\"ready\":true}\n".utf8))
        let failed = StartupReport.failed(FerryError(.database, "it is damaged", exitStatus: .database))
        let text = #"{"code":"database","exit_status":12,"message":"it is damaged"}"# + "\n"
        #expect(failed.line == Array(text.utf8))
        for report in [failed, .ready] {
            #expect(try ControlJSON.decode(StartupReport.self, from: report.line) == report)
        }
        #expect(throws: DecodingError.self) {
            try ControlJSON.decode(StartupReport.self, from: Array("{}".utf8))
        }
    }
}
