public import FerryCore
import Synchronization

/// Takes the bytes of a body on the loop's thread.
public protocol BodySink: AnyObject, Sendable {
    /// Takes all of the bytes or none.
    ///
    /// Called on the loop's thread: it must not wait for anything. After `.pause` the same bytes come again
    /// once ``Exchange/resume()`` was called.
    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer
}

/// What a sink did with the bytes.
public enum SinkAnswer: Sendable {
    /// All were taken.
    case taken
    /// None was taken; there is no room now.
    case pause
    /// None was taken; the exchange is to end. The sink knows why.
    case stop
}

/// How an exchange ended, as libcurl tells it.
public struct ExchangeEnd: Sendable, Error {
    /// The code that stands for ``Exchange/cancel()`` or a stopped loop; libcurl's are not negative.
    public static let cancelledCode: Int32 = -1

    /// libcurl's code (`CURLcode`), 0 for "the message was complete as far as libcurl can see".
    public var code: Int32
    /// libcurl's words; empty if it had none.
    public var detail: String
    /// Body bytes that the sink took.
    public var bodyBytes: Int64
    /// Body bytes of the request that were given to the socket.
    public var sentBytes: Int64
    /// Body bytes of the request that libcurl had taken: what the server can have at most.
    public var takenBytes: Int64
    /// The server was asked for leave to send the body, and said nothing in time.
    public var ignoredExpect: Bool
    /// The peer's address and port.
    public var address: String?
    /// Time from the start to the first byte of the answer; nil if none came.
    public var firstByte: Duration?
    /// Time from the start to the end.
    public var total: Duration
    /// Fields that came after the body.
    public var trailers: [ResponseHead.Field]
    /// How far it had come.
    public var phase = ExchangePhase.resolving
    /// Why it was ended as stalled, with code 28; nil if it was not.
    public var stall: StallWatch.Stall?
    /// The machine had slept while it ran, and no byte has come since.
    public var wasAsleep = false
    /// The numeric addresses that a connection was tried to; none where an open one was used.
    public var tried: [String] = []

    init(code: Int32, detail: String) {
        self.code = code
        self.detail = detail
        self.bodyBytes = 0
        self.sentBytes = 0
        self.takenBytes = 0
        self.ignoredExpect = false
        self.total = .zero
        self.trailers = []
    }
}

/// One request and its answer, under way in a ``NetworkLoop``.
///
/// The head is delivered first and **no body byte is taken before** ``receive(into:)`` says where to: the
/// exchange stands still until then. All methods may be called from any thread.
public final class Exchange: Sendable {
    let id: UInt64
    let request: HTTPRequest
    let headSlot = OneShot<Result<ResponseHead, ExchangeEnd>>()
    let endSlot = OneShot<ExchangeEnd>()
    private let post: @Sendable (LoopThread.Command) -> Void
    private let opened = ContinuousClock.now
    private let contact = Mutex<Connection?>(nil)

    /// The connection that a request goes over.
    public enum Connection: Hashable, Sendable {
        /// It was made for the request, and took so long, from the look-up of the name on.
        case new(Duration)
        /// It was there already.
        case old
    }

    init(id: UInt64, request: HTTPRequest, post: @escaping @Sendable (LoopThread.Command) -> Void) {
        self.id = id
        self.request = request
        self.post = post
    }

    /// The connection, once there is one and the request leaves.
    public var connection: Connection? { self.contact.withLock { $0 } }

    /// Takes note of a connection.
    func hasConnection(isNew: Bool) {
        let connection = isNew ? Connection.new(ContinuousClock.now - self.opened) : .old
        self.contact.withLock { if $0 == nil { $0 = connection } }
    }

    /// Waits for the head of the final answer (not 1xx).
    ///
    /// - Throws: ``ExchangeEnd`` if the exchange ended before there was one.
    public func head() async throws(ExchangeEnd) -> ResponseHead {
        try await self.headSlot.value().get()
    }

    /// Lets the body flow into a sink; called once, after ``head()``.
    public func receive(into sink: any BodySink) {
        self.post(.accept(self.id, sink))
    }

    /// Goes on after the sink or the source answered `.pause`.
    public func resume() {
        self.post(.resume(self.id))
    }

    /// Ends the exchange now; ``end()`` then gives ``ExchangeEnd/cancelledCode``.
    public func cancel() {
        self.post(.cancel(self.id))
    }

    /// Waits for the end, after which the sink is not called any more.
    public func end() async -> ExchangeEnd {
        await self.endSlot.value()
    }
}

/// A value that is set once and awaited by one task.
final class OneShot<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Value, Never>)
        case filled(Value)
    }
    private let state = Mutex<State>(.empty)

    /// The value, now or later; a second waiter before it is there is a caller's mistake.
    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let ready: Value? = self.state.withLock { state in
                switch state {
                case .filled(let value):
                    return value
                case .empty:
                    state = .waiting(continuation)
                    return nil
                case .waiting:
                    preconditionFailure("two tasks wait for one exchange")
                }
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    /// Sets the value; later ones are ignored.
    func fill(_ value: Value) {
        let waiter: CheckedContinuation<Value, Never>? = self.state.withLock { state in
            switch state {
            case .filled:
                return nil
            case .empty:
                state = .filled(value)
                return nil
            case .waiting(let continuation):
                state = .filled(value)
                return continuation
            }
        }
        waiter?.resume(returning: value)
    }
}
