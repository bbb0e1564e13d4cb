import CCurl
import CFerryLinux
import FerryCore
import Glibc
import Synchronization

/// A thread that owns one libcurl multi handle and all of its easy handles.
///
/// Others post commands to a mailbox and wake it; answers come back through ``Exchange``. Nothing in it waits
/// for anything but the network. After ``stop()`` every exchange has ended.
final class LoopThread: Sendable {
    enum Command: Sendable {
        case start(Exchange)
        case accept(UInt64, any BodySink)
        case resume(UInt64)
        case cancel(UInt64)
        case wokeUp
        case run(@Sendable () -> Void)
    }

    /// The multi handle: used by the loop's thread alone, but for `curl_multi_wakeup`, which any thread may
    /// call (curl_multi_wakeup(3)); ``Mailbox/isOpen`` is false before it is freed.
    private struct Multi: @unchecked Sendable {
        let handle: OpaquePointer
    }

    private struct Mailbox {
        var commands: [Command] = []
        var isOpen = true
    }

    private let multi: Multi
    private let userAgent: String
    private let index: Int
    private let limiter: RateLimiter
    private let mailbox = Mutex(Mailbox())
    private let nextID = Atomic<UInt64>(1)
    private let count = Atomic<Int>(0)
    private let stopped = OneShot<Void>()

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - userAgent: What requests call themselves unless a field says otherwise.
    ///   - index: Which of the threads under the limiter it is.
    ///   - limiter: The limits on bytes a second.
    /// - Throws: ``FerryError`` `.noService` if libcurl cannot be set up or no thread can be had.
    init(userAgent: String, index: Int, limiter: RateLimiter) throws(FerryError) {
        guard Self.isLibraryReady, let handle = curl_multi_init() else {
            throw FerryError(.noService, "libcurl could not be set up", exitStatus: .noService)
        }
        self.multi = Multi(handle: handle)
        self.userAgent = userAgent
        self.index = index
        self.limiter = limiter
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self)
        let code = pthread_create(
            &thread,
            nil,
            { context in
                guard let context else { return nil }
                ferry_name_thread("ferry-network")
                Unmanaged<LoopThread>.fromOpaque(context).takeRetainedValue().run()
                return nil
            },
            context.toOpaque()
        )
        guard code == 0 else {
            context.release()
            curl_multi_cleanup(handle)
            throw FerryError(.noService, "no thread for the network could be started", exitStatus: .noService)
        }
        pthread_detach(thread)
        limiter.onChange { [weak self] in _ = self?.run {} }
    }

    /// `curl_global_init`, once a process.
    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// Sends a request; what goes wrong is told by the exchange.
    func open(_ request: HTTPRequest) -> Exchange {
        let id = self.nextID.wrappingAdd(1, ordering: .relaxed).oldValue
        let exchange = Exchange(id: id, request: request) { [weak self] command in
            _ = self?.post(command)  // a loop that is gone has ended all exchanges
        }
        if !self.post(.start(exchange)) {
            let end = ExchangeEnd(code: ExchangeEnd.cancelledCode, detail: "the service is stopping")
            exchange.headSlot.fill(.failure(end))
            exchange.endSlot.fill(end)
        }
        return exchange
    }

    /// Runs a closure on the thread; false, and never, once it has been told to stop.
    func run(_ body: @escaping @Sendable () -> Void) -> Bool {
        self.post(.run(body))
    }

    /// Says that the machine has slept: see ``NetworkLoop/wokeUp()``.
    func wokeUp() {
        _ = self.post(.wokeUp)  // a loop that is gone has nothing to drop
    }

    /// Exchanges that are under way.
    var exchangeCount: Int { self.count.load(ordering: .relaxed) }

    /// Ends all exchanges and the thread, and waits until that is done; callable once.
    func stop() async {
        self.mailbox.withLock { box in
            box.isOpen = false
            _ = curl_multi_wakeup(self.multi.handle)  // it cannot fail on a live handle
        }
        await self.stopped.value()
    }

    private func post(_ command: Command) -> Bool {
        self.mailbox.withLock { box in
            guard box.isOpen else { return false }
            box.commands.append(command)
            _ = curl_multi_wakeup(self.multi.handle)  // it cannot fail on a live handle
            return true
        }
    }

    private func run() {
        let worker = LoopWorker(
            multi: self.multi.handle,
            userAgent: self.userAgent,
            index: self.index,
            limiter: self.limiter
        )
        while true {
            let (commands, isOpen) = self.mailbox.withLock { box in
                defer { box.commands.removeAll(keepingCapacity: true) }
                return (box.commands, box.isOpen)
            }
            for command in commands { worker.carryOut(command) }
            self.count.store(worker.transferCount, ordering: .relaxed)
            guard isOpen else { break }
            worker.turn()
        }
        worker.endAll()
        curl_multi_cleanup(self.multi.handle)
        self.stopped.fill(())
    }
}

/// What the loop's thread does; not `Sendable`, it never leaves that thread.
private final class LoopWorker {
    private let multi: OpaquePointer
    private let userAgent: String
    private let index: Int
    private let limiter: RateLimiter
    private var knownChange: UInt64 = 0
    private var transfers: [UInt64: LoopTransfer] = [:]
    private var identifiers: [OpaquePointer: UInt64] = [:]
    private var idleHandles: [OpaquePointer] = []
    private let table = SocketTable()
    /// When the machine woke from its last sleep.
    private var wokeAt: Duration?
    private var lookedAt = Duration.zero
    /// When a transfer ended whose connection may have a large window.
    private var wideAt: Duration?

    /// Longer ago no connection that is open still is from before: libcurl drops those that were idle for 118 seconds
    /// (CURLOPT_MAXAGE_CONN(3)).
    private static let wakeMatters = Duration.seconds(120)

    init(multi: OpaquePointer, userAgent: String, index: Int, limiter: RateLimiter) {
        self.multi = multi
        self.userAgent = userAgent
        self.index = index
        self.limiter = limiter
    }

    /// Exchanges that are under way.
    var transferCount: Int { self.transfers.count }

    func carryOut(_ command: LoopThread.Command) {
        switch command {
        case .start(let exchange):
            self.start(exchange)
        case .accept(let id, let sink):
            guard let transfer = self.transfers[id] else { return }
            transfer.sink = sink
            self.unpause(id)
        case .resume(let id):
            self.unpause(id)
        case .cancel(let id):
            self.finish(id, code: ExchangeEnd.cancelledCode, detail: "cancelled")
        case .wokeUp:
            self.wokeAt = .sinceBoot
            for transfer in self.transfers.values {
                _ = transfer.look(at: .sinceBoot)  // what came before is no sign of life
                transfer.watch.slept(at: .sinceBoot)
            }
        case .run(let body):
            body()
        }
    }

    /// One round: let libcurl work, report what has finished, wait for events or a wake-up.
    func turn() {
        var running: Int32 = 0
        // A failure of the multi handle itself (out of memory) shows as failed transfers below.
        _ = curl_multi_perform(self.multi, &running)
        var handle: OpaquePointer?
        var result = CURLE_OK
        var finished: [(UInt64, CURLcode)] = []
        while ferry_curl_next_finished(self.multi, &handle, &result) == 1 {
            if let handle, let id = self.identifiers[handle] { finished.append((id, result)) }
        }
        for (id, code) in finished {
            let detail = self.transfers[id]?.errorText ?? ""
            self.finish(
                id,
                code: Int32(code.rawValue),
                detail: detail.isEmpty && code != CURLE_OK
                    ? String(cString: curl_easy_strerror(code)) : detail
            )
        }
        if !finished.isEmpty { return }
        // libcurl's own timers shorten the wait; without transfers only a wake-up matters.
        var wait = self.transfers.isEmpty ? 3_600_000 : Int32(self.endStalled())
        if self.limiter.isActive || self.knownChange != self.limiter.changeCount {
            guard let turn = self.grant() else { return }
            wait = min(wait, turn)
        }
        _ = curl_multi_poll(self.multi, nil, 0, wait, nil)
    }

    /// Lets go on whom the limiter names, and gives the milliseconds until it may name others; nil after some did.
    private func grant() -> Int32? {
        let change = self.limiter.changeCount
        if change != self.knownChange {
            self.knownChange = change
            for transfer in self.transfers.values { transfer.limitsChanged() }
        }
        let (exchanges, wait) = self.limiter.grant(to: self.index)
        // Not from within a callback: libcurl calls the transfer's own ones before this returns.
        for id in exchanges { self.unpause(id) }
        return exchanges.isEmpty ? wait ?? .max : nil
    }

    /// Ends what has stalled; gives the milliseconds until the next look.
    private func endStalled() -> Int {
        var interval = Duration.seconds(1)
        for transfer in self.transfers.values { interval = min(interval, transfer.watch.interval) }
        let now = Duration.sinceBoot
        let next = self.lookedAt + interval
        guard now >= next else { return max(1, (next - now).wholeMilliseconds) }
        self.lookedAt = now
        for (id, transfer) in self.transfers {
            guard let stall = transfer.look(at: now) else { continue }
            transfer.stall = stall
            self.finish(id, code: Int32(CURLE_OPERATION_TIMEDOUT.rawValue), detail: stall.text)
        }
        return interval.wholeMilliseconds
    }

    func endAll() {
        for id in Array(self.transfers.keys) {
            self.finish(id, code: ExchangeEnd.cancelledCode, detail: "the service is stopping")
        }
        for handle in self.idleHandles { curl_easy_cleanup(handle) }
        self.idleHandles.removeAll()
    }

    private func start(_ exchange: Exchange) {
        guard let easy = self.idleHandles.popLast() ?? curl_easy_init() else {
            self.refuse(exchange, code: CURLE_OUT_OF_MEMORY)
            return
        }
        let now = Duration.sinceBoot
        let awake = self.wokeAt.map { now - $0 }
        let transfer = LoopTransfer(
            exchange: exchange,
            easy: easy,
            limiter: self.limiter,
            thread: self.index,
            table: self.table,
            now: now
        )
        var code = transfer.configure(
            userAgent: self.userAgent,
            awake: awake.flatMap { $0 < Self.wakeMatters ? $0 : nil },
            quiet: self.wideAt.flatMap { now - $0 < Self.wakeMatters ? now - $0 : nil }
        )
        if code == CURLE_OK, curl_multi_add_handle(self.multi, easy) != CURLM_OK {
            code = CURLE_FAILED_INIT
        }
        guard code == CURLE_OK else {
            curl_easy_cleanup(easy)
            transfer.leaveLimiter()
            self.refuse(exchange, code: code)
            return
        }
        self.transfers[exchange.id] = transfer
        self.identifiers[easy] = exchange.id
    }

    private func refuse(_ exchange: Exchange, code: CURLcode) {
        let end = ExchangeEnd(code: Int32(code.rawValue), detail: String(cString: curl_easy_strerror(code)))
        exchange.headSlot.fill(.failure(end))
        exchange.endSlot.fill(end)
    }

    private func unpause(_ id: UInt64) {
        guard let code = self.transfers[id]?.unpause(), code != CURLE_OK else { return }
        self.finish(id, code: code)
    }

    private func finish(_ id: UInt64, code: CURLcode) {
        let detail = self.transfers[id]?.errorText ?? ""
        self.finish(
            id,
            code: Int32(code.rawValue),
            detail: detail.isEmpty && code != CURLE_OK ? String(cString: curl_easy_strerror(code)) : detail
        )
    }

    private func finish(_ id: UInt64, code: Int32, detail: String) {
        guard let transfer = self.transfers.removeValue(forKey: id) else { return }
        transfer.leaveLimiter()
        if transfer.wasWide { self.wideAt = .sinceBoot }
        let end = transfer.end(code: code, detail: detail)
        self.identifiers[transfer.easy] = nil
        _ = curl_multi_remove_handle(self.multi, transfer.easy)  // it is in this multi handle
        // After a failure a handle may keep its buffer, and then its size cannot be set again: libcurl 7.88
        // does so when a name was not resolved, and the next transfer would end with code 43.
        if code == Int32(CURLE_OK.rawValue), self.idleHandles.count < 16 {
            curl_easy_reset(transfer.easy)
            self.idleHandles.append(transfer.easy)
        } else {
            curl_easy_cleanup(transfer.easy)
        }
        transfer.exchange.headSlot.fill(.failure(end))
        transfer.exchange.endSlot.fill(end)
    }
}
