public import FerryCore
import Glibc
import Synchronization

/// One connection of the server; never reused.
public struct ClientID: Hashable, Sendable {
    /// Counts up from 1.
    public let rawValue: UInt64

    /// Wraps a number.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// What stands behind the control socket.
///
/// For one client the calls come one after the other: joined, any number of requests, left; of one that never
/// greets only left. Different clients are served concurrently.
public protocol ControlHandler: Sendable {
    /// Answers a request.
    func handle(_ request: ControlRequest, from client: ClientID) async throws(FerryError) -> ControlResponse
    /// A client has greeted.
    func clientJoined(_ client: ClientID) async
    /// A client has gone; its last request has been handled.
    func clientLeft(_ client: ClientID) async
}

/// The server of the control socket: one thread for all connections, and a task for the requests of each.
///
/// The thread only moves bytes. Requests are decoded and answered in the tasks, so neither a slow request nor a
/// slow reader holds up another client, and to notify never blocks.
public final class ControlServer: Sendable {
    /// Bounds, which tests lower.
    struct Limits: Sendable {
        /// The longest line of a client: an `add` of many URLs.
        var lineBytes = 16 << 20
        /// Unfinished lines of all clients together; who adds to them beyond that is refused.
        var inputBytes = 64 << 20
        /// Events that may wait for one client.
        var outboxBytes = 2 << 20
        /// Connections at once: half of the descriptors, so that clients never starve the transfers.
        var connections = Limits.halfOfDescriptors
        /// How long a connection may be silent before it greets.
        var greeting = Duration.seconds(10)
        /// How often a client whose request takes long is shown that the service lives.
        var signOfLife = Duration.seconds(3)
        /// How long a stop waits for clients that read.
        var drain = Duration.seconds(1)

        private static var halfOfDescriptors: Int {
            var limit = rlimit()
            guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 512 }
            return Int(min(max(limit.rlim_cur / 2, 16), 4_096))
        }
    }

    /// What the thread and all others share.
    struct Shared {
        /// By connection, greeted or not.
        var outboxes: [ClientID: Outbox] = [:]
        /// Whose outbox has something new.
        var touched: Set<ClientID> = []
        /// Whose request has been answered.
        var answered: Set<ClientID> = []
        var isStopping = false
    }

    private struct Thread {
        var handle: pthread_t?
        var isStopped = false
    }

    let location: QueueLocation
    let limits: Limits
    let shared = Mutex(Shared())
    private let hello: Hello
    private let handler: any ControlHandler
    private let listener: ServerListener
    private let wakeUp: WakeUp
    private let thread = Mutex(Thread())

    /// Binds the socket and listens; a client that connects waits for ``start()``.
    ///
    /// The caller owns the queue's lock. A socket file that nobody answers on is replaced.
    ///
    /// - Throws: `busy` if another service answers, `local-io` if the path cannot be used.
    public convenience init(
        location: QueueLocation,
        hello: Hello,
        handler: any ControlHandler
    ) throws(FerryError) {
        try self.init(location: location, hello: hello, handler: handler, limits: Limits())
    }

    init(
        location: QueueLocation,
        hello: Hello,
        handler: any ControlHandler,
        limits: Limits
    ) throws(FerryError) {
        self.location = location
        self.hello = hello
        self.handler = handler
        self.limits = limits
        self.wakeUp = try WakeUp()
        self.listener = try ServerListener(location)
    }

    /// The number of connections, those that have not greeted yet included.
    public var clientCount: Int { self.shared.withLock { $0.outboxes.count } }

    /// Begins serving; once.
    public func start() {
        self.thread.withLock { thread in
            guard thread.handle == nil, !thread.isStopped else { return }
            let loop = Unmanaged.passRetained(StartedLoop(server: self))
            var handle = pthread_t()
            let failure = pthread_create(&handle, nil, runLoop, loop.toOpaque())
            precondition(failure == 0, "the control thread cannot be made: \(SystemFailure.words(failure))")
            thread.handle = handle
        }
    }

    /// Sends a notification; from any thread.
    public func notify(_ client: ClientID, _ notification: ControlNotification) {
        self.notify([client], notification)
    }

    /// Sends a notification to several clients, encoded once; those that have gone are passed over.
    public func notify(_ clients: [ClientID], _ notification: ControlNotification) {
        guard !clients.isEmpty, let line = Self.line(ServiceLine(notification: notification)) else { return }
        let kind: Outbox.Kind = if case .progress = notification { .progress } else { .event }
        self.shared.withLock { shared in
            for client in clients where shared.outboxes[client] != nil {
                shared.outboxes[client]?.add(line, kind)
                shared.touched.insert(client)
            }
        }
        self.wakeUp.signal()
    }

    /// Stops accepting, sends what is queued to clients that read, at most about a second, and closes all.
    ///
    /// Requests that have begun may end meanwhile, further ones are answered with `stopping`. The socket file is
    /// removed if it is still ours. Blocks until the thread has ended; may be repeated.
    public func stop() {
        self.shared.withLock { $0.isStopping = true }
        self.wakeUp.signal()
        self.thread.withLock { thread in
            if let handle = thread.handle { pthread_join(handle, nil) }
            thread.handle = nil
            thread.isStopped = true
        }
        self.listener.close()
    }

    /// The thread's whole life.
    fileprivate func run() {
        var loop = ServerLoop(server: self, listener: self.listener, wakeUp: self.wakeUp)
        loop.run()
    }

    /// Makes the task that serves a new connection, and the box for its lines.
    func open(_ client: ClientID) -> AsyncStream<[UInt8]>.Continuation {
        let (lines, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        let outbox = Outbox(limit: self.limits.outboxBytes, overrun: Self.overrun)
        self.shared.withLock { $0.outboxes[client] = outbox }
        if let greeting = Self.line(ServiceLine(hello: self.hello)) { self.post(greeting, to: client) }
        Task { await self.serve(client, lines) }
        return continuation
    }

    /// Takes one line after the other; the thread hands out the next when the last was answered.
    private func serve(_ client: ClientID, _ lines: AsyncStream<[UInt8]>) async {
        var iterator = lines.makeAsyncIterator()
        guard let greeting = await iterator.next() else { return await self.handler.clientLeft(client) }
        if let error = self.fault(ofGreeting: greeting) {
            self.post(Self.line(ServiceLine(error: ErrorDocument(error))), to: client, closes: true)
            while await iterator.next() != nil {}  // until the thread has let go of it
            return await self.handler.clientLeft(client)
        }
        await self.handler.clientJoined(client)
        self.post(nil, to: client, isAnswered: true)
        while let bytes = await iterator.next() {
            guard let line = try? ControlJSON.decode(RequestLine.self, from: bytes) else {
                let error = ErrorDocument(
                    .usage("a line of the client is no request that this service understands")
                )
                self.post(Self.line(ServiceLine(error: error)), to: client, closes: true)
                break
            }
            self.post(await self.answer(line, client), to: client, isAnswered: true)
        }
        await self.handler.clientLeft(client)
    }

    private func fault(ofGreeting bytes: [UInt8]) -> FerryError? {
        guard let theirs = try? ControlJSON.decode(Hello.self, from: bytes) else {
            return .usage("the client's first line is no greeting")
        }
        guard theirs.protocolVersion == self.hello.protocolVersion else {
            return .versions(service: self.hello, command: theirs)
        }
        return nil
    }

    private func answer(_ line: RequestLine, _ client: ClientID) async -> [UInt8]? {
        do throws(FerryError) {
            if self.shared.withLock({ $0.isStopping }) {
                throw FerryError(.stopping, "the service is stopping", exitStatus: .noService)
            }
            let response = try await self.handler.handle(line.request, from: client)
            return Self.line(ServiceLine(id: line.id, response: response))
        } catch {
            return Self.line(ServiceLine(id: line.id, error: ErrorDocument(error)))
        }
    }

    /// Puts a line into a client's outbox and tells the thread.
    func post(_ line: [UInt8]?, to client: ClientID, isAnswered: Bool = false, closes: Bool = false) {
        self.shared.withLock { shared in
            guard shared.outboxes[client] != nil else { return }
            if let line { shared.outboxes[client]?.add(line, .answer) }
            if closes { shared.outboxes[client]?.closesWhenSent = true }
            if isAnswered { shared.answered.insert(client) }
            shared.touched.insert(client)
        }
        self.wakeUp.signal()
    }

    /// What a client is told for the events that it did not read in time.
    private static let overrun = ControlServer.line(ServiceLine(notification: .overrun)) ?? []

    /// A line with its newline; our documents hold nothing that JSON cannot.
    static func line(_ line: ServiceLine) -> [UInt8]? {
        (try? ControlJSON.encode(line)).map { $0 + [UInt8(ascii: "\n")] }
    }
}

/// What the thread is handed.
private final class StartedLoop {
    let server: ControlServer

    init(server: ControlServer) {
        self.server = server
    }

    func run() {
        self.server.run()
    }
}

private let runLoop: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
    if let context { Unmanaged<StartedLoop>.fromOpaque(context).takeRetainedValue().run() }
    return nil
}
