import CFerryLinux
import Glibc

/// Who is at the other end of a control socket, as the kernel saw it when the connection was made (unix(7)).
struct PeerCredentials: Equatable, Sendable {
    /// The user.
    var user: uid_t
    /// The primary group.
    var group: gid_t
    /// The supplementary groups.
    var groups: [gid_t]

    /// Names a peer.
    init(user: uid_t, group: gid_t, groups: [gid_t] = []) {
        self.user = user
        self.group = group
        self.groups = groups
    }

    /// Asks the kernel; nil if it does not know.
    init?(of descriptor: Int32) {
        var peer: (pid: pid_t, uid: uid_t, gid: gid_t) = (0, 0, 0)
        guard ferry_peer_credentials(descriptor, &peer.pid, &peer.uid, &peer.gid) == 0 else { return nil }
        var groups = [gid_t](repeating: 0, count: 32)
        var count = Int(ferry_peer_groups(descriptor, &groups, 32))
        if count > groups.count {
            groups = [gid_t](repeating: 0, count: count)
            count = Int(ferry_peer_groups(descriptor, &groups, Int32(count)))
        }
        self.init(user: peer.uid, group: peer.gid, groups: Array(groups.prefix(max(0, count))))
    }

    /// Whether this peer may use the queue of a service that runs as `owner`, with `ownerGroup`.
    ///
    /// Root and the owner may; the machine's queue is for the members of the service's group too.
    func mayUse(isSystem: Bool, owner: uid_t, ownerGroup: gid_t) -> Bool {
        if self.user == 0 || self.user == owner { return true }
        return isSystem && (self.group == ownerGroup || self.groups.contains(ownerGroup))
    }
}
