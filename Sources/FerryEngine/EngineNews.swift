import FerryCore
import FerryStore
import Synchronization

/// What committed changes mean for the scheduler, collected from wherever they are told until it looks.
final class EngineNews: Sendable {
    private struct State {
        var hosts: Set<String> = []
        var deadlines: [JobID: Timestamp] = [:]
    }
    private let state = Mutex(State())

    /// Takes note of changes.
    func note(_ changes: [JobChange]) {
        self.state.withLock { state in
            for change in changes {
                guard let job = change.job else { continue }
                // That a job began is known; whatever else happens, it may stand in its host's queue now.
                if job.state == .queued { state.hosts.insert(job.host) }
                if let deadline = change.deadline { state.deadlines[job.id] = deadline }
            }
        }
    }

    /// Gives what has come since the last time: hosts whose queue has changed, and new deadlines.
    func take() -> (hosts: Set<String>, deadlines: [JobID: Timestamp]) {
        self.state.withLock { state in
            defer { state = State() }
            return (state.hosts, state.deadlines)
        }
    }
}
