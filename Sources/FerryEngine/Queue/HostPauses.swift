import FerryCore
import Synchronization

/// The hosts that are left alone until some time, as known to those who are not the engine.
final class HostPauses: Sendable {
    private let pauses = Mutex<[String: Engine.HostPause]>([:])
    private let changes = Atomic<UInt64>(0)

    /// Sets a host's pause; nil is none.
    func set(_ host: String, _ pause: Engine.HostPause?) {
        let isNew = self.pauses.withLock { pauses in
            defer { pauses[host] = pause }
            return pauses[host] != pause
        }
        if isNew { self.changes.add(1, ordering: .relaxed) }
    }

    /// How often any of them has changed.
    var version: UInt64 { self.changes.load(ordering: .relaxed) }

    /// How much longer a host is left alone; nil if it is not.
    func rest(of host: String, at now: Timestamp) -> Duration? {
        self.pauses.withLock { pauses in
            pauses[host]?.until.flatMap { $0 > now ? $0 - now : nil }
        }
    }

    /// Why and how long a host is left alone; nil if it is not.
    func pause(of host: String, at now: Timestamp) -> Engine.HostPause? {
        self.pauses.withLock { pauses in
            pauses[host].flatMap { $0.until.map { $0 > now } == true ? $0 : nil }
        }
    }

    /// All that are known.
    var hosts: [String] { self.pauses.withLock { Array($0.keys) } }
}

extension TransferServices {
    /// Refuses to follow a redirect to a host that is left alone.
    func checkPause(of address: WebAddress) throws(TransferFailure) {
        let host = address.origin.hostAndPort
        guard let rest = self.pauses.rest(of: host, at: self.time.now()) else { return }
        throw TransferFailure(.hostPaused(host, rest: rest))
    }

    /// A pause that a proof waits for: whoever has given the URL may sit at a terminal.
    static let shortPause = Duration.seconds(5)

    /// Lets a short pause of a host pass, and refuses to ask it before the end of a longer one.
    ///
    /// Where a person wants it asked, only a pause counts that the host itself has wished for.
    func awaitPause(of host: String, isForPerson: Bool) async throws {
        func left() -> (pause: Engine.HostPause, rest: Duration)? {
            let now = self.time.now()
            guard let pause = self.pauses.pause(of: host, at: now), pause.isAsked || !isForPerson,
                let until = pause.until
            else { return nil }
            return (pause, until - now)
        }
        if let rest = left()?.rest, rest <= Self.shortPause { try await self.time.sleep(rest) }
        guard let (pause, rest) = left() else { return }
        let message = "\(pause.message), and is not asked for another \(DurationText.format(rest))"
        throw TransferFailure(.hostPaused(host, rest: rest), message: message)
    }
}
