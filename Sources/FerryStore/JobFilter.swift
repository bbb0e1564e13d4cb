public import FerryCore

/// Which jobs a list holds; an empty filter means all.
public struct JobFilter: Sendable, Equatable {
    /// Only these; empty: any.
    public var jobs: [JobID]
    /// Only in these states; empty: any.
    public var states: [JobState]
    /// Only of these groups; empty: any.
    public var groups: [String]
    /// Only to this host: `name` on any port, or `name:port`.
    public var host: String?
    /// Leaves out jobs that ended before this, failed ones too.
    public var endedAfter: Timestamp?
    /// Only the newest n.
    public var limit: Int?
    /// Only older ones, by their number: the next page.
    public var before: JobID?

    /// Makes a filter; the default lets all jobs through.
    public init(
        jobs: [JobID] = [],
        states: [JobState] = [],
        groups: [String] = [],
        host: String? = nil,
        endedAfter: Timestamp? = nil,
        limit: Int? = nil,
        before: JobID? = nil
    ) {
        self.jobs = jobs
        self.states = states
        self.groups = groups
        self.host = host
        self.endedAfter = endedAfter
        self.limit = limit
        self.before = before
    }
}
