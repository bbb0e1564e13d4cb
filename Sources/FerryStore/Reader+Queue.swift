public import FerryCore

extension Reader {
    /// The queries that the scheduler's speed hangs on; tests pin the index that each walks.
    enum Query {
        static let running = """
            SELECT \(JobRecord.columns) FROM job
            WHERE state = 'running' AND state NOT IN ('completed', 'cancelled') ORDER BY id
            """
        static let due = """
            SELECT \(JobRecord.columns) FROM job WHERE state = 'waiting' AND next_try <= ?
            ORDER BY next_try, id LIMIT ?
            """
        static let nextDue = """
            SELECT next_try FROM job WHERE state = 'waiting' AND next_try IS NOT NULL
            ORDER BY next_try LIMIT 1
            """
        static let queuedHosts =
            "SELECT name FROM counter WHERE scope = 'host' AND state = 'queued' ORDER BY name"
        static let queuedHeads = """
            SELECT id, priority FROM job WHERE state = 'queued' AND host = ?
            ORDER BY priority DESC, id LIMIT ?
            """
        static let sameTransfer = """
            SELECT \(JobRecord.columns) FROM job_request JOIN job ON job.id = job_request.job
            WHERE job_request.url_fingerprint = ? AND job_request.directory = ? AND job_request.output IS ?
            ORDER BY job_request.job DESC
            """
    }

    /// The jobs of one whole URL, folder and `-o`, newest first, in any state.
    public final func sameTransfer(
        fingerprint: String,
        directory: String,
        output: String?
    ) throws -> [JobRecord] {
        try self.connection.rows(
            Query.sameTransfer,
            [fingerprint, directory, output],
            JobRecord.init(row:)
        )
    }

    /// The jobs that run, oldest first.
    public final func runningJobs() throws -> [JobRecord] {
        try self.connection.rows(Query.running, [], JobRecord.init(row:))
    }

    /// The waiting jobs that are due at or before a time, the longest due first.
    public final func dueJobs(before time: Timestamp, limit: Int) throws -> [JobRecord] {
        try self.connection.rows(Query.due, [time, limit], JobRecord.init(row:))
    }

    /// When the next waiting job is due; nil if none has a time.
    public final func nextDue() throws -> Timestamp? {
        try self.connection.first(Query.nextDue) { $0.time() }
    }

    /// The hosts that have queued jobs, by name; read from the counters.
    public final func queuedHosts() throws -> [String] {
        try self.connection.rows(Query.queuedHosts) { $0.text() }
    }

    /// Numbers of all jobs by state, in constant work; every state has one.
    public final func counts() throws -> [JobState: Int64] {
        try self.counts(scope: "all", name: "")
    }

    /// Numbers of a host's jobs by state, in constant work; every state has one.
    public final func counts(host: String) throws -> [JobState: Int64] {
        try self.counts(scope: "host", name: host)
    }

    /// Numbers of a group's jobs by state, in constant work; every state has one.
    public final func counts(group: String) throws -> [JobState: Int64] {
        try self.counts(scope: "group", name: group)
    }

    private func counts(scope: String, name: String) throws -> [JobState: Int64] {
        var counts: [JobState: Int64] = [:]
        for state in JobState.allCases {
            counts[state] =
                try self.connection.first(
                    "SELECT count FROM counter WHERE scope = ? AND state = ? AND name = ?",
                    [scope, state, name]
                ) { $0.integer() } ?? 0
        }
        return counts
    }
}

extension JobFilter {
    /// The filter as a query, newest first.
    ///
    /// The words of states are written out: only then
    /// does SQLite see that the partial index of live jobs serves (sqlite.org/partialindex.html §3).
    var query: (sql: String, values: [any SQLBindable]) { self.query(of: JobRecord.columns) }

    /// The same for other columns of the job table.
    func query(of columns: String) -> (sql: String, values: [any SQLBindable]) {
        var conditions: [String] = []
        var values: [any SQLBindable] = []
        if !self.jobs.isEmpty {
            conditions.append("id IN (SELECT value FROM json_each(?))")
            values.append("[" + self.jobs.map(\.description).joined(separator: ",") + "]")
        }
        if !self.states.isEmpty {
            let words = JobState.allCases.filter(self.states.contains).map { "'\($0.rawValue)'" }
            conditions.append("state IN (\(words.joined(separator: ", ")))")
            if !self.states.contains(where: \.isFinal) {
                conditions.append("state NOT IN ('completed', 'cancelled')")
            }
        }
        if !self.groups.isEmpty {
            let parameters = Array(repeating: "?", count: self.groups.count).joined(separator: ", ")
            conditions.append("group_name IN (\(parameters))")
            values += self.groups
        }
        if let host = self.host {
            if let pattern = HostPattern(host), pattern.port == nil {
                conditions.append("host > ? AND host < ?")
                values += ["\(pattern.name):", "\(pattern.name);"]  // a semicolon follows the colon in ASCII
            } else {
                conditions.append("host = ?")
                values.append(HostPattern(host)?.description ?? host)
            }
        }
        if let before = self.before {
            conditions.append("id < ?")
            values.append(before)
        }
        if let endedAfter = self.endedAfter {
            conditions.append("(finished_at IS NULL OR finished_at >= ?)")
            values.append(endedAfter)
        }
        values.append(self.limit ?? -1)
        let filter = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
        return ("SELECT \(columns) FROM job\(filter) ORDER BY id DESC LIMIT ?", values)
    }
}
