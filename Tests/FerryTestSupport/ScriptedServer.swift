import Glibc
import Synchronization

/// An HTTP/1.1 server on a plain socket that answers what a test tells it to, and records each request.
///
/// It listens on 127.0.0.1 and a port that the kernel chooses, with a thread for each connection. It stops when
/// it is released.
public final class ScriptedServer: Sendable {
    /// Tells the answer to a request; the number counts the earlier requests for the same path.
    public typealias Handler = @Sendable (_ request: RecordedRequest, _ number: Int) -> Reply

    /// Tells what becomes of a request's body, before any of it is read; the number counts as in ``Handler``.
    public typealias BodyHandler = @Sendable (_ request: RecordedRequest, _ number: Int) -> BodyTreatment

    private let core: ServerCore
    private let proxy: TLSProxy?

    /// Starts a server; with certificates it speaks TLS.
    ///
    /// - Throws: ``TestSupportError`` if no port can be had or the TLS proxy does not start.
    public init(
        tls: TestCertificates? = nil,
        bodies: @escaping BodyHandler = { _, _ in BodyTreatment() },
        handler: @escaping Handler
    ) throws {
        let core = try ServerCore(bodies: bodies, handler: handler)
        do {
            self.proxy = try tls.map { try TLSProxy(certificates: $0, upstream: core.port) }
            try startThread { core.acceptConnections() }
        } catch {
            core.closeListener()
            throw error
        }
        self.core = core
    }

    deinit {
        self.stop()
    }

    /// The port for clients.
    public var port: Int {
        self.proxy?.port ?? self.core.port
    }

    /// The URL of a path, with or without its leading slash.
    public func url(_ path: String) -> String {
        let slash = path.hasPrefix("/") ? "" : "/"
        return "\(self.proxy == nil ? "http" : "https")://localhost:\(self.port)\(slash)\(path)"
    }

    /// All requests so far, in order of time.
    public var requests: [RecordedRequest] {
        self.core.requests.value
    }

    /// The requests for one path, in order of time.
    public func requests(for path: String) -> [RecordedRequest] {
        self.requests.filter { $0.path == path }
    }

    /// Waits until at least so many requests have come, and returns all.
    public func waitForRequests(
        _ count: Int,
        timeout: Duration = .seconds(120)
    ) async throws -> [RecordedRequest] {
        try await self.core.requests.wait(for: "\(count) requests", timeout: timeout) { requests in
            requests.count >= count ? requests : nil
        }
    }

    /// The body bytes handed to the kernel so far.
    public var bytesSent: Int64 {
        self.core.bytesSent.value
    }

    /// Waits until so many body bytes have been handed to the kernel.
    public func waitForBytesSent(_ count: Int64, timeout: Duration = .seconds(120)) async throws {
        try await self.core.bytesSent.wait(for: "\(count) bytes sent", timeout: timeout) {
            $0 >= count ? () : nil
        }
    }

    /// The connections accepted so far.
    public var connectionCount: Int {
        self.core.connectionCount
    }

    /// The connections open now, and the most that were open at once.
    public var openConnections: (now: Int, most: Int) {
        self.core.openConnections
    }

    /// Refuses new connections, ends those that are open, and frees the port; repeating it does nothing.
    public func stop() {
        self.core.stop()
        self.proxy?.stop()
    }
}

/// What the server's threads share.
final class ServerCore: Sendable {
    private struct Connections: Sendable {
        var open: Set<Int32> = []
        var accepted = 0
        var most = 0
        var isStopped = false
    }

    let port: Int
    let requests = Watched<[RecordedRequest]>([])
    let bytesSent = Watched<Int64>(0)
    let stopped = Gate()
    private let listener: Int32
    private let bodies: ScriptedServer.BodyHandler
    private let handler: ScriptedServer.Handler
    private let connections = Mutex(Connections())

    init(bodies: @escaping ScriptedServer.BodyHandler, handler: @escaping ScriptedServer.Handler) throws {
        (self.listener, self.port) = try listenOnLoopback()
        self.bodies = bodies
        self.handler = handler
    }

    var connectionCount: Int {
        self.connections.withLock { $0.accepted }
    }

    var openConnections: (now: Int, most: Int) {
        self.connections.withLock { ($0.open.count, $0.most) }
    }

    /// Accepts until the listener is shut down, which closes it.
    func acceptConnections() {
        defer { close(self.listener) }
        while !self.stopped.isOpen {
            var waiting = pollfd(fd: self.listener, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, -1) >= 0 || errno == EINTR else { return }
            if self.stopped.isOpen { return }
            let descriptor = makeDescriptor { accept(self.listener, nil, nil) }
            guard descriptor >= 0 else { continue }
            self.serve(descriptor)
        }
    }

    private func serve(_ descriptor: Int32) {
        let number = self.connections.withLock { connections -> Int? in
            if connections.isStopped { return nil }
            connections.open.insert(descriptor)
            connections.most = max(connections.most, connections.open.count)
            connections.accepted += 1
            return connections.accepted - 1
        }
        guard let number else {
            close(descriptor)
            return
        }
        do {
            try startThread {
                ServerConnection(core: self, descriptor: descriptor, number: number).run()
                self.end(descriptor)
            }
        } catch {
            self.end(descriptor)
        }
    }

    /// Closes a connection; taken off the list first, so that ``stop()`` never meets a reused number.
    private func end(_ descriptor: Int32) {
        self.connections.withLock { connections in
            connections.open.remove(descriptor)
            close(descriptor)
        }
    }

    /// What becomes of a request's body.
    func treatment(_ request: RecordedRequest) -> BodyTreatment {
        self.bodies(request, self.requests.value.count { $0.path == request.path })
    }

    /// Records a request and asks for the answer.
    func answer(_ make: @Sendable (Int) -> RecordedRequest) -> Reply {
        let (request, number) = self.requests.update { requests in
            let request = make(requests.count)
            let number = requests.count { $0.path == request.path }
            requests.append(request)
            return (request, number)
        }
        return self.handler(request, number)
    }

    func stop() {
        let isFirst = self.connections.withLock { connections in
            if connections.isStopped { return false }
            connections.isStopped = true
            for descriptor in connections.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
            return true
        }
        guard isFirst else { return }
        self.stopped.open()
        shutdown(self.listener, Int32(SHUT_RDWR))
    }

    /// Closes the listener of a server whose accepting thread never ran.
    func closeListener() {
        close(self.listener)
    }
}
