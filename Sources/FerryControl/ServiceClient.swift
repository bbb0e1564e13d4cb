public import FerryCore
import Glibc

/// One connection to a service, for one thread, which may block in it.
///
/// A command waits with poll(2) for ``fileDescriptor`` and then takes what came with ``receive()``. Before it
/// waits it looks at ``hasIncoming``: what came during a ``call(_:)`` no longer makes the descriptor readable.
public final class ServiceClient {
    /// Something from the service.
    public enum Incoming: Sendable, Equatable {
        /// The answer to the request of this number.
        case response(Int, ControlResponse)
        /// The failure of the request of this number; 0 if it belongs to none.
        case failure(Int, FerryError)
        /// Something that this client subscribed to.
        case notification(ControlNotification)
        /// The service has closed the connection; always the last.
        case closed
    }

    /// The service's greeting.
    public let hello: Hello
    /// For poll(2); -1 after ``close()``.
    public private(set) var fileDescriptor: Int32
    /// Whether ``receive()`` has something without waiting.
    public var hasIncoming: Bool { !self.waiting.isEmpty || self.input.hasNext || self.isEnded }

    private let patience: Duration
    private var input: LineBuffer
    private var waiting: [Incoming] = []
    private var lastID = 0
    private var isEnded = false

    /// Takes over a connection on which the greetings were exchanged.
    init(descriptor: Int32, hello: Hello, input: LineBuffer, patience: Duration) {
        self.fileDescriptor = descriptor
        self.hello = hello
        self.input = input
        self.patience = patience
    }

    deinit {
        self.close()
    }

    /// Sends a request and waits for its answer.
    ///
    /// What else arrives meanwhile is kept in order for ``receive()``.
    ///
    /// - Throws: The service's error, or `no-service` if the service has gone or sends nothing for 10 s; while it works on a
    ///   request it sends a sign of life every few seconds.
    public func call(_ request: ControlRequest) throws(FerryError) -> ControlResponse {
        let id = try self.send(request)
        while true {
            for (index, incoming) in self.waiting.enumerated() {
                switch incoming {
                case .response(id, let response):
                    self.waiting.remove(at: index)
                    return response
                case .failure(id, let error), .failure(0, let error):
                    self.waiting.remove(at: index)
                    throw error
                case .response, .failure, .notification, .closed:
                    continue
                }
            }
            if self.isEnded { throw .noService("the service has closed the connection") }
            guard UnixSocket.wait(self.fileDescriptor, for: POLLIN, until: .now + self.patience) else {
                throw .noService("the service does not answer (process \(self.hello.pid))")
            }
            self.waiting += try self.read()
        }
    }

    /// Sends a request; its answer comes with ``receive()`` under the number returned.
    ///
    /// - Throws: `no-service` if the service has gone or takes nothing for 10 s; the service's error if it refused
    ///   to read on.
    public func send(_ request: ControlRequest) throws(FerryError) -> Int {
        self.lastID += 1
        let line: [UInt8]
        do {
            line =
                try ControlJSON.encode(RequestLine(id: self.lastID, request: request)) + [UInt8(ascii: "\n")]
        } catch {
            throw .usage("the request cannot be written as JSON: \(error)")
        }
        var rest = line[...]
        while !rest.isEmpty {
            switch UnixSocket.send(self.fileDescriptor, rest) {
            case .success(let count):
                rest = rest.dropFirst(count)
            case .failure(let failure) where failure.isWouldBlock:
                // Reads on, so that a service that waits to be read never stands against a client that does.
                let events = POLLIN | POLLOUT
                guard UnixSocket.wait(self.fileDescriptor, for: events, until: .now + self.patience) else {
                    throw .noService("the service takes no request (process \(self.hello.pid))")
                }
                self.waiting += try self.read()
                if self.isEnded { throw self.refusal }
            case .failure:
                self.waiting += try self.read()
                throw self.refusal
            }
        }
        return self.lastID
    }

    /// Takes what has come, without waiting.
    ///
    /// - Throws: `no-service` for a line that cannot be understood; the connection is of no use then.
    public func receive() throws(FerryError) -> [Incoming] {
        let earlier = self.waiting
        self.waiting = []
        return earlier + (try self.read()) + (self.isEnded ? [.closed] : [])
    }

    /// Ends the connection; may be repeated.
    public func close() {
        if self.fileDescriptor >= 0 { Glibc.close(self.fileDescriptor) }
        self.fileDescriptor = -1
        self.isEnded = true
    }

    /// Why the service takes nothing more: its last word, if it said one.
    private var refusal: FerryError {
        for case .failure(0, let error) in self.waiting { return error }
        return .noService("the service has closed the connection")
    }

    /// Reads until nothing is there, at most some MiB at once.
    private func read() throws(FerryError) -> [Incoming] {
        var result: [Incoming] = []
        var budget = 4 << 20
        while budget > 0, !self.isEnded {
            switch UnixSocket.receive(self.fileDescriptor, into: { self.input.append($0) }) {
            case .success(0): self.isEnded = true
            case .success(let count): budget -= count
            case .failure(let failure):
                self.isEnded = !failure.isWouldBlock
                if failure.isWouldBlock { budget = 0 }
            }
        }
        while case .line(let bytes) = self.input.next() { result.append(try Self.incoming(bytes)) }
        return result
    }

    private static func incoming(_ bytes: [UInt8]) throws(FerryError) -> Incoming {
        let line = try? ControlJSON.decode(ServiceLine.self, from: bytes)
        if let notification = line?.notification { return .notification(notification) }
        if let id = line?.id, let response = line?.response { return .response(id, response) }
        if let error = line?.error { return .failure(line?.id ?? 0, error.error) }
        throw .noService("the service sent a line that cannot be understood")
    }
}
