import CCurl
import CFerryLinux
import FerryCore
import Glibc

extension LoopTransfer {
    /// Looks for a stall.
    func look(at now: Duration) -> StallWatch.Stall? {
        if self.isHeld {
            self.watch.hold(at: now)
            return nil
        }
        return self.watch.look(self.sight, at: now)
    }

    /// Whether we ourselves let nothing flow: sink or source have asked for a pause, a limit wants it, or nobody has
    /// said yet where the body goes.
    private var isHeld: Bool {
        self.isPaused || self.isHeldByLimit || self.phase == .body && self.sink == nil
    }

    private var sight: StallWatch.Sight {
        let hasBody = self.exchange.request.body != nil
        var bytes = self.headBytes + self.count(CURLINFO_SIZE_DOWNLOAD_T)
        if hasBody { bytes += self.count(CURLINFO_SIZE_UPLOAD_T) - self.queued }
        return StallWatch.Sight(phase: self.phase, bytes: bytes, hasBody: hasBody)
    }

    /// Bytes that the socket holds and the peer has not confirmed (tcp(7), SIOCOUTQ).
    private var queued: Int64 {
        self.descriptor.map { max(0, Int64(ferry_socket_queue($0))) } ?? 0
    }

    /// What the exchange does, as far as libcurl tells.
    var phase: ExchangePhase {
        if self.hasHead { return .body }
        var sent = 0
        if ferry_curl_get_long(self.easy, CURLINFO_REQUEST_SIZE, &sent) == CURLE_OK, sent > 0 {
            let length = self.exchange.request.body?.length ?? 0
            return self.count(CURLINFO_SIZE_UPLOAD_T) < length ? .sending : .answer
        }
        if self.count(CURLINFO_NAMELOOKUP_TIME_T) == 0 { return .resolving }
        let isSecure = self.exchange.request.url.lowercased().hasPrefix("https:")
        return isSecure && self.isConnected ? .securing : .connecting
    }

    /// Whether a connection was made; libcurl 7.88 tells the time of it only when TLS is negotiated as well.
    private var isConnected: Bool {
        self.sockets.contains { socket in
            var address = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            return withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getpeername(socket, $0, &length) == 0
                }
            }
        }
    }

    private func count(_ info: CURLINFO) -> Int64 {
        var value: curl_off_t = 0
        return ferry_curl_get_offset(self.easy, info, &value) == CURLE_OK ? Int64(value) : 0
    }

    /// Makes a socket as libcurl does, and remembers where it is to lead (CURLOPT_OPENSOCKETFUNCTION(3)).
    static let onOpenSocket: ferry_curl_opensocket_callback = { context, _, address in
        let target = address.pointee
        let made = socket(target.family, target.socktype | Int32(SOCK_CLOEXEC.rawValue), target.protocol)
        if let context {
            let transfer = Unmanaged<LoopTransfer>.fromOpaque(context).takeUnretainedValue()
            if transfer.buffer.size != nil {
                SocketBuffers.limitSegments(made, to: ferry_curl_address(address))
            }
            transfer.remember(ferry_curl_address(address), length: target.addrlen)
            if made >= 0, transfer.sockets.count < 16 { transfer.sockets.append(made) }
        }
        return made
    }

    private func remember(_ address: UnsafePointer<sockaddr>, length: UInt32) {
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        guard
            getnameinfo(address, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0,
            self.tried.count < 16
        else { return }
        let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        self.tried.append(String(decoding: bytes, as: UTF8.self))
    }
}
