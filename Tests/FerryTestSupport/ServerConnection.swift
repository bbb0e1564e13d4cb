import Dispatch
import Glibc

/// One connection of the scripted server; lives on its own thread.
struct ServerConnection {
    /// The peer has gone, or the script ends the connection here.
    private struct Ended: Error {}

    private static let pieceSize = 1 << 16
    private static let keptBody = 1 << 24

    let core: ServerCore
    let descriptor: Int32
    let number: Int

    /// Answers requests until the connection ends; the caller closes it.
    func run() {
        var yes: Int32 = 1
        setsockopt(
            self.descriptor,
            Int32(IPPROTO_TCP),
            TCP_NODELAY,
            &yes,
            socklen_t(MemoryLayout<Int32>.size)
        )
        var unread: [UInt8] = []
        do {
            while true {
                guard let head = try self.readHead(&unread) else { return }
                let length = Int64(head.value("content-length") ?? "") ?? 0
                let treatment = self.core.treatment(self.recorded(head, index: 0, length: length, body: []))
                if let refusal = treatment.refusal {
                    try self.refuse(head, length: length, refusal)
                    return
                }
                if treatment.givesLeave, head.value("expect")?.lowercased() == "100-continue" {
                    try self.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
                }
                for interim in treatment.interim { try self.send(Array("\(interim)\r\n\r\n".utf8)) }
                if let limit = treatment.cutAfter, limit < length {
                    let body = try self.readBody(limit, &unread)
                    _ = self.core.answer { self.recorded(head, index: $0, length: limit, body: body) }
                    try self.reset()
                }
                let body = try self.readBody(length, &unread)
                let reply = self.core.answer { self.recorded(head, index: $0, length: length, body: body) }
                try self.perform(reply, withBody: head.method != "HEAD")
            }
        } catch {
            return
        }
    }

    // MARK: Requests

    private func recorded(_ head: Head, index: Int, length: Int64, body: [UInt8]) -> RecordedRequest {
        RecordedRequest(
            method: head.method,
            target: head.target,
            headers: head.headers,
            index: index,
            connection: self.number,
            bodyLength: length,
            body: body
        )
    }

    /// Answers without reading the body, then waits until the client has noticed (RFC 9112 §9.6).
    private func refuse(_ head: Head, length: Int64, _ reply: Reply) throws {
        _ = self.core.answer { self.recorded(head, index: $0, length: 0, body: []) }
        try self.send(Array(reply.head.utf8))
        try self.sendBody(reply)
        shutdown(self.descriptor, Int32(SHUT_WR))
        var ignored: [UInt8] = []
        while try self.receive(&ignored) { ignored.removeAll(keepingCapacity: true) }
    }

    private struct Head: Sendable {
        let method: String
        let target: String
        let headers: [(String, String)]

        func value(_ name: String) -> String? {
            self.headers.first { $0.0.lowercased() == name }?.1
        }
    }

    /// The next request's head; nil when the client has closed the connection.
    private func readHead(_ unread: inout [UInt8]) throws -> Head? {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let range = unread.firstRange(of: end) {
                let text = String(decoding: unread[..<range.lowerBound], as: UTF8.self)
                unread.removeSubrange(..<range.upperBound)
                return Self.parse(text)
            }
            guard unread.count < Self.keptBody, try self.receive(&unread) else { return nil }
        }
    }

    private static func parse(_ text: String) -> Head? {
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: true)
        guard let first = lines.first else { return nil }
        let words = first.split(separator: " ")
        guard words.count == 3 else { return nil }
        let headers = lines.dropFirst().map { line -> (String, String) in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count == 2 ? parts[1].drop { $0 == " " } : ""
            return (String(parts[0]), String(value))
        }
        return Head(method: String(words[0]), target: String(words[1]), headers: headers)
    }

    private func readBody(_ length: Int64, _ unread: inout [UInt8]) throws -> [UInt8] {
        var kept: [UInt8] = []
        var rest = length
        while rest > 0 {
            if unread.isEmpty, try !self.receive(&unread) { throw Ended() }
            let count = Int(min(rest, Int64(unread.count)))
            kept += unread.prefix(min(count, Self.keptBody - kept.count))
            unread.removeFirst(count)
            rest -= Int64(count)
        }
        return kept
    }

    private func receive(_ unread: inout [UInt8]) throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: Self.pieceSize)
        while true {
            let count = recv(self.descriptor, &buffer, buffer.count, 0)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw Ended() }
            unread += buffer[..<count]
            return count > 0
        }
    }

    // MARK: Replies

    private func perform(_ reply: Reply, withBody: Bool) throws {
        let head = Array(reply.head.utf8)
        switch reply.fault {
        case .closeBeforeHead:
            throw Ended()
        case .truncateHead:
            try self.send(Array(head.prefix(head.count / 2)))
            throw Ended()
        case .hold(let gate):
            try self.wait(for: gate)
        case .cut, .reset, .stall, .trickle, .noCloseNotify, .none:
            break
        }
        try self.send(head)
        if withBody { try self.sendBody(reply) }
        if case .noCloseNotify = reply.fault { try self.closeWithoutNotice() }
        if reply.declaredLength.endsWithConnection || !reply.keepsConnection { throw Ended() }
    }

    private func sendBody(_ reply: Reply) throws {
        let isChunked = reply.declaredLength == .chunked
        var pieceSize = Self.pieceSize
        if case .trickle(let chunk, _) = reply.fault { pieceSize = chunk }
        var limit = reply.fault?.limit
        var position: Int64 = 0
        if limit == 0 {
            try self.strike(reply.fault)
            limit = nil
        }
        _ = try reply.body.forEachPiece(limit: pieceSize) { piece in
            if isChunked { try self.send(Array("\(String(piece.count, radix: 16))\r\n".utf8)) }
            var rest = piece
            if let at = limit, position + Int64(rest.count) >= at {
                let before = Int(at - position)
                try self.sendPayload(UnsafeRawBufferPointer(rebasing: rest[..<before]))
                rest = UnsafeRawBufferPointer(rebasing: rest[before...])
                try self.strike(reply.fault)
                limit = nil
            }
            try self.sendPayload(rest)
            position += Int64(piece.count)
            if isChunked { try self.send(Array("\r\n".utf8)) }
            if case .trickle(_, let pause) = reply.fault, self.core.stopped.waitBlocking(timeout: pause) {
                throw Ended()
            }
            return true
        }
        if isChunked { try self.send(Array("0\r\n\r\n".utf8)) }
    }

    /// Does what the fault says; returns only where the reply goes on.
    private func strike(_ fault: Fault?) throws {
        switch fault {
        case .cut: throw Ended()
        case .reset: try self.reset()
        case .stall(_, let gate): try self.wait(for: gate)
        case .trickle, .truncateHead, .closeBeforeHead, .hold, .noCloseNotify, .none: return
        }
    }

    /// Waits for a gate; ends the connection when the server stops first.
    private func wait(for gate: Gate?) throws {
        let arrived = DispatchSemaphore(value: 0)
        gate?.whenOpen { arrived.signal() }
        self.core.stopped.whenOpen { arrived.signal() }
        arrived.wait()
        if self.core.stopped.isOpen { throw Ended() }
    }

    /// Ends the connection with RST (socket(7), SO_LINGER of 0).
    ///
    /// A reset throws away what this side has not sent yet, so all of that goes out first (tcp(7), SIOCOUTQ);
    /// no event tells when the queue is empty, hence the look at each millisecond.
    private func reset() throws {
        let queueLength = UInt(0x5411)
        var unsent: Int32 = 0
        while ioctl(self.descriptor, queueLength, &unsent) == 0 && unsent > 0 && !self.core.stopped.isOpen {
            _ = poll(nil, 0, 1)
        }
        var lingering = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            self.descriptor,
            SOL_SOCKET,
            SO_LINGER,
            &lingering,
            socklen_t(MemoryLayout<linger>.size)
        )
        throw Ended()
    }

    /// Ends the connection; an urgent byte, which plain clients never read, tells the TLS proxy to do it rudely.
    private func closeWithoutNotice() throws {
        _ = Glibc.send(self.descriptor, "!", 1, Int32(MSG_OOB) | Int32(MSG_NOSIGNAL))
        throw Ended()
    }

    private func send(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { try self.sendAll($0) { _ in } }
    }

    private func sendPayload(_ bytes: UnsafeRawBufferPointer) throws {
        try self.sendAll(bytes) { count in
            self.core.bytesSent.update { $0 += Int64(count) }
        }
    }

    private func sendAll(_ bytes: UnsafeRawBufferPointer, _ sent: (Int) -> Void) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.send(self.descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw Ended() }
            sent(count)
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }
}
