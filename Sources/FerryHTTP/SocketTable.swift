import CCurl
import Glibc

/// Which socket a connection of a loop's thread has; confined to that thread.
///
/// libcurl before 8 tells the socket of a transfer only when that is over (CURLINFO_ACTIVESOCKET(3)), but the addresses
/// of a connection as soon as it is there, a used one's too.
final class SocketTable {
    /// Both ends of a connection.
    struct Link: Hashable {
        let own: String
        let ownPort: Int32
        let peer: String
        let peerPort: Int32
    }

    private var sockets: [Link: curl_socket_t] = [:]

    /// Finds a connection among the sockets that were made for it, or else among those that earlier transfers had.
    func find(_ link: Link, among made: [curl_socket_t]) -> curl_socket_t? {
        if let socket = made.last(where: { Self.fits($0, link) }) {
            if self.sockets.count >= 1_024 {
                self.sockets = self.sockets.filter { Self.fits($0.value, $0.key) }
            }
            self.sockets[link] = socket
            return socket
        }
        // Closed since, its number may belong to another one.
        guard let socket = self.sockets[link], Self.fits(socket, link) else { return nil }
        return socket
    }

    private static func fits(_ socket: curl_socket_t, _ link: Link) -> Bool {
        Self.port(socket, of: getsockname) == link.ownPort
            && Self.port(socket, of: getpeername) == link.peerPort
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
