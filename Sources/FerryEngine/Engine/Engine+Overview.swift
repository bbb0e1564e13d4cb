public import FerryStore

extension Engine {
    /// A bounded part of the queue for somebody who looks at it.
    public struct Overview: Sendable {
        /// The jobs by their numbers, with what only their running transfers know.
        public let jobs: [Snapshot]
        /// Numbers of jobs by state.
        public let counts: JobCounts
        /// The groups, by name.
        public let groups: [GroupCounts]
    }

    /// What is at work, what comes next, and how much there is; its cost does not grow with the queue, unless
    /// words have to be looked for.
    public func overview(_ filter: OverviewFilter) async throws -> Overview {
        let (rows, counts, groups) = try await self.services.store.read { reader in
            let groups = try reader.groupCounts(limit: 1_000, only: filter.groups)
            return (try reader.overview(filter), try reader.counts(groups: filter.groups), groups)
        }
        return Overview(
            jobs: rows.map { self.snapshot($0, nil) },
            counts: counts,
            groups: groups
        )
    }
}
