import FerryControl
import FerryCore
@testable import FerryEngine
import FerryStore
import Testing

@testable import FerryDaemon

@Suite struct DocumentsTests {
    private static func time(_ seconds: Int64) -> Timestamp {
        Timestamp(milliseconds: 1_800_000_000_000 + seconds * 1_000)
    }

    private static func job(_ state: JobState, _ change: (inout JobRecord) -> Void = { _ in }) -> JobRecord {
        var job = JobRecord(
            id: JobID(rawValue: 12),
            state: state,
            host: "example.org:443",
            url: "https://example.org/a?k=***",
            createdAt: time(0)
        )
        change(&job)
        return job
    }

    @Test func `a new job has the fields of its row`() {
        let document = JobDocument(Self.job(.queued))
        var expected = JobDocument(
            id: JobID(rawValue: 12),
            kind: .download,
            state: .queued,
            url: "https://example.org/a?k=***",
            priority: 0,
            createdAt: Self.time(0)
        )
        expected.attempt = 0
        #expect(document == expected)
    }

    @Test func `every column that is shown arrives`() {
        var remote = RemoteObject()
        remote.entityTag = "\"a\""
        let document = JobDocument(
            Self.job(.completed) {
                $0.message = "m"
                $0.advice = "a"
                $0.path = "/p"
                $0.group = "g"
                $0.priority = 5
                $0.attempts = 3
                $0.bytesDurable = 7
                $0.bytesTotal = 8
                $0.startedAt = Self.time(1)
                $0.finishedAt = Self.time(2)
                $0.protocolName = "http"
                $0.httpVersion = "1.1"
                $0.lengthProved = false
                $0.contentEncoding = "gzip"
            },
            remote: remote
        )
        #expect(document.message == "m")
        #expect(document.advice == "a")
        #expect(document.path == "/p")
        #expect(document.group == "g")
        #expect(document.priority == 5)
        #expect(document.attempt == 3)
        #expect(document.bytesDone == 7)
        #expect(document.bytesDurable == 7)
        #expect(document.bytesTotal == 8)
        #expect(document.startedAt == Self.time(1))
        #expect(document.finishedAt == Self.time(2))
        #expect(document.protocol == "http")
        #expect(document.httpVersion == "1.1")
        #expect(document.lengthProved == false)
        #expect(document.contentEncoding == "gzip")
        #expect(document.validator == ValidatorDocument(kind: "etag", value: "\"a\"", strong: true))
        #expect(document.segments == nil)
    }

    @Test func `the reason is that of waiting or of failing`() {
        let waiting = Self.job(.waiting) {
            $0.waitReason = .disk
            $0.nextTry = Self.time(5)
        }
        #expect(JobDocument(waiting).reason == "disk")
        #expect(JobDocument(waiting).retryAt == Self.time(5))
        #expect(JobDocument(Self.job(.failed) { $0.failureReason = .linkExpired }).reason == "link-expired")
    }

    @Test func `a phase is shown while the job runs`() {
        #expect(JobDocument(Self.job(.running) { $0.phase = .finishing }).phase == .finishing)
        #expect(JobDocument(Self.job(.queued) { $0.phase = .finishing }).phase == nil)
    }

    @Test func `hops stand with their attempts`() {
        let id = JobID(rawValue: 12)
        let history = Engine.History(
            attempts: [
                AttemptRecord(
                    job: id,
                    number: 1,
                    beganAt: Self.time(0),
                    endedAt: Self.time(1),
                    outcome: "retry",
                    message: "m",
                    offset: 0,
                    received: 5
                ),
                AttemptRecord(job: id, number: 2, beganAt: Self.time(2), offset: 5),
            ],
            hops: [
                HopRecord(job: id, attempt: 1, index: 0, url: "https://a/", status: 302),
                HopRecord(job: id, attempt: 1, index: 1, url: "https://b/", status: 200, firstByteMs: 3),
                HopRecord(job: id, attempt: 2, index: 0, url: "https://a/"),
            ],
            events: []
        )
        let documents = AttemptDocument.list(history)
        #expect(documents.map(\.attempt) == [1, 2])
        #expect(documents.map(\.offsetBytes) == [0, 5])
        #expect(documents.map(\.receivedBytes) == [5, 0])
        #expect(documents.map(\.outcome) == ["retry", nil])
        #expect(documents.map(\.endedAt) == [Self.time(1), nil])
        #expect(documents.map { $0.hops.map(\.status) } == [[302, 200], [nil]])
        #expect(documents[0].hops.map(\.url) == ["https://a/", "https://b/"])
    }

    @Test func `an event keeps its fields`() {
        let document = EventDocument(
            EventRecord(
                seq: 9,
                time: Self.time(1),
                job: JobID(rawValue: 12),
                kind: "failed",
                state: .failed,
                reason: "not-found",
                message: "m"
            )
        )
        #expect(document.seq == 9)
        #expect(document.kind == "failed")
        #expect(document.state == .failed)
        #expect(document.reason == "not-found")
    }
}
