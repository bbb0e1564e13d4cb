import FerryControl
import FerryCore

@testable import FerryCLI

/// Noon of a day that tests agree on.
let noon = Timestamp(year: 2026, month: 11, day: 30, hour: 12)

/// A job's document with a state and what a test wants set.
func sampleJob(
    _ id: Int64,
    _ state: JobState,
    url: String = "https://example.org/image.iso",
    change: (inout JobDocument) -> Void = { _ in }
) -> JobDocument {
    var job = JobDocument(
        id: JobID(rawValue: id),
        kind: .download,
        state: state,
        url: url,
        priority: 0,
        createdAt: noon
    )
    change(&job)
    return job
}

/// A running job in the middle of its body.
func transferring(_ id: Int64, path: String, done: Int64, total: Int64?) -> JobDocument {
    sampleJob(id, .running) { job in
        job.phase = .transferring
        job.path = path
        job.bytesDone = done
        job.bytesTotal = total
        job.rateBytesPerS = 3 << 20
        job.etaS = total.map { ($0 - done) / (3 << 20) }
    }
}

/// An event of a job with its document after it.
func event(_ job: JobDocument, kind: String? = nil, seq: Int64 = 1) -> ControlNotification {
    .event(
        EventDocument(
            seq: seq,
            time: noon,
            job: job.id,
            kind: kind ?? job.state.rawValue,
            state: job.state,
            reason: job.reason,
            message: job.message
        ),
        job: job
    )
}

/// The surroundings of a caller in `/home/u`.
func surroundings(
    _ environment: [String: String] = [:],
    directory: String = "/home/u"
) -> Surroundings {
    Surroundings(currentDirectory: directory, environment: environment, umask: 0o027)
}

/// Parses a command line and reads what it asks for.
func invocation(
    _ words: [String],
    in surroundings: Surroundings = surroundings()
) throws -> Invocation {
    try Invocation(try ArgumentParser.parse(words), in: surroundings)
}
