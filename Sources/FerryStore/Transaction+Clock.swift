public import FerryCore

extension WaitReason {
    /// Whether the wait is a span from when it began; else the time itself counts, whatever the clock shows until then.
    var isSpan: Bool {
        switch self {
        case .retry, .host, .network, .disk, .auth: true
        case .schedule: false
        }
    }

    /// Those that are spans, for a condition in SQL.
    fileprivate static let spans = WaitReason.allCases.filter(\.isSpan).map { "'\($0.rawValue)'" }
        .joined(separator: ", ")
}

extension Transaction {
    /// Moves what was measured from a clock that was set since: due times, pauses of hosts, deadlines, and the times
    /// since which there was no progress.
    ///
    /// Times that a person named stay as they are, and so does what is only shown.
    public func shiftWaits(byMilliseconds jump: Int64) throws {
        try self.connection.run(
            """
            UPDATE job SET next_try = next_try + ?
            WHERE state = 'waiting' AND wait_reason IN (\(WaitReason.spans)) AND next_try IS NOT NULL
            """,
            jump
        )
        try self.connection.run(
            """
            UPDATE job SET progress_at = coalesce(progress_at, created_at) + ?
            WHERE state NOT IN ('completed', 'cancelled')
            """,
            jump
        )
        try self.connection.run(
            "UPDATE host SET paused_until = paused_until + ? WHERE paused_until IS NOT NULL",
            jump
        )
        try self.connection.run(
            """
            UPDATE job_request SET request = json_set(request, '$.deadlineAtMs',
                json_extract(request, '$.deadlineAtMs') + ?)
            WHERE instr(request, '"deadlineAtMs":') > 0
                AND job IN (SELECT id FROM job WHERE state NOT IN ('completed', 'cancelled'))
            """,
            jump
        )
    }

    /// Brings due times that are further away than any wait can be to that time.
    ///
    /// A clock that ran ahead when they were stored makes such ones.
    public func capWaits(at latest: Timestamp) throws {
        try self.connection.run(
            """
            UPDATE job SET next_try = ?
            WHERE state = 'waiting' AND wait_reason IN (\(WaitReason.spans)) AND next_try > ?
            """,
            latest,
            latest
        )
        try self.connection.run("UPDATE host SET paused_until = ? WHERE paused_until > ?", latest, latest)
    }
}

extension Reader {
    /// What is known of the hosts that are paused, or were until something proves that they need not be.
    public final func pausedHosts() throws -> [HostRecord] {
        try self.connection.rows(
            "SELECT \(HostRecord.columns) FROM host WHERE paused_until IS NOT NULL OR backoff_level > 0",
            [],
            HostRecord.init(row:)
        )
    }

    /// The deadlines of jobs that are not final, among the next `limit` requests after that of a job.
    ///
    /// - Returns: The deadlines, and the last job that was looked at; nil after the end.
    public final func deadlines(after job: JobID, limit: Int) throws -> ([(JobID, Timestamp)], last: JobID?) {
        let last = try self.connection.first(
            "SELECT max(job) FROM (SELECT job FROM job_request WHERE job > ? ORDER BY job LIMIT ?)",
            [job, limit]
        ) { $0.optionalInteger() }
        guard let last = last.flatMap(\.self) else { return ([], nil) }
        let end = JobID(rawValue: last)
        let found = try self.connection.rows(
            """
            SELECT job_request.job, json_extract(request, '$.deadlineAtMs')
            FROM job_request JOIN job ON job.id = job_request.job
            WHERE job_request.job > ? AND job_request.job <= ? AND instr(request, '"deadlineAtMs":') > 0
                AND job.state NOT IN ('completed', 'cancelled')
            """,
            [job, end]
        ) { ($0.job(), $0.optionalTime()) }
        return (found.compactMap { id, time in time.map { (id, $0) } }, end)
    }
}
