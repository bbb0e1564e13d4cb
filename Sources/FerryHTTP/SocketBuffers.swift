import CCurl
import Glibc

/// The buffers of a connection in the kernel, changed while it lives.
///
/// A size that SO_RCVBUF sets is kept by the kernel, which then neither tunes it nor, if it is set before the handshake,
/// agrees on a scale for larger windows. SO_BUF_LOCK (Linux 5.15) takes that back, so that a connection can begin with
/// a small window and get a large one later. What tunes a buffer up without privileges, above *rmem_max* too, is
/// SO_RCVLOWAT, which makes room for what it waits for, up to half of *tcp_rmem*'s maximum (tcp(7), socket(7)).
enum SocketBuffers {
    /// linux/asm-generic/socket.h; glibc does not have it yet.
    private static let bufferLock: Int32 = 72
    private static let memory: Int32 = 55
    /// linux/socket.h, SOCK_RCVBUF_LOCK.
    private static let receiveLock: Int32 = 2
    /// What the kernel begins with by default (tcp(7), *tcp_rmem*).
    private static let usual = 131_072

    /// Has a socket that is not connected yet ask this very machine for segments that fit into the smallest buffer.
    ///
    /// The loopback's are of 64 KiB, and none would be sent into a smaller window until a timer makes it (RFC 9293
    /// §3.8.6.2.1). Small ones cost a TLS server a tenth of its speed, so this is for transfers that begin under a limit.
    static func limitSegments(_ socket: curl_socket_t, to peer: UnsafePointer<sockaddr>) {
        let isLoopback =
            switch Int32(peer.pointee.sa_family) {
            case AF_INET:
                peer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    UInt32(bigEndian: $0.pointee.sin_addr.s_addr) >> 24 == 127
                }
            case AF_INET6:
                peer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    var address = $0.pointee.sin6_addr
                    return withUnsafeBytes(of: &address) {
                        $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1
                    }
                }
            default: false
            }
        guard isLoopback else { return }
        Self.set(socket, Int32(IPPROTO_TCP), TCP_MAXSEG, to: ReceiveBuffer.smallest / 2)
    }

    /// Has a socket begin small, before it is connected.
    static func begin(_ socket: curl_socket_t, with size: Int) {
        guard size < Self.usual else { return }
        Self.shrink(socket, to: size)
        Self.set(socket, SOL_SOCKET, Self.bufferLock, to: 0)
    }

    /// Gives a connection room for so much and no more.
    static func grow(_ socket: curl_socket_t, to size: Int) {
        if Self.set(socket, SOL_SOCKET, Self.bufferLock, to: 0) {
            Self.makeRoom(socket, for: size / 2)
            Self.set(socket, SOL_SOCKET, Self.bufferLock, to: Int(Self.receiveLock))
        } else {
            Self.shrink(socket, to: size)
        }
    }

    /// Leaves a connection room for so much.
    static func shrink(_ socket: curl_socket_t, to size: Int) {
        Self.set(socket, SOL_SOCKET, SO_RCVBUF, to: size / 2)  // the kernel doubles it
    }

    /// What the kernel holds for a connection, and may hold, by its own account (SO_MEMINFO, Linux 4.12).
    static func held(_ socket: curl_socket_t) -> (queued: Int, size: Int) {
        var values = (UInt32(0), UInt32(0))  // SK_MEMINFO_RMEM_ALLOC and SK_MEMINFO_RCVBUF
        var length = socklen_t(MemoryLayout.size(ofValue: values))
        guard getsockopt(socket, SOL_SOCKET, Self.memory, &values, &length) == 0 else { return (0, 0) }
        return (Int(values.0), Int(values.1))
    }

    /// Lets the kernel decide again, beginning with room for a megabyte; nothing if it does.
    static func release(_ socket: curl_socket_t) {
        guard Self.get(socket, SOL_SOCKET, Self.bufferLock) & Int(Self.receiveLock) != 0 else { return }
        Self.set(socket, SOL_SOCKET, Self.bufferLock, to: 0)
        Self.makeRoom(socket, for: 1 << 20)
    }

    /// Lets the kernel have so much that was not sent yet; nil is its own choice (tcp(7), *TCP_NOTSENT_LOWAT*).
    static func limitUnsent(_ socket: curl_socket_t, to size: Int?) {
        Self.set(socket, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, to: size ?? 0)
    }

    /// The round trip that the kernel has measured; zero if it is not known.
    static func roundTrip(_ socket: curl_socket_t) -> Duration {
        var info = tcp_info()
        var length = socklen_t(MemoryLayout<tcp_info>.size)
        guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &length) == 0 else { return .zero }
        return .microseconds(Int64(info.tcpi_rtt))
    }

    private static func makeRoom(_ socket: curl_socket_t, for bytes: Int) {
        Self.set(socket, SOL_SOCKET, SO_RCVLOWAT, to: bytes)
        Self.set(socket, SOL_SOCKET, SO_RCVLOWAT, to: 1)
    }

    /// Without effect a transfer is less even, and not wrong.
    @discardableResult
    private static func set(_ socket: curl_socket_t, _ level: Int32, _ option: Int32, to value: Int) -> Bool {
        var value = Int32(clamping: value)
        return setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }

    private static func get(_ socket: curl_socket_t, _ level: Int32, _ option: Int32) -> Int {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(socket, level, option, &value, &length) == 0 ? Int(value) : 0
    }
}
