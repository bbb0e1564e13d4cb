import FerryCore
import FerryStore

/// Which queued jobs get the free places.
enum Scheduler {
    /// Queued jobs that may be chosen: the heads of each host's queue, or of the jobs that are wanted.
    ///
    /// With `wanted` only those jobs. A host that runs as many jobs as `perHost` allows it is not looked at. Of each
    /// other one `spare` more are given than may be chosen, in the place of those that are held.
    static func candidates(
        _ reader: Reader,
        wanted: Set<JobID>?,
        running: [String: Int],
        perHost: (String) -> Int,
        limit: Int,
        spare: Int
    ) throws -> [JobRecord] {
        if let wanted {
            guard !wanted.isEmpty else { return [] }
            return try reader.jobs(JobFilter(jobs: wanted.sorted(), states: [.queued]))
        }
        return try reader.queuedHosts().filter { running[$0, default: 0] < perHost($0) }.flatMap { host in
            let free = min(limit, perHost(host) - running[host, default: 0])
            return try reader.queuedHead(host: host, limit: free + spare)
        }
    }

    /// Chooses by priority, then for the host with the fewest running jobs, then by order of arrival.
    static func choose(
        _ jobs: [JobRecord],
        running: [String: Int],
        perHost: (String) -> Int,
        limit: Int
    ) -> [JobRecord] {
        var load = running
        var queues: [String: ArraySlice<JobRecord>] = [:]
        for (host, jobs) in Dictionary(grouping: jobs, by: \.host) {
            queues[host] = jobs.sorted { ($1.priority, $0.id) < ($0.priority, $1.id) }[...]
        }
        var chosen: [JobRecord] = []
        while chosen.count < limit {
            let heads = queues.compactMap { host, queue in
                load[host, default: 0] < perHost(host) ? queue.first : nil
            }
            let best = heads.min { left, right in
                (right.priority, load[left.host, default: 0], left.id)
                    < (left.priority, load[right.host, default: 0], right.id)
            }
            guard let best else { break }
            chosen.append(best)
            queues[best.host]?.removeFirst()
            load[best.host, default: 0] += 1
        }
        return chosen
    }
}

extension Scheduler {
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
