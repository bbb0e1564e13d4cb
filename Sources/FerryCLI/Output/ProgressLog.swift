import FerryControl
import FerryCore

/// Decides when a job gets a plain line of progress: where standard error is no terminal.
///
/// A line each 10 % but not within 5 s of the last, and at least every 30 s.
struct ProgressLog {
    /// The shortest time between two lines of a job, in milliseconds.
    static let shortest: Int64 = 5_000
    /// The longest time without a line, in milliseconds.
    static let longest: Int64 = 30_000

    private struct Mark {
        var time: Int64
        var tenth: Int
    }
    private var marks: [JobID: Mark] = [:]

    /// Notes that a line about a job was printed at `now`, in milliseconds of a monotonic clock.
    mutating func printed(_ job: JobDocument, now: Int64) {
        self.marks[job.id] = Mark(time: now, tenth: Self.tenth(job))
    }

    /// Forgets a job.
    mutating func ended(_ job: JobID) {
        self.marks[job] = nil
    }

    /// The line that is due for a running job, if one is.
    mutating func line(_ job: JobDocument, now: Int64) -> String? {
        guard let mark = self.marks[job.id] else {
            self.printed(job, now: now)
            return nil
        }
        let age = now - mark.time
        guard age >= Self.longest || (age >= Self.shortest && Self.tenth(job) > mark.tenth) else {
            return nil
        }
        self.printed(job, now: now)
        return Self.text(job)
    }

    /// `job 12: image.iso: 30 % of 1.2 GiB, 3.4 MiB/s, 2m left`.
    static func text(_ job: JobDocument) -> String {
        var parts: [String] = []
        if let total = job.bytesTotal, let percent = JobText.percent(job) {
            parts.append("\(percent) % of \(JobText.size(total))")
        } else {
            parts.append(JobText.size(job.bytesDone))
        }
        if let counted = JobText.counted(job), let last = parts.popLast() {
            parts.append("\(last) \(counted)")
        }
        if let rate = job.rateBytesPerS { parts.append(JobText.rate(rate)) }
        if let left = job.etaS { parts.append("\(JobText.span(left)) left") }
        return "job \(job.id): \(JobText.name(job)): \(parts.joined(separator: ", "))"
    }

    private static func tenth(_ job: JobDocument) -> Int { (JobText.percent(job) ?? 0) / 10 }
}
