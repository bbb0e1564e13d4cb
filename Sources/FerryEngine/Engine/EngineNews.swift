import FerryCore
import FerryStore
import Synchronization

/// What committed changes mean for the scheduler, collected from wherever they are told until it looks.
final class EngineNews: Sendable {
    private struct State {
        var heads: [QueuedHead] = []
        var deadlines: [JobID: Timestamp] = [:]
    }
    private let state = Mutex(State())

    /// Takes note of changes.
    func note(_ changes: [JobChange]) {
        self.state.withLock { state in
            for change in changes {
                guard let job = change.job else { continue }
                if job.state == .queued {
                    state.heads.append(QueuedHead(id: job.id, priority: job.priority, host: job.host))
                }
                if let deadline = change.deadline { state.deadlines[job.id] = deadline }
            }
        }
    }

    /// Gives what has come since the last time, in order: jobs that stand in a queue now, and new deadlines.
    func take() -> (heads: [QueuedHead], deadlines: [JobID: Timestamp]) {
        self.state.withLock { state in
            defer { state = State() }
            return (state.heads, state.deadlines)
        }
    }
}
