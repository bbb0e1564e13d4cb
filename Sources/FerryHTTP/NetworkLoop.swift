public import FerryCore
import Synchronization

/// The network: one or more threads that each own a libcurl multi handle.
///
/// All requests to one origin go through one thread, so that its connections are used again. Answers come back
/// through ``Exchange``. After ``stop()`` every exchange has ended.
public final class NetworkLoop: Sendable {
    private struct Threads {
        var all: [LoopThread]
        var isOpen = true
    }

    /// The limits on bytes a second of all that goes through this loop.
    public let limiter = RateLimiter()
    private let userAgent: String
    private let threads: Mutex<Threads>

    /// Starts the first thread.
    ///
    /// - Parameter userAgent: What requests call themselves unless a field says otherwise.
    /// - Throws: ``FerryError`` `.noService` if libcurl cannot be set up or no thread can be had.
    public init(userAgent: String) throws(FerryError) {
        self.userAgent = userAgent
        let first = try LoopThread(userAgent: userAgent, index: 0, limiter: self.limiter)
        self.threads = Mutex(Threads(all: [first]))
    }

    /// Makes sure of so many threads, or as many as can be had; exchanges under way stay where they are.
    public func grow(to count: Int) {
        self.threads.withLock { threads in
            while threads.isOpen, threads.all.count < count {
                let thread = try? LoopThread(
                    userAgent: self.userAgent,
                    index: threads.all.count,
                    limiter: self.limiter
                )
                guard let thread else { return }
                threads.all.append(thread)
            }
        }
    }

    /// How many threads there are.
    public var threadCount: Int { self.threads.withLock { $0.all.count } }

    /// Exchanges that are under way.
    public var exchangeCount: Int {
        self.threads.withLock { $0.all }.reduce(0) { $0 + $1.exchangeCount }
    }

    /// Sends a request; what goes wrong is told by the exchange.
    public func open(_ request: HTTPRequest) -> Exchange {
        let threads = self.threads.withLock { $0.all }
        return threads[Self.index(of: request.url, among: threads.count)].open(request)
    }

    /// Says that the machine has slept.
    ///
    /// Connections from before are not used again, and what runs on one has ten seconds to give a sign of life; see
    /// ``ExchangeEnd/wasAsleep``.
    public func wokeUp() {
        for thread in self.threads.withLock({ $0.all }) { thread.wokeUp() }
    }

    /// Runs a closure on every thread and returns when all have run it, or have ended; proves that they live.
    public func ping(_ body: @escaping @Sendable () -> Void = {}) async {
        for thread in self.threads.withLock({ $0.all }) {
            await withCheckedContinuation { continuation in
                let isPosted = thread.run {
                    body()
                    continuation.resume()
                }
                if !isPosted { continuation.resume() }
            }
        }
    }

    /// Ends all exchanges and threads, and waits until that is done; callable once.
    public func stop() async {
        let threads = self.threads.withLock { threads in
            threads.isOpen = false
            return threads.all
        }
        for thread in threads { await thread.stop() }
    }

    /// The thread of an origin: FNV-1a of the scheme and authority of the URL, which tells origins well apart.
    static func index(of url: String, among count: Int) -> Int {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        var slashes = 0
        for byte in url.utf8 {
            if byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") {
                slashes += 1
                if slashes > 2 { break }
            }
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
        }
        return Int(hash % UInt64(count))
    }
}
