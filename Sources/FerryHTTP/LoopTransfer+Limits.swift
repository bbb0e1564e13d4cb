import CCurl
import Glibc

/// What limits on bytes a second do to a transfer besides pausing it.
///
/// libcurl reads what the kernel has and the kernel takes what the server sends, so a transfer that stands still still
/// draws as much as their buffers hold. Under a limit these are small, so that the server is held back.
extension LoopTransfer {
    /// Bytes a second from which a connection may be used that an unlimited transfer has used: what the kernel has
    /// promised to its server cannot be taken back, and comes at once.
    static let reuseRate: Int64 = 1 << 20

    /// The receive buffer of libcurl at a share: a 64th of a second, from what libcurl takes at least on.
    static func bufferBytes(at share: Int64, atMost limit: Int) -> Int {
        min(limit, max(1_024, Int(clamping: share / 64)))
    }

    /// The largest part of a sent body that the kernel keeps back at a share: an eighth of a second.
    static func unsentBytes(at share: Int64) -> Int {
        max(16 * 1_024, Int(clamping: share / 8))
    }

    /// Suits a request to the share of a transfer.
    ///
    /// It goes over HTTP/1.1: the streams of HTTP/2 have windows of megabytes in libcurl, whatever the socket's is.
    func narrow(_ request: inout HTTPRequest, to share: Int64) {
        request.http2 = false
        request.bufferBytes = Self.bufferBytes(at: share, atMost: request.bufferBytes)
        self.buffer.begin(at: share, now: .sinceBoot)
    }

    /// The options, of a `long`, that keep a slow transfer from a connection that is older than the end of the last
    /// unlimited one; `quiet` is the time since.
    static func reuse(at share: Int64, quiet: Duration) -> [(CURLoption, Int)] {
        guard share < Self.reuseRate else { return [] }
        let seconds = quiet.wholeMilliseconds / 1_000
        // A connection's age is counted in whole seconds (CURLOPT_MAXLIFETIME_CONN(3)).
        return seconds < 2 ? [(CURLOPT_FRESH_CONNECT, 1)] : [(CURLOPT_MAXLIFETIME_CONN, seconds - 1)]
    }

    /// Suits the connection to limits that have changed.
    func limitsChanged() {
        guard let socket = self.ownSocket else { return }
        if self.exchange.request.body == nil {
            self.suitReceiving(socket)
        } else {
            self.suitSending(socket)
        }
    }

    /// Suits the connection to a share that has changed since others came or went.
    func followShare() {
        guard self.exchange.request.body == nil, let share = self.receiving.share else { return }
        let now = Duration.sinceBoot
        guard self.buffer.isDue(now: now), let socket = self.ownSocket else { return }
        let trip = SocketBuffers.roundTrip(socket)
        if let size = self.buffer.follow(share, roundTrip: trip, now: now) {
            self.hold(socket, to: size)
        }
    }

    private func hold(_ socket: curl_socket_t, to size: Int) {
        let held = SocketBuffers.held(socket)
        guard size < held.size else { return SocketBuffers.grow(socket, to: size) }
        let next = self.buffer.shrink(to: size, current: held.size, queued: held.queued)
        if next < held.size { SocketBuffers.shrink(socket, to: next) }
    }

    private func suitReceiving(_ socket: curl_socket_t) {
        let share = self.receiving.share
        if share == nil { self.wasWide = true }
        let trip = SocketBuffers.roundTrip(socket)
        self.buffer.change(to: share, roundTrip: trip, now: .sinceBoot)
        if let size = self.buffer.size {
            self.hold(socket, to: size)
        } else {
            SocketBuffers.release(socket)
        }
    }

    private func suitSending(_ socket: curl_socket_t) {
        SocketBuffers.limitUnsent(socket, to: self.sending.share.map { Self.unsentBytes(at: $0) })
    }

    /// The socket of the connection, unless others may use it at the same time; nil before there is one.
    private var ownSocket: curl_socket_t? {
        var version = 0
        let code = ferry_curl_get_long(self.easy, CURLINFO_HTTP_VERSION, &version)
        return code == CURLE_OK && version < Int(CURL_HTTP_VERSION_2_0) ? self.descriptor : nil
    }

    /// Makes a window small before the connection is there (CURLOPT_SOCKOPTFUNCTION(3)).
    static let onSocket: ferry_curl_socket_callback = { context, socket, _ in
        guard let context else { return CURL_SOCKOPT_OK }
        let transfer = Unmanaged<LoopTransfer>.fromOpaque(context).takeUnretainedValue()
        if let size = transfer.buffer.size { SocketBuffers.begin(socket, with: size) }
        return CURL_SOCKOPT_OK
    }

    /// Takes note that a connection stands, TLS and a proxy's tunnel included, and suits it, be it new or not, before the
    /// request is sent (CURLOPT_PREREQFUNCTION(3)).
    static let onConnection: ferry_curl_prereq_callback = { context, peer, own, peerPort, ownPort in
        guard let context else { return CURL_PREREQFUNC_OK }
        let transfer = Unmanaged<LoopTransfer>.fromOpaque(context).takeUnretainedValue()
        transfer.exchange.hasConnection(isNew: !transfer.sockets.isEmpty)
        guard let peer, let own else { return CURL_PREREQFUNC_OK }
        let link = SocketTable.Link(
            own: String(cString: own),
            ownPort: ownPort,
            peer: String(cString: peer),
            peerPort: peerPort
        )
        transfer.descriptor = transfer.table.find(link, among: transfer.sockets)
        guard let socket = transfer.descriptor else { return CURL_PREREQFUNC_OK }
        if transfer.exchange.request.body != nil {
            transfer.suitSending(socket)
        } else if let size = transfer.buffer.size {
            transfer.hold(socket, to: size)
        } else {
            SocketBuffers.release(socket)
        }
        return CURL_PREREQFUNC_OK
    }

    /// Whether it stands still because a limit on bytes a second holds it; that time is no stall.
    var isHeldByLimit: Bool { self.receiving.isHeld || self.sending.isHeld }

    /// Says that it takes no more bytes.
    func leaveLimiter() {
        self.receiving.leave()
        self.sending.leave()
    }
}
