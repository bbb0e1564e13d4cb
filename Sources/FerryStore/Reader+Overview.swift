public import FerryCore

/// Numbers of jobs by state.
public typealias JobCounts = [JobState: Int64]

/// Numbers of a group's jobs.
public struct GroupCounts: Sendable, Equatable {
    /// The group.
    public let name: String
    /// Numbers by state; a state without jobs is missing.
    public var counts: JobCounts
}

/// Which jobs an overview holds.
public struct OverviewFilter: Sendable, Equatable {
    /// Only these, in any state; empty: any.
    public var jobs: [JobID]
    /// Only of these groups; empty: any.
    public var groups: [String]
    /// Each must be found in URL, path, group or state.
    public var words: [String]
    /// The most jobs of each state but running.
    public var limit: Int
    /// Leaves out jobs that failed before.
    public var failedSince: Timestamp
    /// Leaves out jobs that were completed or cancelled before; nil: all of them.
    public var endedSince: Timestamp?

    /// Makes a filter.
    public init(
        jobs: [JobID] = [],
        groups: [String] = [],
        words: [String] = [],
        limit: Int,
        failedSince: Timestamp,
        endedSince: Timestamp? = nil
    ) {
        self.jobs = jobs
        self.groups = groups
        self.words = words
        self.limit = limit
        self.failedSince = failedSince
        self.endedSince = endedSince
    }

    /// The queries that together give the jobs, each walking an index of its state.
    ///
    /// The queued ones are those that run next, and found in an index that holds all that their order needs. Words
    /// of states are written out: only then do partial indexes serve (sqlite.org/partialindex.html §3).
    var queries: [(sql: String, values: [any SQLBindable])] {
        var values: [any SQLBindable] = []
        var conditions = ""
        if !self.groups.isEmpty {
            let parameters = Array(repeating: "?", count: self.groups.count).joined(separator: ", ")
            conditions += " AND group_name IN (\(parameters))"
            values += self.groups
        }
        for word in self.words {
            let columns = ["url", "path", "group_name", "state"]
            let likes = columns.map { "\($0) LIKE ? ESCAPE '\\'" }.joined(separator: " OR ")
            conditions += " AND (\(likes))"
            values += Array(repeating: Self.pattern(word), count: columns.count)
        }
        let columns = "SELECT \(JobRecord.columns) FROM job WHERE "
        guard self.jobs.isEmpty else {
            let numbers = "[" + self.jobs.map(\.description).joined(separator: ",") + "]"
            return [
                (
                    "\(columns)id IN (SELECT value FROM json_each(?))\(conditions) ORDER BY id",
                    [numbers] + values
                )
            ]
        }
        func live(_ state: JobState) -> String {
            "\(columns)state = '\(state.rawValue)' AND state NOT IN ('completed', 'cancelled')\(conditions)"
        }
        let next = "SELECT id FROM job INDEXED BY job_queued WHERE state = 'queued'\(conditions)"
        var queries: [(sql: String, values: [any SQLBindable])] = [
            ("\(live(.running)) ORDER BY id", values),
            ("\(live(.waiting)) ORDER BY id LIMIT ?", values + [self.limit]),
            ("\(live(.paused)) ORDER BY id LIMIT ?", values + [self.limit]),
            (
                "\(live(.failed)) AND finished_at >= ? ORDER BY id DESC LIMIT ?",
                values + [self.failedSince, self.limit]
            ),
            ("\(columns)id IN (\(next) ORDER BY priority DESC, id LIMIT ?)", values + [self.limit]),
        ]
        if let endedSince {
            queries.append(
                (
                    "\(columns)finished_at >= ? AND state IN ('completed', 'cancelled')\(conditions) "
                        + "ORDER BY finished_at DESC LIMIT ?",
                    [endedSince] + values + [self.limit]
                )
            )
        }
        return queries
    }

    /// A word anywhere in a text, for LIKE.
    private static func pattern(_ word: String) -> String {
        var pattern = "%"
        for character in word {
            if "%_\\".contains(character) { pattern.append("\\") }
            pattern.append(character)
        }
        return pattern + "%"
    }
}

extension Reader {
    /// The jobs of an overview by their numbers.
    public final func overview(_ filter: OverviewFilter) throws -> [JobRecord] {
        var jobs: [JobRecord] = []
        for query in filter.queries {
            jobs += try self.connection.rows(query.sql, query.values, JobRecord.init(row:))
        }
        return jobs.sorted { $0.id < $1.id }
    }

    /// The numbers of the jobs of at most `limit` groups, or of `groups` alone, by name; read from the counters.
    public final func groupCounts(limit: Int, only groups: [String] = []) throws -> [GroupCounts] {
        var found: [String: JobCounts] = [:]
        if groups.isEmpty {
            let rows = try self.connection.rows(
                """
                SELECT name, state, count FROM counter WHERE scope = 'group' AND name IN
                    (SELECT DISTINCT name FROM counter WHERE scope = 'group' ORDER BY name LIMIT ?)
                """,
                [limit]
            ) { ($0.text(), JobState(rawValue: $0.text()), $0.integer()) }
            for (name, state, count) in rows {
                if let state { found[name, default: [:]][state] = count }
            }
        } else {
            for group in groups.prefix(limit) {
                found[group] = try self.counts(group: group).filter { $0.value > 0 }
            }
        }
        return found.map { GroupCounts(name: $0.key, counts: $0.value) }.sorted { $0.name < $1.name }
    }

    /// Numbers of jobs by state, of these groups or of all jobs where none is named.
    public final func counts(groups: [String]) throws -> JobCounts {
        guard !groups.isEmpty else { return try self.counts() }
        return try Set(groups).reduce(into: [:]) { sum, group in
            sum.merge(try self.counts(group: group)) { $0 + $1 }
        }
    }
}
