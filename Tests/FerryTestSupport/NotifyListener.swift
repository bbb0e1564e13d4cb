import Glibc

/// What systemd is to a service: a datagram socket that takes its messages (sd_notify(3)).
public final class NotifyListener: Sendable {
    /// The value for `NOTIFY_SOCKET`.
    public let name: String
    private let descriptor: Int32
    private let received = Watched<[String]>([])

    /// Listens at a path, or at an abstract name that begins with `@`.
    public init(_ name: String) throws {
        self.name = name
        self.descriptor = makeDescriptor { socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0) }
        guard self.descriptor >= 0 else { throw TestSupportError.system("socket", errno) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var path = Array(name.utf8)
        if path.first == UInt8(ascii: "@") { path[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let size = MemoryLayout<sa_family_t>.size + path.count + (path[0] == 0 ? 0 : 1)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(self.descriptor, $0, socklen_t(size))
            }
        }
        guard result == 0 else {
            let code = errno
            close(self.descriptor)
            throw TestSupportError.system("bind \(name)", code)
        }
        let (descriptor, received) = (self.descriptor, self.received)
        try startThread {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                guard count > 0 else { break }
                let message = String(decoding: buffer[..<count], as: UTF8.self)
                received.update { $0.append(message) }
            }
            close(descriptor)
        }
    }

    deinit {
        shutdown(self.descriptor, Int32(SHUT_RDWR))
    }

    /// The messages so far, in their order.
    public var messages: [String] { self.received.value }

    /// Waits for a message that fulfils a condition, those that came before `start` left out; gives its index.
    @discardableResult
    public func wait(
        for what: String,
        from start: Int = 0,
        _ condition: @escaping @Sendable (String) -> Bool
    ) async throws -> Int {
        try await self.received.wait(for: what, timeout: .seconds(120)) { messages in
            messages.indices.first { $0 >= start && condition(messages[$0]) }
        }
    }
}
