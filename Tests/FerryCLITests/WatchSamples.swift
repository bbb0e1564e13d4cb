import FerryControl
import FerryCore

@testable import FerryCLI

/// A queue with one job of each kind that a screen has to show.
let variedJobs: [JobDocument] = [
    transferring(1, path: "/d/image.iso", done: 700 << 20, total: 1 << 30),
    transferring(2, path: "/d/日本語のファイル名です.tar", done: 5 << 20, total: nil),
    sampleJob(3, .running, url: "https://example.org/a\u{1B}[2J\u{202E}b") { $0.phase = .connecting },
    waiting(4, "retry", "connection refused", seconds: 75),
    waiting(5, "host", "the server asks to come back later", seconds: 3_661),
    waiting(6, "network", "no route to the host", seconds: nil),
    waiting(7, "schedule", nil, seconds: 86_400 * 2),
    waiting(8, "disk", "no space is left on /d", seconds: 5),
    waiting(9, "auth", "a token is being renewed", seconds: nil),
    sampleJob(10, .failed, url: "https://example.org/gone.zip") { job in
        job.reason = "not-found"
        job.message = "the server has no such file (404)"
    },
    sampleJob(11, .paused, url: "https://example.org/half.bin") { job in
        job.bytesDone = 512
        job.bytesTotal = 1_024
    },
    sampleJob(12, .queued, url: "https://example.org/👩‍🚀e\u{301}.png") { $0.priority = 5 },
    sampleJob(13, .completed, url: "https://example.org/done.txt") { job in
        job.bytesDone = 2_048
        job.bytesTotal = 2_048
        job.finishedAt = noon
    },
    sampleJob(14, .queued, url: "https://example.org/night.tar") { $0.group = "nightly" },
]

/// A job that waits.
func waiting(_ id: Int64, _ reason: String, _ message: String?, seconds: Int64?) -> JobDocument {
    sampleJob(id, .waiting, url: "https://example.org/\(reason).bin") { job in
        job.reason = reason
        job.message = message
        job.retryAt = seconds.map { noon + .seconds($0) }
    }
}

/// The answer of a service that has these jobs, and `more` queued ones that it does not name.
func watched(_ jobs: [JobDocument], more: Int64 = 0, moreInGroups: [String: Int64] = [:]) -> WatchedDocument {
    var counts: [String: Int64] = [:]
    var groups: [String: [String: Int64]] = [:]
    for job in jobs {
        counts[job.state.rawValue, default: 0] += 1
        if let group = job.group { groups[group, default: [:]][job.state.rawValue, default: 0] += 1 }
    }
    counts["queued", default: 0] += more
    for (group, count) in moreInGroups {
        groups[group, default: [:]]["queued", default: 0] += count
        counts["queued", default: 0] += count
    }
    return WatchedDocument(
        jobs: jobs,
        counts: CountsDocument(states: counts),
        groups: groups.map { GroupDocument(name: $0.key, states: $0.value) }
    )
}

/// A state that shows these jobs in a window.
func watchState(_ answer: WatchedDocument, columns: Int = 80, rows: Int = 24) -> WatchState {
    var state = WatchState(now: noon)
    state.resize(WatchSize(columns: columns, rows: rows))
    state.take(answer)
    return state
}

/// The texts of a state's lines.
func screen(_ state: WatchState) -> [String] {
    WatchLayout(state: state, now: noon, time: { _ in "12:00" }).lines().map(\.text)
}
