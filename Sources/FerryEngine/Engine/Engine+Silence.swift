import FerryCore
import FerryHTTP

/// What the engine keeps of connections that are waited for.
struct Silence {
    /// How long one may take while others wait for the place.
    var patience = ConnectPatience()
    /// Looks again.
    var timer: Task<Void, Never>?
    /// The number of the look that the timer is for.
    var turn = 0
}

extension Engine {
    /// The time between two looks is never shorter.
    private static let leastSilence = Duration.milliseconds(10)

    /// Whether a job runs that has no connection.
    var isSilent: Bool {
        self.running.values.contains { running in
            if case .made = running.contact { false } else { true }
        }
    }

    /// Lets jobs that have no connection give their places to those of other hosts that wait, when it is time for
    /// that; to be called when no more jobs can be claimed.
    func lookForSilence() {
        guard self.silence.timer == nil, !self.isStopping else { return }
        let now = self.services.time.monotonic()
        var holders: [SilencePlan.Holder] = []
        var mayBegin = false
        // Places that will be free in a moment.
        var ending = 0
        for (id, running) in self.running {
            guard running.stopEvent == nil else {
                ending += 1
                continue
            }
            switch running.contact {
            case .made: continue
            case .none: mayBegin = true
            case .asking(let since):
                let budget = self.queue.budget(of: running.host)
                holders.append(
                    SilencePlan.Holder(
                        id: id,
                        host: running.host,
                        priority: running.priority,
                        silence: now - since,
                        silences: budget.silences,
                        isSuspect: budget.isSuspect
                    )
                )
            }
        }
        guard mayBegin || !holders.isEmpty else { return }
        let places = self.services.configuration.running
        var (rivals, suspects) = self.queue.rivals(max(1, holders.count) + ending, places: places)
        rivals.removeFirst(min(ending, rivals.count))
        suspects.removeFirst(min(ending, suspects.count))
        // There are places, and they are waited for only because a command holds the jobs.
        if self.running.count < places { rivals = [] }
        guard !rivals.isEmpty || !suspects.isEmpty else { return }
        let share = SuspectLane.share(of: places, isWanted: !rivals.isEmpty)
        let verdict = SilencePlan(patience: self.silence.patience, share: share)
            .decide(holders, rivals: rivals, suspects: suspects)
        if !verdict.yielding.isEmpty {
            self.silence.turn += 1
            let turn = self.silence.turn
            self.silence.timer = Task { await self.yield(verdict.yielding, turn) }
        } else if let next = verdict.next ?? (mayBegin ? self.silence.patience.first : nil) {
            self.silence.turn += 1
            let turn = self.silence.turn
            let time = self.services.time
            self.silence.timer = Task { [weak self] in
                do {
                    try await time.sleep(max(next, Self.leastSilence))
                } catch {
                    return  // the engine stops, or another look takes its place
                }
                await self?.lookAgain(turn)
            }
        }
    }

    /// Lets jobs give their places up, unless a connection stands that nobody has seen yet.
    private func yield(_ ids: [JobID], _ turn: Int) async {
        // On a busy machine the loop may be behind; after two rounds it has taken up what had come before.
        await self.services.loop.ping()
        await self.services.loop.ping()
        for id in ids {
            guard let running = self.running[id], case .asking = running.contact else { continue }
            running.yield()
        }
        self.lookAgain(turn)
    }

    private func lookAgain(_ turn: Int) {
        guard turn == self.silence.turn else { return }  // another look has taken its place
        self.silence.timer = nil
        self.lookForSilence()
    }

    /// Takes up how long a connection took that was made just now.
    func connectionTook(_ time: Duration) {
        let before = self.silence.patience.first
        self.silence.patience.took(time)
        guard self.silence.patience.first < before / 2 else { return }
        self.silence.timer?.cancel()
        self.lookAgain(self.silence.turn)
    }
}
