public import FerryCore

/// What somebody who only looks wants to see: a bounded part of the queue that begins with what is at work.
public struct WatchQuery: Codable, Sendable, Equatable {
    /// Only these jobs, in any state; empty: any.
    public var jobs: [JobID]
    /// Only jobs of these groups; empty: any.
    public var groups: [String]
    /// Words that must each be found in URL, path, group or state, in any case; empty: no condition.
    public var words: [String]
    /// The most jobs of each state; those that run are always all there.
    public var limit: Int
    /// Also jobs that were completed or cancelled since then; nil: none.
    public var endedSince: Timestamp?
    /// Whether each event is told with its job; else only that something has changed.
    public var events: Bool

    /// Makes a query; the default asks for what is at work in the whole queue.
    public init(
        jobs: [JobID] = [],
        groups: [String] = [],
        words: [String] = [],
        limit: Int,
        endedSince: Timestamp? = nil,
        events: Bool = false
    ) {
        self.jobs = jobs
        self.groups = groups
        self.words = words
        self.limit = limit
        self.endedSince = endedSince
        self.events = events
    }
}

/// The answer to ``ControlRequest/watch(_:)``.
public struct WatchedDocument: Codable, Sendable, Equatable {
    /// The jobs by their numbers; of those that wait for their turn, the next ones.
    public var jobs: [JobDocument]
    /// Numbers of jobs by state in the groups asked for, or in the whole queue; words do not change them.
    public var counts: CountsDocument
    /// The same for each group, by name; the first thousand.
    public var groups: [GroupDocument]

    /// Makes an answer.
    public init(jobs: [JobDocument], counts: CountsDocument, groups: [GroupDocument]) {
        self.jobs = jobs
        self.counts = counts
        self.groups = groups
    }
}

/// Numbers of a group's jobs.
public struct GroupDocument: Codable, Sendable, Equatable {
    /// The group.
    public var name: String
    /// Numbers by state; a state without jobs may be missing.
    public var states: [String: Int64]

    /// Makes a document.
    public init(name: String, states: [String: Int64]) {
        self.name = name
        self.states = states
    }
}
