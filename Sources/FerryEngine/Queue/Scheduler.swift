import FerryCore
import FerryStore

/// Which running jobs make room; which queued ones get a place is ``ClaimQueue``'s to say.
enum Scheduler {
    /// A running job that may have to make room.
    struct Demotable {
        let job: JobRecord
        /// Whether nothing is lost if it stops now: it can go on where it stopped, and is not about to end.
        let mayStop: Bool
    }

    /// The jobs that have to go back to the queue under lower limits: of the lowest priority the newest first.
    static func demote(_ running: [Demotable], limit: Int, perHost: (String) -> Int) -> [JobID] {
        var count = running.count
        var load: [String: Int] = [:]
        for item in running { load[item.job.host, default: 0] += 1 }
        var demoted: [JobID] = []
        let order = running.filter(\.mayStop).sorted { left, right in
            (left.job.priority, right.job.id) < (right.job.priority, left.job.id)
        }
        // Hosts over their own limit first, for that makes room in the whole as well.
        for item in order where load[item.job.host, default: 0] > perHost(item.job.host) {
            load[item.job.host, default: 0] -= 1
            count -= 1
            demoted.append(item.job.id)
        }
        for item in order where count > limit && !demoted.contains(item.job.id) {
            count -= 1
            demoted.append(item.job.id)
        }
        return demoted
    }
}
