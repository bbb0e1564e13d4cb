import FerryControl
import FerryCore

extension RunningCommand {
    /// `ferry add`: prints the numbers of the jobs.
    func add(_ order: TransferOrder) throws(FerryError) -> ExitStatus {
        let (added, isRunning) = try order.destination.withFolder { () throws(FerryError) in
            try self.queue(order.requests, attach: false, session: try self.session())
        }
        return try self.tell(added, isRunning: isRunning)
    }

    /// Prints the numbers of what was queued.
    func tell(_ added: [AddedJob], isRunning: Bool) throws(FerryError) -> ExitStatus {
        for entry in added {
            if let note = entry.note { self.console.note(note.shownLines) }
            guard let job = entry.job else { continue }
            if self.console.json {
                try self.console.print(json: job)
            } else {
                self.console.out.line("\(job.id)")
            }
        }
        let open = added.filter { [.new, .same].contains($0.outcome) }
        if !isRunning, !open.isEmpty { self.sayNothingRuns() }
        return .success
    }

    /// Sends requests for jobs to the service.
    func queue(
        _ requests: [JobRequest],
        attach: Bool,
        session: Session
    ) throws(FerryError) -> (added: [AddedJob], isRunning: Bool) {
        let response = try session.call(.add(requests: requests, attach: attach))
        guard case .added(let added, let isRunning) = response, added.count == requests.count else {
            throw Session.unexpected()
        }
        return (added, isRunning)
    }

    /// `ferry pause` and the like, and `ferry set`.
    func steer(_ request: ControlRequest) throws(FerryError) -> ExitStatus {
        guard case .steered(let jobs, let isRunning) = try self.session().call(request) else {
            throw Session.unexpected()
        }
        for job in jobs {
            if let error = job.error {
                self.console.error(error.shown)
            } else if self.console.verbose {
                self.console.note("job \(job.id): \(job.state?.rawValue ?? "removed")")
            }
        }
        if jobs.isEmpty, self.console.verbose { self.console.note("no such jobs") }
        let failed = jobs.count { $0.error != nil }
        let isReady = jobs.contains { $0.error == nil && ($0.state == .queued || $0.state == .waiting) }
        if !isRunning, isReady, [.resume, .retry, .set].contains(self.name) { self.sayNothingRuns() }
        return ExitStatus.of(completed: jobs.count - failed, failed: failed)
    }

    /// `ferry list`.
    func list(_ request: ControlRequest) throws(FerryError) -> ExitStatus {
        guard case .jobs(let jobs, let counts) = try self.session().call(request) else {
            throw Session.unexpected()
        }
        if self.console.json {
            try self.console.print(json: ListDocument(jobs: jobs, counts: counts))
            return .success
        }
        let columns = self.console.outColumns
        let table = JobTable(width: columns > 0 ? columns : nil, style: self.console.outStyle)
        for line in table.lines(jobs, counts: counts, now: .now) { self.console.out.line(line) }
        return .success
    }

    /// `ferry show`.
    func show(_ id: JobID) throws(FerryError) -> ExitStatus {
        guard case .job(let job) = try self.session().call(.show(job: id)) else { throw Session.unexpected() }
        if self.console.json {
            try self.console.print(json: job)
        } else {
            for line in JobDetails.lines(job, now: .now, time: JobText.time) { self.console.out.line(line) }
        }
        return .success
    }

    /// `ferry log`.
    func log(_ id: JobID) throws(FerryError) -> ExitStatus {
        guard case .log(let job, let attempts, let events) = try self.session().call(.log(job: id)) else {
            throw Session.unexpected()
        }
        if self.console.json {
            try self.console.print(json: LogDocument(job: job, attempts: attempts, events: events))
        } else {
            for line in JobDetails.log(attempts, events, of: job.kind, time: JobText.time) {
                self.console.out.line(line)
            }
        }
        return .success
    }

    /// `ferry limit`.
    func limit(_ changes: [LimitChange], host: String?) throws(FerryError) -> ExitStatus {
        guard case .limits(var limits) = try self.session().call(.limits(changes: changes)) else {
            throw Session.unexpected()
        }
        let wanted = host.flatMap { HostPattern($0) }
        if let wanted {
            limits.hosts.removeAll { !(HostPattern($0.host)?.overlaps(wanted) ?? false) }
            limits.rates.removeAll { !($0.host.flatMap { HostPattern($0) }?.overlaps(wanted) ?? false) }
        }
        if self.console.json {
            try self.console.print(json: limits)
        } else if changes.isEmpty {
            for line in LimitText.lines(limits, of: wanted) { self.console.out.line(line) }
        }
        return .success
    }

    func sayNothingRuns() {
        self.console.note(
            "nothing will run this yet, since no daemon works on the queue\n"
                + "'ferry run' carries the queue out; 'ferry service install' sets up a service that always does"
        )
    }
}

/// `ferry list --json`.
struct ListDocument: Encodable {
    var type = "list"
    var jobs: [JobDocument]
    var counts: CountsDocument
}

/// `ferry log --json`.
struct LogDocument: Encodable {
    var type = "log"
    var job: JobDocument
    var attempts: [AttemptDocument]
    var events: [EventDocument]
}
