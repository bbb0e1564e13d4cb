import CFerryLinux
import Dispatch
import FerryControl
import FerryCore
import FerryEngine
import FerryHTTP
import FerryStore
import Glibc
import Synchronization

/// The parts of a running service, and the order in which they start and stop.
final class ServiceLife: Sendable {
    private let store: JobStore
    private let loop: NetworkLoop
    private let engine: Engine
    private let server: ControlServer
    private let subscriptions: Subscriptions
    private let log: ServiceLog
    private let onDemand: Bool
    private let hasToEnd: EndFlag
    private let environment: [String: String]
    private let notify: NotifySocket
    private let statusLine: StatusLine
    private let configuration: SettledConfiguration
    /// How often old history is looked for.
    private static let trimInterval = Duration.seconds(86_400)

    /// Opens the database and binds the socket; nothing runs yet.
    ///
    /// `wake` has to wake ``serve(signals:wake:linger:)``; it is called from any thread.
    init(
        location: QueueLocation,
        configuration: Configuration,
        onDemand: Bool,
        environment: [String: String],
        notify: NotifySocket,
        log: ServiceLog,
        wake: @escaping @Sendable () -> Void
    ) throws(FerryError) {
        let subscriptions = Subscriptions()
        let hasToEnd = EndFlag()
        let settled = SettledConfiguration(configuration)
        let news = NewsFlag()
        self.store = try JobStore(directory: location.stateDirectory)
        self.loop = try NetworkLoop(userAgent: "ferry/\(ferryVersion)")
        var renewal = Renewal()
        renewal.environment = environment
        // A job's document has nothing that cannot be encoded.
        renewal.document = { (try? ControlJSON.encode(JobDocument($0, remote: $1))) ?? [] }
        self.engine = Engine(
            store: self.store,
            loop: self.loop,
            configuration: configuration.engine,
            mode: onDemand ? .attached : .all,
            crashPoint: environment["FERRY_CRASH_POINT"],
            boardPath: location.stateDirectory + "/board",
            spool: location.stateDirectory + "/" + SpoolName.folder,
            renewal: renewal,
            observer: { changes in
                for change in changes { Self.record(change, in: log) }
                subscriptions.publish(changes)
                if !changes.isEmpty { news.raise() }
            }
        )
        let statusLine = StatusLine(notify, self.engine)
        if notify.isUsed { news.connect { Task { await statusLine.changed() } } }
        self.server = try ControlServer(
            location: location,
            hello: Hello(
                protocolVersion: controlProtocolVersion,
                version: ferryVersion,
                pid: getpid(),
                onDemand: onDemand,
                stateDir: location.stateDirectory
            ),
            handler: ServiceHandler(
                engine: self.engine,
                subscriptions: subscriptions,
                onDemand: onDemand,
                location: location,
                configuration: { settled.value },
                clientsChanged: { endNow in
                    if endNow { hasToEnd.raise() }
                    wake()
                }
            )
        )
        subscriptions.connect(self.server)
        self.subscriptions = subscriptions
        self.log = log
        self.onDemand = onDemand
        self.hasToEnd = hasToEnd
        self.environment = environment
        self.notify = notify
        self.statusLine = statusLine
        self.configuration = settled
    }

    /// Takes up what is in the database and begins to serve.
    func start() throws(FerryError) {
        let engine = self.engine
        let failure = Mutex<FerryError?>(nil)
        Self.wait {
            do {
                try await engine.start()
            } catch {
                failure.withLock { $0 = error.asFerryError }
            }
        }
        if let failed = failure.withLock({ $0 }) { throw failed }
        self.server.start()
    }

    /// Tells that everything is in place.
    func ready() {
        let (notify, statusLine) = (self.notify, self.statusLine)
        if notify.isUsed { Self.wait { notify.send(.ready(status: await statusLine.text())) } }
        self.log.write(
            .info,
            [
                "event": "ready", "version": ferryVersion, "pid": "\(getpid())",
                "on_demand": "\(self.onDemand)",
            ]
        )
        self.warnOfDescriptors()
    }

    /// Waits until a signal, the hand-over or the end of the last client says that it is over.
    ///
    /// A service on demand stays `linger` milliseconds without clients. A watchdog is fed twice in its time.
    func serve(signals: Int32, wake: Int32, linger: Int32, watchdog: Duration?) {
        let health = HealthCheck(
            HealthCheck.parts(
                self.engine,
                self.loop,
                self.store,
                HangPoint(self.environment["FERRY_HANG_POINT"])
            )
        ) { [notify] in notify.send(.watchdog) }
        var checks = Alarm(every: watchdog.map { $0 / 2 })
        var trims = Alarm(every: Self.trimInterval)
        var rests = Alarm(every: self.onDemand ? nil : MemoryTrim.interval, after: MemoryTrim.first)
        while true {
            if rests.goesOff(), self.loop.exchangeCount == 0 { MemoryTrim.run() }
            if trims.goesOff() {
                let (engine, log) = (self.engine, self.log)
                Task(priority: .medium) { await Self.trimHistory(engine, log) }
            }
            if checks.goesOff() { self.check(health) }
            let isIdle = self.onDemand && self.server.clientCount == 0
            var descriptors = [
                pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
            ]
            let limit = isIdle ? linger : Int32.max
            let count = poll(
                &descriptors,
                nfds_t(descriptors.count),
                min(limit, checks.milliseconds, trims.milliseconds, rests.milliseconds)
            )
            if count == 0, isIdle, self.server.clientCount == 0 { return }
            if descriptors[1].revents != 0 {
                ferry_eventfd_clear(wake)
                if self.hasToEnd.isRaised { return }
            }
            if descriptors[0].revents != 0 {
                switch ferry_signalfd_read(signals) {
                case SIGTERM, SIGINT: return
                case SIGHUP: self.reload()
                case SIGUSR1: self.logState()
                default: break
                }
            }
        }
    }

    /// Stops in the order that loses nothing: transfers, then clients, then the database.
    func stop() {
        let statusLine = self.statusLine
        Task { await statusLine.end() }
        self.notify.send(.stopping)
        self.log.write(.info, ["event": "stopping"])
        StopGuard.arm(self.log)
        let (engine, loop) = (self.engine, self.loop)
        Self.wait {
            await engine.stop(syncingFor: StopGuard.syncing)
            await loop.stop()
        }
        self.server.stop()
        self.store.close()
        self.log.write(.info, ["event": "stopped"])
    }

    // MARK: Signals and timers

    /// Reads the configuration again; a broken one changes nothing.
    func reload() {
        self.notify.send(.reloading(atMicroseconds: EngineTime.real.monotonic().microseconds))
        do throws(FerryError) {
            let new = try Configuration.load(environment: self.environment)
            let old = self.configuration.replace(by: new)
            for change in new.changes(from: old) {
                self.log.write(
                    .info,
                    [
                        "event": "setting", "key": change.key, "old": change.old.description,
                        "new": change.new.description,
                    ]
                )
            }
            for (key, variable) in new.outweighed(since: old) {
                self.log.write(
                    .warning,
                    [
                        "event": "setting", "key": key,
                        "message": "not changed: the variable \(variable) of the service outweighs the files",
                    ]
                )
            }
            self.log.write(.info, ["event": "reloaded"])
            self.warnOfDescriptors()
        } catch {
            self.log.write(
                .error,
                ["event": "reload-failed", "message": "\(error.message); nothing is changed"]
            )
        }
        let (engine, configuration, notify, statusLine, log) =
            (self.engine, self.configuration, self.notify, self.statusLine, self.log)
        Task(priority: .medium) {
            await engine.reconfigure(configuration.value.engine)
            if notify.isUsed { notify.send(.ready(status: await statusLine.text())) }
            await Self.trimHistory(engine, log)  // by the time that is kept from now on
        }
    }

    private func logState() {
        let (engine, log) = (self.engine, self.log)
        let (clients, connections) = (self.server.clientCount, self.loop.exchangeCount)
        Task(priority: .medium) {
            StateReport.write(
                to: log,
                counts: (try? await engine.counts()) ?? [:],  // a database that refuses is told elsewhere
                running: await engine.progress(),
                clients: clients,
                connections: connections
            )
        }
    }

    private func check(_ health: HealthCheck) {
        for part in health.ask() {
            self.log.write(
                .warning,
                ["event": "watchdog", "part": part.rawValue, "message": "it has not answered in time"]
            )
        }
    }

    private static func trimHistory(_ engine: Engine, _ log: ServiceLog) async {
        do {
            let count = try await engine.trimHistory()
            if count > 0 { log.write(.info, ["event": "trimmed", "jobs": "\(count)"]) }
        } catch {
            log.write(.warning, ["event": "trim-failed", "message": error.asFerryError.message])
        }
    }

    private func warnOfDescriptors() {
        let running = self.configuration.value.engine.running
        let (needed, limit) = (ProcessUse.descriptorsNeeded(running: running), ProcessUse.descriptorLimit)
        guard limit.soft < needed else { return }
        self.log.write(
            .warning,
            [
                "event": "descriptors", "limit": "\(limit.soft)", "needed": "\(needed)",
                "message":
                    "limits.running is more than the limit of open files allows (ulimit -Hn, LimitNOFILE)",
            ]
        )
    }

    private static func record(_ change: JobChange, in log: ServiceLog) {
        log.write(
            change.event.state == .failed ? .warning : .info,
            [
                "job": change.event.job?.description,
                "event": change.event.kind,
                "reason": change.event.reason,
                "attempt": change.job.map { "\($0.attempts)" },
                "message": change.event.message,
            ]
        )
    }

    /// Runs async work to its end on this thread, which is not one of the pool's.
    ///
    /// Without a word on priority a task of the main thread, and all that come of it, would ask for threads of a
    /// higher one, which are root's alone to have: Dispatch would complain of that on standard error.
    private static func wait(_ work: @escaping @Sendable () async -> Void) {
        let done = DispatchSemaphore(value: 0)
        Task(priority: .medium) {
            await work()
            done.signal()
        }
        done.wait()
    }
}

/// Says that the service has to end.
final class EndFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    /// Whether it has to.
    var isRaised: Bool { self.flag.load(ordering: .acquiring) }

    /// Says so.
    func raise() { self.flag.store(true, ordering: .releasing) }
}

/// The configuration that was read last.
final class SettledConfiguration: Sendable {
    private let state: Mutex<Configuration>

    init(_ configuration: Configuration) {
        self.state = Mutex(configuration)
    }

    /// What it is.
    var value: Configuration { self.state.withLock { $0 } }

    /// Puts another one in its place, and gives the one before.
    func replace(by new: Configuration) -> Configuration {
        self.state.withLock { state in
            defer { state = new }
            return state
        }
    }
}

/// Calls one listener, which may come later, whenever it is raised.
final class NewsFlag: Sendable {
    private let listener = Mutex<(@Sendable () -> Void)?>(nil)

    /// Names the listener.
    func connect(_ listener: @escaping @Sendable () -> Void) {
        self.listener.withLock { $0 = listener }
    }

    /// Calls it.
    func raise() {
        self.listener.withLock { $0 }?()
    }
}

/// Something to do now and then every so often, on a thread that waits in poll(2).
struct Alarm {
    private let period: Duration?
    private var next: ContinuousClock.Instant

    /// Due after a first wait, and once in each period from then on; never if that is nil.
    init(every period: Duration?, after first: Duration = .zero) {
        self.period = period
        self.next = ContinuousClock.now + first
    }

    /// Whether it is to be done now; then the next time is a period from now.
    mutating func goesOff() -> Bool {
        guard let period, ContinuousClock.now >= self.next else { return false }
        self.next = ContinuousClock.now + period
        return true
    }

    /// Milliseconds to the next time, for poll(2).
    var milliseconds: Int32 {
        guard self.period != nil else { return .max }
        let (seconds, attoseconds) = (self.next - ContinuousClock.now).components
        return Int32(clamping: max(0, seconds * 1_000 + attoseconds / 1_000_000_000_000_000 + 1))
    }
}

extension Duration {
    /// Microseconds, rounded down.
    fileprivate var microseconds: Int64 {
        let (seconds, attoseconds) = self.components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
