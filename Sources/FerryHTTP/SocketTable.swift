import CCurl
import Glibc

/// Which socket a connection of a loop's thread has; confined to that thread.
///
/// libcurl 7.88 tells the socket of a transfer only when that is over (CURLINFO_ACTIVESOCKET(3)), but the addresses
/// of a connection as soon as it is there, a used one's too.
final class SocketTable {
    /// Both ends of a connection, as libcurl tells them.
    struct Link: Hashable {
        let own: String
        let ownPort: Int32
        let peer: String
        let peerPort: Int32
    }

    private struct Entry {
        let socket: curl_socket_t
        let ports: [Int32?]

        init(_ socket: curl_socket_t) {
            self.socket = socket
            self.ports = SocketTable.ports(socket)
        }

        /// Closed since, its number may belong to another one.
        var isValid: Bool { self.ports == SocketTable.ports(self.socket) }
    }

    private var entries: [Link: Entry] = [:]

    /// Finds a connection among the sockets that were made for it, or else among those that earlier transfers had.
    func find(_ link: Link, among made: [curl_socket_t]) -> curl_socket_t? {
        if let socket = made.last(where: { Self.port($0, of: getsockname) == link.ownPort }) {
            if self.entries.count >= 1_024 { self.entries = self.entries.filter { $0.value.isValid } }
            self.entries[link] = Entry(socket)
            return socket
        }
        guard let entry = self.entries[link], entry.isValid else { return nil }
        return entry.socket
    }

    private static func ports(_ socket: curl_socket_t) -> [Int32?] {
        [Self.port(socket, of: getsockname), Self.port(socket, of: getpeername)]
    }

    private static func port(
        _ socket: curl_socket_t,
        of end: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32
    ) -> Int32? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &address) { bytes in
            guard let base = bytes.baseAddress,
                end(socket, base.assumingMemoryBound(to: sockaddr.self), &length) == 0
            else { return nil }
            // The port stands at the same place in the addresses of both families (ip(7), ipv6(7)).
            return Int32(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
        }
    }
}
