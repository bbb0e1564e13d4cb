import FerryCore
import FerryStore

/// When jobs give up that have a `--deadline`.
struct Deadlines {
    private struct Entry: Comparable {
        let time: Timestamp
        let id: JobID

        static func < (left: Entry, right: Entry) -> Bool {
            (left.time, left.id) < (right.time, right.id)
        }
    }

    private var times: [JobID: Timestamp] = [:]
    /// Entries that are not in ``times`` any more are void.
    private var heap = Heap<Entry>()

    /// Enters a job's deadline in place of an earlier one; nil takes it away.
    mutating func set(_ id: JobID, _ time: Timestamp?) {
        self.times[id] = time
        if let time { self.heap.insert(Entry(time: time, id: id)) }
    }

    /// When the next one passes.
    var next: Timestamp? {
        mutating get {
            while let first = self.heap.first, self.times[first.id] != first.time { self.heap.removeFirst() }
            return self.heap.first?.time
        }
    }

    /// Takes the jobs whose time has come.
    mutating func due(at now: Timestamp) -> [JobID] {
        var due: [JobID] = []
        while let time = self.next, time <= now, let entry = self.heap.removeFirst() {
            self.times[entry.id] = nil
            due.append(entry.id)
        }
        return due
    }

    /// The clock was set, and shows that much more.
    mutating func shift(by jump: Duration) {
        let times = self.times
        self.heap.removeAll()
        for (id, time) in times { self.set(id, time + jump) }
    }
}

extension JobRequest {
    /// Begins the time until the deadline.
    mutating func beginDeadline(at now: Timestamp) {
        guard let span = self.deadlineMs, span > 0 else {
            self.deadlineAtMs = nil
            return
        }
        self.deadlineAtMs = (now + .milliseconds(span)).milliseconds
    }

    /// When the job gives up.
    var deadlineAt: Timestamp? { self.deadlineAtMs.map { Timestamp(milliseconds: $0) } }
}

extension JobLedger {
    /// Gives a job that a person sets going again its time anew: after a failure, and after a pause in which it ran
    /// out.
    ///
    /// - Returns: The deadline; nil if it has none or keeps the one that it had.
    static func renewDeadline(
        of job: JobRecord,
        wasFailed: Bool,
        in transaction: Transaction,
        at now: Timestamp
    ) throws -> Timestamp? {
        guard var request = try transaction.request(job.id), let old = request.deadlineAt,
            wasFailed || old <= now
        else { return nil }
        request.beginDeadline(at: now)
        try transaction.replace(request: request, redactedURL: job.url, urlFingerprint: nil, of: job.id)
        return request.deadlineAt
    }
}
