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

    /// Opens the database and binds the socket; nothing runs yet.
    ///
    /// `wake` has to wake ``serve(signals:wake:linger:)``; it is called from any thread.
    init(
        location: QueueLocation,
        configuration: Configuration,
        onDemand: Bool,
        crashPoint: String?,
        log: ServiceLog,
        wake: @escaping @Sendable () -> Void
    ) throws(FerryError) {
        let subscriptions = Subscriptions()
        let hasToEnd = EndFlag()
        self.store = try JobStore(directory: location.stateDirectory)
        self.loop = try NetworkLoop(userAgent: "ferry/\(ferryVersion)")
        self.engine = Engine(
            store: self.store,
            loop: self.loop,
            configuration: configuration.engine,
            mode: onDemand ? .attached : .all,
            crashPoint: crashPoint,
            boardPath: location.stateDirectory + "/board",
            spool: location.stateDirectory + "/" + SpoolName.folder,
            observer: { changes in
                for change in changes { Self.record(change, in: log) }
                subscriptions.publish(changes)
            }
        )
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
        self.log.write(
            .info,
            [
                "event": "ready", "version": ferryVersion, "pid": "\(getpid())",
                "on_demand": "\(self.onDemand)",
            ]
        )
    }

    /// Waits until a signal, the hand-over or the end of the last client says that it is over.
    ///
    /// A service on demand stays `linger` milliseconds without clients.
    func serve(signals: Int32, wake: Int32, linger: Int32) {
        while true {
            let isIdle = self.onDemand && self.server.clientCount == 0
            var descriptors = [
                pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&descriptors, nfds_t(descriptors.count), isIdle ? linger : -1)
            if count == 0, self.server.clientCount == 0 { return }
            if descriptors[1].revents != 0 {
                ferry_eventfd_clear(wake)
                if self.hasToEnd.isRaised { return }
            }
            if descriptors[0].revents != 0 {
                switch ferry_signalfd_read(signals) {
                case SIGTERM, SIGINT: return
                default: break
                }
            }
        }
    }

    /// Stops in the order that loses nothing: transfers, then clients, then the database.
    func stop() {
        self.log.write(.info, ["event": "stopping"])
        let (engine, loop) = (self.engine, self.loop)
        Self.wait {
            await engine.stop()
            await loop.stop()
        }
        self.server.stop()
        self.store.close()
        self.log.write(.info, ["event": "stopped"])
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
    private static func wait(_ work: @escaping @Sendable () async -> Void) {
        let done = DispatchSemaphore(value: 0)
        Task {
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
