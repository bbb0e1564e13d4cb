import Dispatch
import FerryCore
import Glibc
import Synchronization
import Testing

@testable import FerryControl

/// Runs a body that blocks, on a thread of its own, so that the pool stays free for the server's tasks.
func blocking<Result: Sendable>(_ body: @Sendable () throws -> Result) async throws -> Result {
    try await withTaskExecutorPreference(ThreadExecutor()) { try body() }
}

private final class ThreadExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "test")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// A queue between threads; taking waits.
final class Mailbox<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])
    private let count = DispatchSemaphore(value: 0)

    func put(_ element: Element) {
        self.elements.withLock { $0.append(element) }
        self.count.signal()
    }

    func take() throws -> Element {
        try #require(self.count.wait(timeout: .now() + 120) == .success, "nothing came")
        return self.elements.withLock { $0.removeFirst() }
    }
}

/// A folder that goes with its last use; its path is short enough for a socket.
final class Folder: Sendable {
    let path: String
    var location: QueueLocation {
        get throws { try QueueLocation(stateDirectory: self.path, socketPath: self.path + "/s") }
    }

    init() throws {
        var template = Array("/tmp/ferry-control-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        self.path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        for name in ["s", "hidden", "ferryd", "arguments", "link"] { unlink(self.path + "/" + name) }
        rmdir(self.path + "/run")
        rmdir(self.path)
    }

    func write(_ text: String, to name: String, mode: mode_t = 0o600) throws {
        let file = open(self.path + "/" + name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        try #require(file >= 0)
        defer { close(file) }
        try #require(Glibc.write(file, text, text.utf8.count) == text.utf8.count)
    }

    func read(_ name: String) throws -> String {
        let file = open(self.path + "/" + name, O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        return String(decoding: buffer[..<max(0, Glibc.read(file, &buffer, buffer.count))], as: UTF8.self)
    }

    func mode(_ name: String) -> mode_t? {
        var status = stat()
        return lstat(self.path + "/" + name, &status) == 0 ? status.st_mode : nil
    }
}

/// A handler that tells what it is called with, and answers what a test says.
final class Recorder: ControlHandler {
    enum Call: Equatable {
        case joined(ClientID)
        case request(ControlRequest, ClientID)
        case left(ClientID)
    }

    typealias Answer = @Sendable (ControlRequest, ClientID) async throws(FerryError) -> ControlResponse

    let calls = Mailbox<Call>()
    private let answer: Answer

    init(_ answer: @escaping Answer = { _, _ async throws(FerryError) in .done }) {
        self.answer = answer
    }

    func handle(_ request: ControlRequest, from client: ClientID) async throws(FerryError) -> ControlResponse
    {
        self.calls.put(.request(request, client))
        return try await self.answer(request, client)
    }

    func clientJoined(_ client: ClientID) async { self.calls.put(.joined(client)) }

    func clientLeft(_ client: ClientID) async { self.calls.put(.left(client)) }

    /// The client that joins next, all other calls passed over.
    func nextJoined() throws -> ClientID {
        while true { if case .joined(let client) = try self.calls.take() { return client } }
    }

    /// The client that leaves next, all other calls passed over.
    func nextLeft() throws -> ClientID {
        while true { if case .left(let client) = try self.calls.take() { return client } }
    }
}

/// A server in a folder of its own, for the time of a body.
func withServer(
    _ handler: Recorder = Recorder(),
    limits: ControlServer.Limits = ControlServer.Limits(),
    protocolVersion: Int = controlProtocolVersion,
    _ body: @Sendable (ControlServer, Folder) throws -> Void
) async throws {
    let folder = try Folder()
    let hello = Hello(
        protocolVersion: protocolVersion,
        version: "9.9",
        pid: getpid(),
        onDemand: true,
        stateDir: folder.path
    )
    let server = try ControlServer(location: folder.location, hello: hello, handler: handler, limits: limits)
    server.start()
    defer { server.stop() }
    try await blocking { try body(server, folder) }
}

/// A client that sends whatever bytes a test likes; reads block.
final class RawClient {
    let descriptor: Int32
    private var input = LineBuffer(limit: nil)

    /// Connects, and greets and takes the greeting unless told otherwise.
    init(_ folder: Folder, greets: Bool = true, connects: Bool = true) throws {
        self.descriptor = UnixSocket.make()
        guard connects else { return }
        try self.connect(folder)
        guard greets else { return }
        try self.send(hello())
        try #require(try self.line()?.hello != nil)
    }

    /// Takes over a descriptor.
    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(self.descriptor)
    }

    func connect(_ folder: Folder) throws {
        try #require(try UnixSocket.connect(self.descriptor, to: folder.location.socketPath) == 0)
    }

    func send(_ text: String) throws {
        try self.send(Array(text.utf8))
    }

    func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            switch UnixSocket.send(self.descriptor, rest) {
            case .success(let count): rest = rest.dropFirst(count)
            case .failure(let failure):
                try #require(failure.isWouldBlock, "\(failure.words)")
                try #require(UnixSocket.wait(self.descriptor, for: POLLOUT, until: .now + .seconds(30)))
            }
        }
    }

    /// Sends as much as the other side takes before it ends the connection.
    func offer(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            switch UnixSocket.send(self.descriptor, rest) {
            case .success(let count): rest = rest.dropFirst(count)
            case .failure(let failure):
                guard failure.isWouldBlock,
                    UnixSocket.wait(self.descriptor, for: POLLOUT, until: .now + .seconds(30))
                else { return }
            }
        }
    }

    func send(_ id: Int, _ request: ControlRequest) throws {
        try self.send(ControlJSON.encode(RequestLine(id: id, request: request)) + [10])
    }

    /// The next line, nil at the end of the stream.
    func line() throws -> ServiceLine? {
        guard let bytes = try self.bytes() else { return nil }
        return try ControlJSON.decode(ServiceLine.self, from: bytes)
    }

    func bytes() throws -> [UInt8]? {
        while true {
            if case .line(let bytes) = self.input.next() { return bytes }
            try #require(
                UnixSocket.wait(self.descriptor, for: POLLIN, until: .now + .seconds(30)),
                "no line came"
            )
            switch UnixSocket.receive(self.descriptor, into: { self.input.append($0) }) {
            case .success(0): return nil
            case .success: continue
            case .failure(let failure): if !failure.isWouldBlock { return nil }
            }
        }
    }
}

/// The line by which a client greets.
func hello(protocolVersion: Int = controlProtocolVersion) throws -> [UInt8] {
    try ControlJSON.encode(Hello(protocolVersion: protocolVersion, version: "0", pid: 1)) + [10]
}

/// An event of about so many bytes.
func event(_ seq: Int64, bytes: Int = 0) -> ControlNotification {
    let message = String(repeating: "x", count: bytes)
    let time = Timestamp(milliseconds: 0)
    return .event(
        EventDocument(
            seq: seq,
            time: time,
            job: nil,
            kind: "added",
            state: nil,
            reason: nil,
            message: message
        ),
        job: nil
    )
}

/// A progress notification that a number tells apart.
func progress(_ bytesDone: Int64) -> ControlNotification {
    .progress([
        ProgressDocument(
            id: JobID(rawValue: 1),
            phase: .transferring,
            bytesDone: bytesDone,
            bytesDurable: 0,
            bytesTotal: nil,
            rateBytesPerS: nil,
            etaS: nil
        )
    ])
}
