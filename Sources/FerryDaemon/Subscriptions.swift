import FerryControl
import FerryCore
import FerryEngine
import FerryStore
import Synchronization

/// Who wants to be told what; hands committed changes and progress on to the control server.
final class Subscriptions: Sendable {
    private struct Subscription {
        var jobs: Set<JobID>?
        var progress: Bool
        /// Only events of these groups; empty: of any.
        var groups: Set<String> = []
        /// Whether it is enough to say once that something has changed.
        var hints = false
        var isStale = false
        var sent: [JobID: ProgressDocument] = [:]

        func wants(_ job: JobID?) -> Bool {
            guard let jobs else { return true }
            return job.map { jobs.contains($0) } ?? false
        }

        func wants(_ change: JobChange) -> Bool {
            guard self.wants(change.event.job) else { return false }
            return self.groups.isEmpty || change.job?.group.map { self.groups.contains($0) } ?? false
        }
    }

    private struct State {
        var server: ControlServer?
        var subscriptions: [ClientID: Subscription] = [:]
        var ticker: Task<Void, Never>?
    }

    private let state = Mutex(State())
    /// How often progress is sent at most.
    private static let interval = Duration.milliseconds(100)

    /// Names the server, once it exists.
    func connect(_ server: ControlServer) {
        self.state.withLock { $0.server = server }
    }

    /// Adds jobs to what a client is told of; nil = all.
    func add(_ client: ClientID, jobs: [JobID]?, progress: Bool, engine: Engine) {
        self.state.withLock { state in
            var subscription = state.subscriptions[client] ?? Subscription(jobs: [], progress: false)
            if let jobs {
                subscription.jobs?.formUnion(jobs)
            } else {
                subscription.jobs = nil
            }
            subscription.progress = subscription.progress || progress
            state.subscriptions[client] = subscription
            if progress, state.ticker == nil { state.ticker = self.tick(engine) }
        }
    }

    /// Sets what a client that looks at the queue is told of.
    func watch(_ client: ClientID, _ query: WatchQuery, engine: Engine) {
        self.state.withLock { state in
            var subscription = Subscription(jobs: query.jobs.isEmpty ? nil : Set(query.jobs), progress: true)
            subscription.groups = Set(query.groups)
            subscription.hints = !query.events
            state.subscriptions[client] = subscription
            if state.ticker == nil { state.ticker = self.tick(engine) }
        }
    }

    /// Forgets a client.
    func remove(_ client: ClientID) {
        self.state.withLock { state in
            state.subscriptions[client] = nil
            guard !state.subscriptions.values.contains(where: \.progress) else { return }
            state.ticker?.cancel()
            state.ticker = nil
        }
    }

    /// Tells subscribers of committed changes.
    func publish(_ changes: [JobChange]) {
        for change in changes {
            let (server, clients) = self.state.withLock { state in
                var clients: [ClientID] = []
                for client in state.subscriptions.keys {
                    if let job = change.event.job { state.subscriptions[client]?.sent[job] = nil }
                    guard let subscription = state.subscriptions[client], subscription.wants(change) else {
                        continue
                    }
                    if subscription.hints {
                        state.subscriptions[client]?.isStale = true
                    } else {
                        clients.append(client)
                    }
                }
                return (state.server, clients)
            }
            guard let server, !clients.isEmpty else { continue }
            server.notify(clients, .event(EventDocument(change.event), job: JobDocument(change)))
        }
    }

    /// Sends progress while anyone wants it; a service without watchers is never woken.
    private func tick(_ engine: Engine) -> Task<Void, Never> {
        Task { [weak self] in
            var pauses = await engine.pausesVersion
            while !Task.isCancelled {
                let version = await engine.pausesVersion
                if version != pauses {
                    pauses = version
                    self?.pausesChanged()
                }
                let progress = await engine.progress().map { ProgressDocument($0) }
                self?.send(progress)
                do {
                    try await Task.sleep(for: Self.interval)
                } catch {
                    return  // nobody wants progress any more
                }
            }
        }
    }

    private func send(_ progress: [ProgressDocument]) {
        self.sendHints()
        guard !progress.isEmpty else { return }
        let (server, outgoing) = self.state.withLock { state in
            var outgoing: [(ClientID, [ProgressDocument])] = []
            for (client, subscription) in state.subscriptions where subscription.progress {
                let news = progress.filter { subscription.wants($0.id) && subscription.sent[$0.id] != $0 }
                guard !news.isEmpty else { continue }
                for document in news { state.subscriptions[client]?.sent[document.id] = document }
                outgoing.append((client, news))
            }
            return (state.server, outgoing)
        }
        for (client, news) in outgoing { server?.notify(client, .progress(news)) }
    }

    /// Lets those who see queued jobs ask again what these wait for: the pause of a host is in no event of theirs.
    private func pausesChanged() {
        self.state.withLock { state in
            for (client, subscription) in state.subscriptions
            where subscription.hints || subscription.jobs != nil {
                state.subscriptions[client]?.isStale = true
            }
        }
    }

    /// Says that something has changed to those who are to ask for it; a second time only after they did.
    private func sendHints() {
        let (server, clients) = self.state.withLock { state in
            let clients = state.subscriptions.filter { $0.value.isStale }.map(\.key)
            for client in clients { state.subscriptions[client]?.isStale = false }
            return (state.server, clients)
        }
        server?.notify(clients, .changed)
    }
}
