import FerryEngine
import FerryHTTP
import FerryStore
import Glibc
import Synchronization

/// Asks the parts of the service whether they live, and feeds the watchdog when all have answered.
final class HealthCheck: Sendable {
    /// One part: what makes it answer, and only if it works.
    struct Part: Sendable {
        let name: HangPoint.Part
        let ask: @Sendable () async -> Void
    }

    private let parts: [Part]
    private let silent = Mutex<Set<HangPoint.Part>>([])
    private let feed: @Sendable () -> Void

    /// Makes a check of these parts; `feed` is called each time that all have answered.
    init(_ parts: [Part], feed: @escaping @Sendable () -> Void) {
        self.parts = parts
        self.feed = feed
    }

    /// The parts without which nothing is transferred.
    static func parts(_ engine: Engine, _ loop: NetworkLoop, _ store: JobStore, _ hang: HangPoint) -> [Part] {
        [
            Part(name: .loop) { await loop.ping { hang.reach(.loop) } },
            Part(name: .store) { await store.ping { hang.reach(.store) } },
            Part(name: .engine) { await engine.ping { hang.reach(.engine) } },
        ]
    }

    /// Asks all parts, unless some have not answered the last time: those are returned, and asked no more.
    func ask() -> [HangPoint.Part] {
        let silent = self.silent.withLock { silent in
            defer { if silent.isEmpty { silent = Set(self.parts.map(\.name)) } }
            return silent
        }
        guard silent.isEmpty else { return HangPoint.Part.allCases.filter(silent.contains) }
        for part in self.parts {
            Task(priority: .medium) {
                await part.ask()
                let isLast = self.silent.withLock { silent in
                    silent.remove(part.name)
                    return silent.isEmpty
                }
                if isLast { self.feed() }
            }
        }
        return []
    }
}

/// Makes a part of the service hang when a test asks for it, so that the watchdog can be seen to bite.
///
/// `FERRY_HANG_POINT=loop` in a daemon's environment blocks the network thread the first time that the watchdog's
/// check comes there, `store:3` the database's queue the third time. Without a watchdog nothing is checked.
final class HangPoint: Sendable {
    /// What can hang.
    enum Part: String, Sendable, CaseIterable {
        /// The network's thread.
        case loop
        /// The database's queues.
        case store
        /// The engine.
        case engine
    }

    private let part: Part?
    private let left: Atomic<Int>

    /// Reads `part` or `part:3`; nil, or a name that is none, hangs nowhere.
    init(_ text: String?) {
        let words = (text ?? "").split(separator: ":")
        self.part = words.first.flatMap { Part(rawValue: String($0)) }
        self.left = Atomic(words.count > 1 ? Int(words[1]) ?? 1 : 1)
    }

    /// Says that the check is there; does not return if this is where it hangs.
    func reach(_ part: Part) {
        guard part == self.part, self.left.subtract(1, ordering: .relaxed).newValue == 0 else { return }
        while true { pause() }
    }
}
