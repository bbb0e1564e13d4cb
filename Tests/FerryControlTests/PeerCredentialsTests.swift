import Glibc
import Testing

@testable import FerryControl

@Suite struct PeerCredentialsTests {
    @Test(arguments: [
        (PeerCredentials(user: 0, group: 0), true, true),
        (PeerCredentials(user: 7, group: 100), true, true),
        (PeerCredentials(user: 8, group: 70), false, true),
        (PeerCredentials(user: 8, group: 100, groups: [4, 70]), false, true),
        (PeerCredentials(user: 8, group: 100, groups: [0, 4, 7]), false, false),
        (PeerCredentials(user: 8, group: 0), false, false),
    ])
    func `a queue is for root and its owner, the machine's for a group too`(
        peer: PeerCredentials,
        own: Bool,
        system: Bool
    ) {
        #expect(peer.mayUse(isSystem: false, owner: 7, ownerGroup: 70) == own)
        #expect(peer.mayUse(isSystem: true, owner: 7, ownerGroup: 70) == system)
    }

    @Test func `the kernel tells user and groups of a peer`() throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let peer = try #require(PeerCredentials(of: ends[0]))
        var groups = [gid_t](repeating: 0, count: 1_024)
        let count = Int(getgroups(Int32(groups.count), &groups))
        #expect(peer.user == geteuid() && peer.group == getegid())
        #expect(peer.groups.sorted() == groups.prefix(count).sorted())
        #expect(PeerCredentials(of: -1) == nil)
    }
}
