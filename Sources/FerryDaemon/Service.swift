import CFerryLinux
import Dispatch
import FerryControl
import FerryCore
import FerryEngine
import FerryFiles
import FerryHTTP
import FerryStore
import Glibc
import Synchronization

/// The service's life: start, serve, stop.
public enum FerryService {
    /// How long a service on demand stays after its last client has gone.
    private static let linger: Int32 = 300
    /// How long a daemon waits for a service on demand to give the queue over.
    private static let handOverLimit = Duration.seconds(10)

    /// Runs `ferryd` with the process's arguments until it is told to stop.
    public static func main() -> Never {
        StandardDescriptors.hold()
        let arguments = Array(CommandLine.arguments.dropFirst())
        var status: Int32?
        do throws(FerryError) {
            let options = try ServiceOptions.parse(arguments)
            status = options.statusDescriptor
            if options.wantsHelp { self.print(ServiceOptions.help) }
            if options.wantsVersion { self.print("ferryd \(ferryVersion)\n") }
            if options.wantsManual { self.print(ServiceManual.text) }
            if options.wantsHelp || options.wantsVersion || options.wantsManual {
                exit(ExitStatus.success.rawValue)
            }
            if let digest = options.digest {
                self.print(try DigestCommand.run(digest.algorithm, path: digest.path))
            } else if options.wantsCheck || options.wantsRepair {
                umask(0o077)
                let location = try Self.location(options, Self.environment(options))
                let (text, result) = try CheckCommand.run(location, options)
                self.print(text)
                exit(result.rawValue)
            } else if options.printsConfiguration {
                try self.printConfiguration(options)
            } else {
                try self.serve(options)
            }
            exit(ExitStatus.success.rawValue)
        } catch {
            self.report(error, to: status)
            exit(error.exitStatus.rawValue)
        }
    }

    private static func print(_ text: String) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let problem = "ferryd: cannot write to standard output: \(SystemError.text(errno))\n"
                _ = problem.withCString { write(2, $0, strlen($0)) }
                exit(ExitStatus.failed.rawValue)
            }
            rest = rest.dropFirst(count)
        }
    }

    /// `ferryd --print-config`, which is `ferry config`.
    private static func printConfiguration(_ options: ServiceOptions) throws(FerryError) {
        var environment = Self.environment(options)
        // The machine's service does not have the caller's variables.
        if options.system { environment = environment.filter { !$0.key.hasPrefix("FERRY_") } }
        let location = try Self.location(options, environment)
        let report = ConfigurationReport(
            configuration: try Configuration.load(environment: environment),
            files: Configuration.paths(environment),
            service: ConfigurationReport.Service.ask(location)
        )
        self.print(options.json ? report.json : report.text)
        if !options.json, let note = report.note {
            _ = "ferry: \(note)\n".withCString { write(2, $0, strlen($0)) }
        }
    }

    /// Tells why the service could not start: on the status descriptor, else on standard error.
    private static func report(_ error: FerryError, to status: Int32?) {
        if let status, let line = try? ControlJSON.encode(ErrorDocument(error)) {
            _ = write(status, line + [10], line.count + 1)  // the one who asked may be gone
            return
        }
        let text = "ferryd: \(error.message)\n"
        _ = text.withCString { write(2, $0, strlen($0)) }
    }

    private static func serve(_ options: ServiceOptions) throws(FerryError) {
        // Signals are blocked before the first thread starts, so that all threads inherit that.
        let signals = [SIGTERM, SIGINT, SIGHUP, SIGUSR1]
        let signalDescriptor = signals.withUnsafeBufferPointer { numbers in
            numbers.baseAddress.map { ferry_signalfd($0, Int32(numbers.count)) } ?? -1
        }
        let wakeDescriptor = ferry_eventfd()
        guard signalDescriptor >= 0, wakeDescriptor >= 0 else {
            throw FerryError(
                .noService,
                "signals cannot be set up: \(SystemError.text(errno))",
                exitStatus: .noService
            )
        }
        signal(SIGPIPE, SIG_IGN)
        umask(0o077)
        setlocale(LC_CTYPE, "C.UTF-8")  // libcurl converts international host names by it

        if options.system, geteuid() == 0 {
            throw FerryError(
                .noService,
                "the machine's queue belongs to user ferry, and files must not be root's; 'systemctl start ferryd' "
                    + "starts its service, and so does 'runuser -u ferry -- ferryd --system'",
                exitStatus: .failed
            )
        }
        let environment = Self.environment(options)
        // Whoever starts a service on demand may itself be a service: that one's manager is not ours.
        let manager = ManagerVariables.take(environment)
        ProcessUse.raiseDescriptorLimit()
        let location = try Self.location(options, environment)
        let (folder, heir) = try Self.own(location, onDemand: options.onDemand)
        let log =
            options.onDemand
            ? ServiceLog(file: folder.path + "/ferryd.log")
            : ServiceLog(journal: manager.isJournal)
        let notify = NotifySocket(options.onDemand ? nil : manager.notifySocket)
        let watch = StartWatch(notify: notify, log: log, signals: signalDescriptor)
        do throws(FerryError) {
            var configuration = try Configuration.load(environment: environment)
            configuration.allow(options.limits)
            let life = try ServiceLife(
                location: location,
                configuration: configuration,
                onDemand: options.onDemand,
                environment: environment,
                notify: notify,
                log: log,
                wake: { ferry_eventfd_signal(wakeDescriptor) }
            )
            try life.start()
            let hasToReload = watch.end()
            life.ready()
            Self.ready(options.statusDescriptor)
            if hasToReload { life.reload() }
            life.serve(
                signals: signalDescriptor,
                wake: wakeDescriptor,
                linger: Self.linger,
                watchdog: options.onDemand ? nil : manager.watchdog
            )
            life.stop()
        } catch {
            _ = watch.end()  // the process ends anyway
            log.write(.error, ["event": "failed", "message": error.message])
            throw error
        }
        withExtendedLifetime((folder, heir)) {}  // the locks are held to the end
    }

    private static func location(
        _ options: ServiceOptions,
        _ environment: [String: String]
    ) throws(FerryError) -> QueueLocation {
        let here = getcwd(nil, 0).map { pointer in
            defer { free(pointer) }
            return String(cString: pointer)
        }
        let location = try QueueLocation.resolve(
            stateDirectory: options.stateDirectory,
            system: options.system,
            environment: environment,
            currentDirectory: here ?? "/"
        )
        guard let socket = options.socketPath else { return location }
        return try QueueLocation(
            stateDirectory: location.stateDirectory,
            socketPath: socket,
            isSystem: location.isSystem
        )
    }

    /// Takes the queue; a daemon asks a service on demand to give it over.
    ///
    /// The other one may be starting, or on its way out, so that nobody answers for a moment: only a daemon's
    /// refusal is an answer. A service on demand leaves the queue to a daemon that is about to take it.
    private static func own(
        _ location: QueueLocation,
        onDemand: Bool
    ) throws(FerryError) -> (folder: StateFolder, heir: StateFolder.Heir?) {
        let path = location.stateDirectory
        if onDemand, StateFolder.Heir.exists(path) {
            throw FerryError(.busy, "a daemon owns the queue in \(path)", exitStatus: .noService)
        }
        let end = ContinuousClock.now + Self.handOverLimit
        var heir: StateFolder.Heir?
        while true {
            if !onDemand, heir == nil { heir = StateFolder.Heir(path) }
            do throws(FerryError) {
                return (try StateFolder(path), heir)
            } catch {
                guard error.code == .busy, !onDemand, ContinuousClock.now < end else { throw error }
            }
            do throws(FerryError) {
                let client = try ServiceClient.connect(location, start: .never)
                _ = try client.call(.handOver)
                client.close()
            } catch {
                guard error.code != .busy, error.code != .version else { throw error }
            }
            usleep(20_000)
        }
    }

    private static func ready(_ status: Int32?) {
        guard let status else { return }
        let line = "{\"ready\":true}\n"
        _ = line.withCString { write(status, $0, strlen($0)) }  // the one who asked may be gone
        close(status)
    }

    /// The process's environment; for the machine's queue without what names a person's configuration.
    private static func environment(_ options: ServiceOptions) -> [String: String] {
        var result: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            let parts = String(cString: text).split(
                separator: "=",
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            if parts.count == 2 { result[String(parts[0])] = String(parts[1]) }
            entry += 1
        }
        return options.system ? result.filter { $0.key != "HOME" && $0.key != "XDG_CONFIG_HOME" } : result
    }
}
