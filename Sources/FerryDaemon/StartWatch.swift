import CFerryLinux
import FerryCore
import Glibc
import Synchronization

/// Watches over a start: asks the manager for more time while it lasts, and ends the process when that is wanted.
///
/// Migrations and recovery run for as long as they need; ended in their midst they go on at the next start.
final class StartWatch: Sendable {
    /// How often more time is asked for, below systemd's shortest usual limit.
    private static let interval: Int32 = 5_000
    /// How much is asked for each time.
    private static let more = Duration.seconds(30)
    /// A start that takes longer than this is taken for hung: no more time is asked for.
    private static let limit = Duration.seconds(6 * 3_600)

    private let notify: NotifySocket
    private let log: ServiceLog
    private let signals: Int32
    private let wake: Int32
    private let isOver = Atomic<Bool>(false)
    private let hasToReload = Atomic<Bool>(false)
    private let thread: Mutex<pthread_t?>

    /// Starts watching; the signals are its own meanwhile.
    init(notify: NotifySocket, log: ServiceLog, signals: Int32) {
        self.notify = notify
        self.log = log
        self.signals = signals
        self.wake = ferry_eventfd()
        self.thread = Mutex(nil)
        let thread = startThread("ferry-start") { self.run() }
        self.thread.withLock { $0 = thread }
    }

    /// Ends the watch; the signals are the caller's again.
    ///
    /// - Returns: Whether SIGHUP came meanwhile.
    func end() -> Bool {
        self.isOver.store(true, ordering: .releasing)
        ferry_eventfd_signal(self.wake)
        if let thread = self.thread.withLock({ $0.take() }) { pthread_join(thread, nil) }
        return self.hasToReload.load(ordering: .acquiring)
    }

    deinit {
        close(self.wake)
    }

    private func run() {
        let end = ContinuousClock.now + Self.limit
        while !self.isOver.load(ordering: .acquiring) {
            var descriptors = [
                pollfd(fd: self.signals, events: Int16(POLLIN), revents: 0),
                pollfd(fd: self.wake, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&descriptors, nfds_t(descriptors.count), Self.interval)
            if count == 0, ContinuousClock.now < end {
                self.notify.send(
                    .extendTimeout(Self.more, status: "bringing the job database up to date")
                )
            }
            guard descriptors[0].revents != 0 else { continue }
            let signal = ferry_signalfd_read(self.signals)
            if signal == SIGHUP { self.hasToReload.store(true, ordering: .releasing) }
            guard signal == SIGTERM || signal == SIGINT else { continue }
            self.notify.send(.stopping)
            self.log.write(.info, ["event": "stopped", "message": "the start was not over"])
            _exit(0)  // as for a kill: whatever was under way is done again
        }
    }
}

/// Starts a thread; nil if none can be had.
func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> pthread_t? {
    final class Start {
        let name: String
        let body: @Sendable () -> Void
        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
    var thread = pthread_t()
    let start = Unmanaged.passRetained(Start(name, body))
    let code = pthread_create(
        &thread,
        nil,
        { context in
            guard let context else { return nil }
            let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
            ferry_name_thread(start.name)
            start.body()
            return nil
        },
        start.toOpaque()
    )
    guard code == 0 else {
        start.release()
        return nil
    }
    return thread
}
