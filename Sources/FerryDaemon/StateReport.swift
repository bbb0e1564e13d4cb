import FerryCore
import FerryEngine
import Glibc

/// What SIGUSR1 puts into the log: jobs by state, each running one, and what the process uses.
enum StateReport {
    /// Writes it, one line for the whole and one for each running job.
    static func write(
        to log: ServiceLog,
        counts: [JobState: Int64],
        running: [Engine.Progress],
        clients: Int,
        connections: Int
    ) {
        func count(_ state: JobState) -> String { "\(counts[state] ?? 0)" }
        let rate = running.compactMap(\.rate).reduce(0, +)
        log.write(
            .info,
            [
                "event": "state", "queued": count(.queued), "running": count(.running),
                "waiting": count(.waiting), "paused": count(.paused), "failed": count(.failed),
                "completed": count(.completed), "cancelled": count(.cancelled), "rate_bytes_per_s": "\(rate)",
                "clients": "\(clients)", "connections": "\(connections)",
                "rss_bytes": ProcessUse.residentBytes.map { "\($0)" },
                "descriptors": ProcessUse.descriptors.map { "\($0)" },
                "descriptor_limit": "\(ProcessUse.descriptorLimit.soft)",
            ]
        )
        for job in running {
            log.write(
                .info,
                [
                    "event": "running", "job": job.id.description, "phase": job.phase.rawValue,
                    "bytes_done": "\(job.done)", "bytes_durable": "\(job.durable)",
                    "bytes_total": job.total.map { "\($0)" },
                    "rate_bytes_per_s": job.rate.map { "\($0)" },
                ]
            )
        }
    }
}

/// What this process uses of the machine (proc(5), getrlimit(2)).
enum ProcessUse {
    /// Memory in use, in bytes.
    static var residentBytes: Int64? {
        var text = [UInt8](repeating: 0, count: 256)
        let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let count = read(descriptor, &text, text.count)
        guard count > 0 else { return nil }
        let words = String(decoding: text[..<count], as: UTF8.self).split(separator: " ")
        guard words.count > 1, let pages = Int64(words[1]) else { return nil }
        return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Open descriptors.
    static var descriptors: Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = -3  // `.`, `..` and the folder's own
        while readdir(folder) != nil { count += 1 }
        return count
    }

    /// How many descriptors may be open: now, and at most.
    static var descriptorLimit: (soft: UInt64, hard: UInt64) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return (0, 0) }
        return (UInt64(limit.rlim_cur), UInt64(limit.rlim_max))
    }

    /// Raises the soft limit of open descriptors to the hard one; nothing here uses select(2).
    static func raiseDescriptorLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)  // up to the hard limit it is always allowed
    }

    /// Descriptors that so many transfers may need: a socket and a file each, a folder for a moment, and ours.
    static func descriptorsNeeded(running: Int) -> UInt64 {
        UInt64(running * 3 + 128)
    }
}
