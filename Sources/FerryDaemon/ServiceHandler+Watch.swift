import FerryControl
import FerryCore
import FerryEngine
import FerryStore

extension ServiceHandler {
    /// The part of the queue that a looker asks for, who is told of changes from now on.
    func watch(_ query: WatchQuery, _ client: ClientID) async throws -> WatchedDocument {
        // First the subscription, then the look: what happens in between is told twice rather than never.
        self.subscriptions.watch(client, query, engine: self.engine)
        let overview = try await self.engine.overview(
            OverviewFilter(
                jobs: query.jobs,
                groups: query.groups,
                words: query.words,
                limit: query.limit,
                failedSince: EngineTime.real.now() + (.zero - Self.recent),
                endedSince: query.endedSince
            )
        )
        return WatchedDocument(
            jobs: overview.jobs.map { JobDocument($0) },
            counts: CountsDocument(
                states: Dictionary(
                    uniqueKeysWithValues: JobState.allCases.map { ($0.rawValue, overview.counts[$0] ?? 0) }
                )
            ),
            groups: overview.groups.map { group in
                let states = group.counts.map { ($0.key.rawValue, $0.value) }
                return GroupDocument(name: group.name, states: Dictionary(uniqueKeysWithValues: states))
            }
        )
    }
}
