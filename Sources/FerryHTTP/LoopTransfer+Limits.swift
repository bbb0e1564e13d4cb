import CCurl
import Glibc

/// What limits on bytes a second do to a transfer besides pausing it.
///
/// libcurl reads what the kernel has and the kernel takes what the server sends, so a transfer that stands still still
/// draws as much as their buffers hold. At low rates these are made small, so that the server is held back.
extension LoopTransfer {
    /// Bytes a second below which a connection gets a small receive window, and is used for one request alone.
    static let narrowRate: Int64 = 32 * 1_024

    /// The receive buffer of libcurl at a share: a 64th of a second, from what libcurl takes at least on.
    static func bufferBytes(at share: Int64, atMost limit: Int) -> Int {
        min(limit, max(1_024, Int(clamping: share / 64)))
    }

    /// The receive window at a share: half a second's bytes, from 4 KiB on; nil where the kernel's is good.
    static func window(at share: Int64) -> Int32? {
        share > Self.narrowRate ? nil : Int32(max(4_096, share / 2))
    }

    /// Suits a request to the share of a transfer.
    ///
    /// It goes over HTTP/1.1: the streams of HTTP/2 have windows of megabytes in libcurl, whatever the socket's is.
    func narrow(_ request: inout HTTPRequest, to share: Int64) {
        request.http2 = false
        request.bufferBytes = Self.bufferBytes(at: share, atMost: request.bufferBytes)
        self.window = Self.window(at: share)
        guard self.window != nil else { return }
        // A connection with a small window would slow down whoever used it later.
        request.freshConnection = true
        request.ownConnection = true
    }

    /// Opens the small window again, as far as it goes without the scaling that only a handshake agrees on.
    func limitsChanged() {
        guard self.window != nil, self.receiving.share.map({ $0 > Self.narrowRate }) ?? true else { return }
        self.window = nil
        var socket: curl_socket_t = -1
        guard ferry_curl_get_socket(self.easy, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK, socket >= 0 else {
            return
        }
        // Without effect it is slow and not wrong.
        Self.set(socket, SOL_SOCKET, SO_RCVBUF, to: 262_144)
        Self.set(socket, Int32(IPPROTO_TCP), TCP_WINDOW_CLAMP, to: 65_535)
    }

    /// Sets the window before the connection is made, while it can still be small (tcp(7), *SO_RCVBUF*).
    static let onSocket: ferry_curl_socket_callback = { context, socket, _ in
        guard let context else { return CURL_SOCKOPT_OK }
        let transfer = Unmanaged<LoopTransfer>.fromOpaque(context).takeUnretainedValue()
        if let window = transfer.window { LoopTransfer.set(socket, SOL_SOCKET, SO_RCVBUF, to: window) }
        return CURL_SOCKOPT_OK
    }

    private static func set(_ socket: curl_socket_t, _ level: Int32, _ option: Int32, to value: Int32) {
        var value = value
        _ = setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Whether it stands still because a limit on bytes a second holds it; that time is no stall.
    var isHeldByLimit: Bool { self.receiving.isHeld || self.sending.isHeld }

    /// Says that it takes no more bytes.
    func leaveLimiter() {
        self.receiving.leave()
        self.sending.leave()
    }
}
