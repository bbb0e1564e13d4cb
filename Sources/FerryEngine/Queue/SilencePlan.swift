import FerryCore

/// Decides which jobs that have no connection yet give their places to others.
///
/// Nobody does unless another host's job waits that is no less important. A host gives its place up twice; then its
/// next job has all the time that a connection may take, in one of the few places that such hosts share, so that a
/// slow line is found, and a dead one is told as an error.
struct SilencePlan {
    /// A job that runs and has no connection yet.
    struct Holder: Equatable {
        let id: JobID
        let host: String
        let priority: Int
        /// How long it has been asking for one.
        let silence: Duration
        /// How often jobs of its host have given their place up since the host answered.
        var silences = 0
        /// Whether its host has failed or been silent, and not answered since.
        var isSuspect = false
    }

    /// A host whose next job waits for a place.
    struct Rival: Equatable {
        let host: String
        let priority: Int
    }

    /// Who gives way.
    struct Verdict: Equatable {
        var yielding: [JobID] = []
        /// How long it is until another one may have to; nil if none will.
        var next: Duration?
    }

    let patience: ConnectPatience
    /// The places of suspect hosts while others wait.
    let share: Int

    /// Decides.
    ///
    /// - Parameters:
    ///   - holders: All that have no connection.
    ///   - rivals: Hosts that are not suspect and wait for a place, the next one first.
    ///   - suspects: Suspect hosts that wait for one of theirs, the next one first.
    /// - Returns: The jobs that give way, and when to look again.
    func decide(_ holders: [Holder], rivals: [Rival], suspects: [Rival]) -> Verdict {
        var verdict = Verdict()
        // Beyond their share suspects have their places only as long as nobody else wants them.
        let patient = holders.filter(\.isSuspect).sorted {
            ($1.priority, $1.silence) < ($0.priority, $0.silence)
        }
        let excess = Set(patient.dropFirst(self.share).map(\.id))
        var left = holders
        self.match(&left, rivals, &verdict) {
            $0.isSuspect && !excess.contains($0.id) ? nil : self.patience.first
        }
        self.match(&left, suspects, &verdict) {
            $0.isSuspect && $0.silences == 1 ? self.patience.second : nil
        }
        return verdict
    }

    /// Finds a place for each rival, as long as there is one.
    private func match(
        _ left: inout [Holder],
        _ rivals: [Rival],
        _ verdict: inout Verdict,
        limit: (Holder) -> Duration?
    ) {
        guard !rivals.isEmpty else { return }
        var candidates: [Holder] = []
        for holder in left {
            guard let limit = limit(holder) else { continue }
            if holder.silence >= limit {
                candidates.append(holder)
            } else {
                verdict.next = min(verdict.next ?? .seconds(3_600), limit - holder.silence)
            }
        }
        // The least important first, of these the one that has waited longest.
        candidates.sort { ($0.priority, $1.silence) < ($1.priority, $0.silence) }
        for rival in rivals {
            guard
                let index = candidates.firstIndex(where: {
                    $0.priority <= rival.priority && $0.host != rival.host
                })
            else { continue }
            let id = candidates.remove(at: index).id
            left.removeAll { $0.id == id }
            verdict.yielding.append(id)
        }
    }
}
