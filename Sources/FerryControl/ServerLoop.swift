import CFerryLinux
import FerryCore
import Glibc
import Synchronization

/// One connection, as the server's thread sees it.
struct ServerConnection {
    /// Its number.
    let id: ClientID
    /// Its socket.
    let descriptor: Int32
    /// Where whole lines go, one at a time.
    let lines: AsyncStream<[UInt8]>.Continuation
    /// What was read and not handed on.
    var input: LineBuffer
    /// What is being sent.
    var output: ArraySlice<UInt8> = []
    /// Until when it has to greet; nil once it has said something.
    var greetsBefore: ContinuousClock.Instant?
    /// Whether a line was handed on and not answered.
    var isBusy = false
    /// Whether nothing more is read.
    var isInputEnded = false
    /// Whether the other side is gone; poll(2) would report it again and again.
    var isHungUp = false
    /// Whether it ends when its outbox and ``output`` are empty.
    var closesWhenSent = false
    /// Whether the socket takes nothing now.
    var isBlocked = false

    /// Whether more may be read: a client that sends faster than it is answered waits.
    var wantsInput: Bool { !self.isInputEnded && !self.closesWhenSent && !self.input.hasNext }
}

/// The thread of the server: accepts, reads lines, hands them on, sends what the outboxes hold.
struct ServerLoop {
    private let server: ControlServer
    private let listener: ServerListener
    private let wakeUp: WakeUp
    private var connections: [ClientID: ServerConnection] = [:]
    private var lastID: UInt64 = 0
    /// Connections in the order in which they were accepted, until they are seen to have greeted or gone.
    private var silent: [ClientID] = []
    /// Until when nothing is accepted: no descriptor was left (accept(2), EMFILE).
    private var acceptsAfter: ContinuousClock.Instant?
    /// When clients whose requests are being handled get a sign of life.
    private var signOfLife: ContinuousClock.Instant?
    /// When a stop stops being patient.
    private var drainEnd: ContinuousClock.Instant?

    init(server: ControlServer, listener: ServerListener, wakeUp: WakeUp) {
        self.server = server
        self.listener = listener
        self.wakeUp = wakeUp
    }

    /// Serves until the server is stopped.
    mutating func run() {
        ferry_name_thread("ferry-control")
        while true {
            self.takePosts()
            if let drainEnd {
                for connection in self.connections.values where self.isIdle(connection) {
                    self.remove(connection.id)
                }
                if self.connections.isEmpty || ContinuousClock.now >= drainEnd { break }
            }
            self.giveSignOfLife()
            self.dismissSilent()
            self.wait()
        }
        for id in Array(self.connections.keys) { self.remove(id) }
        self.listener.close()
    }

    /// Acts on what other threads have left.
    private mutating func takePosts() {
        let (touched, answered, isStopping) = self.server.shared.withLock { shared in
            defer {
                shared.touched = []
                shared.answered = []
            }
            return (shared.touched, shared.answered, shared.isStopping)
        }
        if isStopping, self.drainEnd == nil {
            self.listener.close()
            self.drainEnd = .now + self.server.limits.drain
        }
        for id in answered { self.connections[id]?.isBusy = false }
        for id in touched { self.advance(id) }
    }

    /// Sends an empty line, which says nothing, to those who wait for an answer.
    ///
    /// A command gives a service up that is silent for 10 s, and a large `add` on a slow disk takes longer.
    private mutating func giveSignOfLife() {
        let waiting = self.connections.values.filter { $0.isBusy && !$0.isHungUp }
        if let signOfLife, ContinuousClock.now >= signOfLife {
            for var connection in waiting where connection.output.isEmpty {
                connection.output = [UInt8(ascii: "\n")]
                self.send(&connection)
                self.connections[connection.id] = connection
            }
            self.signOfLife = nil
        }
        if waiting.isEmpty {
            self.signOfLife = nil
        } else if self.signOfLife == nil {
            self.signOfLife = .now + self.server.limits.signOfLife
        }
    }

    /// Closes connections that have not greeted in time.
    private mutating func dismissSilent() {
        let now = ContinuousClock.now
        while let id = self.silent.first {
            if let end = self.connections[id]?.greetsBefore {
                guard end <= now else { return }
                self.remove(id)
            }
            self.silent.removeFirst()
        }
    }

    /// Whether a stop need not wait for this connection.
    private func isIdle(_ connection: ServerConnection) -> Bool {
        guard !connection.isBusy, !connection.input.hasNext, connection.output.isEmpty else { return false }
        return self.server.shared.withLock { $0.outboxes[connection.id]?.isEmpty ?? true }
    }

    /// Waits for sockets and for other threads, and acts on what came.
    private mutating func wait() {
        var items = [pollfd(fd: self.wakeUp.descriptor, events: Int16(POLLIN), revents: 0)]
        var ids: [ClientID] = []
        for connection in self.connections.values where !connection.isHungUp {
            let events = (connection.wantsInput ? POLLIN : 0) | (connection.isBlocked ? POLLOUT : 0)
            items.append(pollfd(fd: connection.descriptor, events: Int16(events), revents: 0))
            ids.append(connection.id)
        }
        if let acceptsAfter, ContinuousClock.now >= acceptsAfter { self.acceptsAfter = nil }
        if self.drainEnd == nil, self.acceptsAfter == nil {
            items.append(pollfd(fd: self.listener.descriptor, events: Int16(POLLIN), revents: 0))
        }
        guard poll(&items, nfds_t(items.count), self.timeout) > 0 else { return }
        if items[0].revents != 0 { self.wakeUp.clear() }
        for (id, item) in zip(ids, items.dropFirst()) where item.revents != 0 {
            self.serve(id, Int32(item.revents))
        }
        if items.count > ids.count + 1, items[ids.count + 1].revents != 0 { self.accept() }
    }

    /// Milliseconds until a time of our own is due, -1 if none is.
    private var timeout: Int32 {
        let greeting = self.silent.first.flatMap { self.connections[$0]?.greetsBefore }
        let times = [self.acceptsAfter, self.drainEnd, self.signOfLife, greeting]
        guard let due = times.compactMap(\.self).min() else { return -1 }
        return Int32(max(0, ((due - .now) / Duration.milliseconds(1)).rounded(.up)))
    }

    private mutating func accept() {
        while true {
            let descriptor = UnixSocket.accept(self.listener.descriptor)
            guard descriptor >= 0 else {
                switch errno {
                case EINTR, ECONNABORTED: continue
                case EAGAIN: return
                default:
                    self.acceptsAfter = .now + .milliseconds(100)
                    return
                }
            }
            guard self.admits(descriptor) else {
                close(descriptor)
                continue
            }
            guard self.makeRoom() else {
                Self.refuse(descriptor)
                continue
            }
            self.lastID += 1
            let id = ClientID(rawValue: self.lastID)
            let lines = self.server.open(id)
            let input = LineBuffer(limit: self.server.limits.lineBytes)
            self.connections[id] = ServerConnection(
                id: id,
                descriptor: descriptor,
                lines: lines,
                input: input,
                greetsBefore: .now + self.server.limits.greeting
            )
            self.silent.append(id)
        }
    }

    /// Whether one more connection has a place; the oldest of those that have not greeted gives it up.
    private mutating func makeRoom() -> Bool {
        guard self.connections.count >= self.server.limits.connections else { return true }
        while let id = self.silent.first {
            self.silent.removeFirst()
            guard self.connections[id]?.greetsBefore != nil else { continue }
            self.remove(id)
            return true
        }
        return false
    }

    /// Tells a client that there are too many; what does not fit the socket's empty buffer is of no use to it.
    private static func refuse(_ descriptor: Int32) {
        let error = FerryError(
            .busy,
            "the service has as many clients as it can serve; try again when some have gone",
            exitStatus: .noService
        )
        if let line = ControlServer.line(ServiceLine(error: ErrorDocument(error))) {
            _ = UnixSocket.send(descriptor, line[...])
        }
        close(descriptor)
    }

    /// Whether the peer may use this queue.
    private func admits(_ descriptor: Int32) -> Bool {
        PeerCredentials(of: descriptor)?.mayUse(
            isSystem: self.server.location.isSystem,
            owner: geteuid(),
            ownerGroup: getegid()
        ) ?? false
    }

    /// Acts on what poll(2) reported.
    private mutating func serve(_ id: ClientID, _ events: Int32) {
        guard var connection = self.connections[id] else { return }
        if events & POLLOUT != 0 { connection.isBlocked = false }
        let isGone = events & (POLLHUP | POLLERR | POLLNVAL) != 0
        if events & POLLIN != 0 || isGone { Self.read(&connection, all: isGone) }
        if isGone {
            connection.isHungUp = true
            connection.isBlocked = false  // the next try to send fails, which empties the output
            connection.isInputEnded = true
        }
        self.connections[id] = connection
        self.advance(id)
    }

    /// Reads some of what is there, or all of what a peer that has gone left in the socket.
    private static func read(_ connection: inout ServerConnection, all: Bool) {
        while !connection.isInputEnded {
            switch UnixSocket.receive(connection.descriptor, into: { connection.input.append($0) }) {
            case .success(0): connection.isInputEnded = true
            case .success: if !all { return }
            case .failure(let failure):
                if !failure.isWouldBlock { connection.isInputEnded = true }
                return
            }
        }
    }

    /// Hands the next line on, sends what waits, and removes a connection that has ended.
    private mutating func advance(_ id: ClientID) {
        guard var connection = self.connections[id] else { return }
        if !connection.isBusy, !connection.closesWhenSent {
            switch connection.input.next() {
            case .line(let line):
                connection.greetsBefore = nil
                connection.isBusy = true
                connection.lines.yield(line)
            case .none where self.isCrowdedOut(connection):
                self.dismiss(
                    &connection,
                    FerryError(
                        .busy,
                        "the service is taking too many large requests at once; try again",
                        exitStatus: .noService
                    )
                )
            case .none:
                break
            case .overLimit:
                let limit = self.server.limits.lineBytes
                self.dismiss(&connection, .usage("a request may have \(limit) bytes at most"))
            }
        }
        self.send(&connection)
        let isDone =
            connection.output.isEmpty && !connection.isBusy && !connection.input.hasNext
            && connection.isInputEnded
        let isClosed = connection.closesWhenSent && connection.output.isEmpty
        self.connections[id] = connection
        if isDone || isClosed { self.remove(id) }
    }

    /// Tells a client why it is not listened to any more, and ends with that.
    private func dismiss(_ connection: inout ServerConnection, _ error: FerryError) {
        connection.closesWhenSent = true
        let line = ControlServer.line(ServiceLine(error: ErrorDocument(error)))
        self.server.post(line, to: connection.id, closes: true)
    }

    /// Whether a half line grows while those of all clients take more memory than they may.
    private func isCrowdedOut(_ connection: ServerConnection) -> Bool {
        guard connection.input.count > 1 << 16 else { return false }
        let others = self.connections.values.reduce(0) { $0 + ($1.id == connection.id ? 0 : $1.input.count) }
        return others + connection.input.count > self.server.limits.inputBytes
    }

    /// Sends from the outbox until it is empty or the socket is full.
    private func send(_ connection: inout ServerConnection) {
        while !connection.isBlocked {
            if connection.output.isEmpty {
                let (bytes, closes) = self.server.shared.withLock { shared in
                    let closes = shared.outboxes[connection.id]?.closesWhenSent ?? false
                    return (shared.outboxes[connection.id]?.take() ?? [], closes)
                }
                connection.closesWhenSent = connection.closesWhenSent || closes
                if bytes.isEmpty { return }
                connection.output = bytes[...]
            }
            switch UnixSocket.send(connection.descriptor, connection.output) {
            case .success(let count): connection.output = connection.output.dropFirst(count)
            case .failure(let failure) where failure.isWouldBlock: connection.isBlocked = true
            case .failure: connection.output = []  // it has gone; poll(2) or its end of input says so
            }
        }
    }

    private mutating func remove(_ id: ClientID) {
        guard let connection = self.connections.removeValue(forKey: id) else { return }
        close(connection.descriptor)
        self.server.shared.withLock { shared in
            shared.outboxes[id] = nil
            shared.touched.remove(id)
            shared.answered.remove(id)
        }
        connection.lines.finish()
    }
}
