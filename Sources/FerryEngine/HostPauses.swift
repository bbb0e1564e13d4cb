import FerryCore
import Synchronization

/// The hosts that are left alone until some time, for transfers that are about to go to one.
final class HostPauses: Sendable {
    private let times = Mutex<[String: Timestamp]>([:])

    /// Sets until when; nil is not at all.
    func set(_ host: String, _ time: Timestamp?) {
        self.times.withLock { $0[host] = time }
    }

    /// How much longer a host is left alone; nil if it is not.
    func rest(of host: String, at now: Timestamp) -> Duration? {
        self.times.withLock { times in times[host].flatMap { $0 > now ? $0 - now : nil } }
    }

    /// All that are known.
    var hosts: [String] { self.times.withLock { Array($0.keys) } }
}

extension TransferServices {
    /// Refuses to follow a redirect to a host that is left alone.
    func checkPause(of address: WebAddress) throws(TransferFailure) {
        let host = address.origin.hostAndPort
        guard let rest = self.pauses.rest(of: host, at: self.time.now()) else { return }
        throw TransferFailure(.hostPaused(host, rest: rest))
    }
}
