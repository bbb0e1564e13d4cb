import CFerryLinux
import FerryControl
import FerryCore
import Glibc

/// The command `ferry`: reads its arguments, asks the service, and ends with the status that follows.
public enum FerryCommand {
    /// Runs the command that this process was started as.
    public static func main() -> Never {
        StandardDescriptors.hold()
        _ = signal(SIGPIPE, SIG_IGN)  // a reader that has gone shows as EPIPE
        let environment = Surroundings.environmentVariables()
        var console = Console(Arguments(command: .help), environment: environment)
        do throws(FerryError) {
            let arguments = try ArgumentParser.parse(try Self.words(CommandLine.unsafeArgv))
            console = Console(arguments, environment: environment)
            // Help is given even where the current folder is gone.
            let surroundings =
                [.help, .version, .completions].contains(arguments.command)
                ? Surroundings(currentDirectory: "/", environment: environment, umask: 0)
                : try Surroundings.current(environment)
            let command = try RunningCommand(arguments, surroundings: surroundings, console: console)
            ferry_hide_arguments()
            console.exit(try command.run())
        } catch {
            console.error(Self.text(error))
            console.exit(error.exitStatus)
        }
    }

    /// What follows the program's name in a list of arguments that a null pointer ends.
    ///
    /// - Throws: A usage error for bytes that are no UTF-8: read with replacements they would name another file.
    static func words(
        _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>
    ) throws(FerryError) -> [String] {
        var words: [String] = []
        var next = arguments
        while let pointer = next.pointee {
            guard let word = String(validatingCString: pointer) else {
                throw .usage(
                    "'\(String(cString: pointer).shown)' is not UTF-8, which ferry needs; "
                        + "a link can give a file a name that is"
                )
            }
            words.append(word)
            next += 1
        }
        return Array(words.dropFirst())
    }

    /// What an error looks like after `ferry: `; lines after the first are hints.
    static func text(_ error: FerryError) -> String {
        error.message.shownLines
    }
}

/// One command with everything it needs.
struct RunningCommand {
    let name: CommandName
    let arguments: Arguments
    let invocation: Invocation
    let surroundings: Surroundings
    let console: Console

    init(_ arguments: Arguments, surroundings: Surroundings, console: Console) throws(FerryError) {
        self.name = arguments.command
        self.arguments = arguments
        self.console = console
        self.surroundings = surroundings
        self.invocation = try Invocation(arguments, in: surroundings)
    }

    func run() throws(FerryError) -> ExitStatus {
        switch self.invocation {
        case .get(let order): return try self.get(order)
        case .put(let order): return try self.put(order)
        case .add(let order): return try self.add(order)
        case .addUpload(let order): return try self.add(order)
        case .run(let untilEmpty): return try self.runQueue(untilEmpty: untilEmpty)
        case .wait(let selector, let timeout): return try self.wait(selector, timeout: timeout)
        case .watch(let jobs, let groups): return try self.watch(jobs, groups: groups)
        case .list(let selector, let host, let limit, let includeOld):
            return try self.list(.list(selector: selector, host: host, limit: limit, includeOld: includeOld))
        case .show(let job): return try self.show(job)
        case .log(let job): return try self.log(job)
        case .steer(let action, let selector, let keepPartial):
            return try self.steer(.steer(action: action, selector: selector, keepPartial: keepPartial))
        case .cancel(let job, let file): return try self.cancel(job, resumeDataTo: file)
        case .resumeData(let order): return try self.resumeData(order)
        case .verify(let subject, let checksum): return try self.verify(subject, checksum)
        case .doctor(let repair, let startOver):
            return try self.doctor(repair: repair, startOver: startOver)
        case .set(let jobs, let changes, let destination):
            try destination?.prepare()
            return try self.steer(.set(selector: Selector(jobs: jobs), changes: changes))
        case .limit(let changes, let host): return try self.limit(changes, host: host)
        case .daemon:
            throw self.replaceByService(Self.arguments(for: try self.location()))
        case .config: throw self.showConfiguration(try self.location())
        case .service(let order): return try self.service(order)
        case .completions(let shell):
            self.console.out.write(shell.script)
            return .success
        case .version: return try self.version()
        case .help(let topic):
            self.console.out.write(topic.map(HelpText.text) ?? HelpText.overview)
            return .success
        case .manual:
            self.console.out.write(ManualPage.text)
            return .success
        }
    }

    /// The queue that options and environment name.
    func location() throws(FerryError) -> QueueLocation {
        try QueueLocation.resolve(
            stateDirectory: self.arguments.value(.stateDirectory),
            system: self.arguments.has(.system),
            environment: self.surroundings.environment,
            currentDirectory: self.surroundings.currentDirectory
        )
    }

    /// A connection to the service, which is started if need be.
    func session() throws(FerryError) -> Session {
        try Session(try self.location(), command: self.name)
    }

    private func version() throws(FerryError) -> ExitStatus {
        if self.console.json {
            try self.console.print(json: VersionDocument())
        } else {
            self.console.out.line("ferry \(ferryVersion)")
        }
        return .success
    }
}

/// `ferry version --json`.
struct VersionDocument: Encodable {
    var type = "version"
    var version = ferryVersion
    var protocolVersion = controlProtocolVersion
}
