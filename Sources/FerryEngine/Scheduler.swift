import FerryCore
import FerryStore

/// Which queued jobs get the free places.
enum Scheduler {
    /// Queued jobs that may be chosen: the heads of each host's queue, or of the jobs that are wanted.
    ///
    /// With `wanted` only those jobs. A host that runs as many jobs as `perHost` allows it is not looked at.
    static func candidates(
        _ reader: Reader,
        wanted: Set<JobID>?,
        running: [String: Int],
        perHost: (String) -> Int,
        limit: Int
    ) throws -> [JobRecord] {
        if let wanted {
            guard !wanted.isEmpty else { return [] }
            return try reader.jobs(JobFilter(jobs: wanted.sorted(), states: [.queued]))
        }
        return try reader.queuedHosts().filter { running[$0, default: 0] < perHost($0) }.flatMap { host in
            try reader.queuedHead(host: host, limit: min(limit, perHost(host) - running[host, default: 0]))
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
