import FerryCore
import Synchronization

/// The hosts that are left alone until some time, as known to those who are not the engine.
final class HostPauses: Sendable {
    private let pauses = Mutex<[String: Engine.HostPause]>([:])

    /// Sets a host's pause; nil is none.
    func set(_ host: String, _ pause: Engine.HostPause?) {
        self.pauses.withLock { $0[host] = pause }
    }

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
}
