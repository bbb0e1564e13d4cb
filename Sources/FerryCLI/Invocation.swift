import FerryControl
import FerryCore
import Glibc

/// What a command line asks for, checked as far as that goes without the service.
enum Invocation: Sendable {
    case get(TransferOrder)
    case put(UploadArguments)
    case add(TransferOrder)
    case addUpload(UploadArguments)
    case run(untilEmpty: Bool)
    case daemon
    case list(selector: Selector, host: String?, limit: Int?, includeOld: Bool)
    case show(JobID)
    case log(JobID)
    case wait([JobID], timeout: Duration?)
    case steer(SteerAction, Selector, keepPartial: Bool)
    case version
    case help(CommandName?)
    case manual

    /// Reads the operands and options of a command.
    ///
    /// - Throws: A usage error of one sentence.
    init(_ arguments: Arguments, in surroundings: Surroundings) throws(FerryError) {
        let command = arguments.command
        switch command {
        case .get: self = .get(try TransferOrder(arguments, in: surroundings))
        case .put: self = .put(try UploadArguments(arguments, in: surroundings))
        case .add:
            if UploadArguments.isUpload(arguments) {
                self = .addUpload(try UploadArguments(arguments, in: surroundings))
            } else {
                try UploadArguments.refuse(arguments)
                self = .add(try TransferOrder(arguments, in: surroundings))
            }
        case .run:
            try Self.refuseOperands(arguments)
            self = .run(untilEmpty: arguments.has(.untilEmpty))
        case .daemon:
            try Self.refuseOperands(arguments)
            self = .daemon
        case .list:
            try Self.refuseOperands(arguments)
            let limit = arguments.value(.limit).flatMap(OptionValue.number)
            if limit == 0 { throw .usage("--limit: there is nothing to list with a limit of 0") }
            self = .list(
                selector: Selector(states: Self.states(arguments), all: !arguments.has(.state)),
                host: arguments.value(.host),
                limit: limit,
                includeOld: arguments.has(.old)
            )
        case .show: self = .show(try Self.oneJob(arguments))
        case .log: self = .log(try Self.oneJob(arguments))
        case .wait:
            let jobs = try Self.jobs(arguments)
            guard !jobs.isEmpty else { throw .usage("ferry wait needs the number of a job") }
            self = .wait(jobs, timeout: arguments.value(.timeout).flatMap(DurationText.parse))
        case .pause: self = try Self.steer(.pause, arguments)
        case .resume: self = try Self.steer(.resume, arguments)
        case .cancel: self = try Self.steer(.cancel, arguments)
        case .retry: self = try Self.steer(.retry, arguments)
        case .remove: self = try Self.steer(.remove, arguments)
        case .version:
            try Self.refuseOperands(arguments)
            self = .version
        case .help:
            if arguments.has(.manual) {
                try Self.refuseOperands(arguments)
                self = .manual
            } else {
                self = .help(try Self.helpTopic(arguments))
            }
        }
    }

    private static func helpTopic(_ arguments: Arguments) throws(FerryError) -> CommandName? {
        guard let word = arguments.operands.first else { return nil }
        guard arguments.operands.count == 1, let topic = CommandName(rawValue: word) else {
            throw .usage("ferry help: '\(arguments.operands.joined(separator: " ").shown)' is no command")
        }
        return topic
    }

    private static func refuseOperands(_ arguments: Arguments) throws(FerryError) {
        if let operand = arguments.operands.first {
            throw .usage("ferry \(arguments.command.rawValue) takes no operand such as '\(operand.shown)'")
        }
    }

    private static func jobs(_ arguments: Arguments) throws(FerryError) -> [JobID] {
        var result: [JobID] = []
        for operand in arguments.operands {
            guard let job = JobID(operand) else {
                throw .usage("'\(operand.shown)' is no number of a job; 'ferry list' shows them")
            }
            if !result.contains(job) { result.append(job) }
        }
        return result
    }

    private static func oneJob(_ arguments: Arguments) throws(FerryError) -> JobID {
        let jobs = try Self.jobs(arguments)
        guard let job = jobs.first, arguments.operands.count == 1 else {
            throw .usage("ferry \(arguments.command.rawValue) needs the number of one job")
        }
        return job
    }

    private static func states(_ arguments: Arguments) -> [JobState] {
        arguments.values(.state).flatMap { $0.split(separator: ",") }
            .compactMap { JobState(rawValue: String($0)) }
    }

    private static func steer(
        _ action: SteerAction,
        _ arguments: Arguments
    ) throws(FerryError) -> Invocation {
        let jobs = try Self.jobs(arguments)
        let ways = (jobs.isEmpty ? 0 : 1) + (arguments.has(.state) ? 1 : 0) + (arguments.has(.all) ? 1 : 0)
        guard ways == 1 else {
            let problem = ways == 0 ? "needs" : "takes only one of"
            throw .usage("ferry \(arguments.command.rawValue) \(problem) numbers of jobs, --state or --all")
        }
        let selector = Selector(jobs: jobs, states: Self.states(arguments), all: arguments.has(.all))
        return .steer(action, selector, keepPartial: arguments.has(.keepPartial))
    }
}

/// The downloads that `get` or `add` asks for; what they share with uploads is read from one of these.
struct TransferOrder: Sendable {
    /// One request a URL, in order.
    var requests: [JobRequest]
    /// Where the files go.
    var destination: Destination

    /// Reads URLs and options; URLs themselves are judged by the service.
    init(_ arguments: Arguments, in surroundings: Surroundings) throws(FerryError) {
        let name = "ferry \(arguments.command.rawValue)"
        guard !arguments.operands.isEmpty else { throw .usage("\(name) needs a URL") }
        let outputs = arguments.values(.output)
        guard outputs.count <= 1 else {
            throw .usage("\(name) takes only one -o; use a command for each file")
        }
        let destination = try Destination(
            output: outputs.first,
            directory: arguments.value(.directory),
            in: surroundings
        )
        guard outputs.isEmpty || arguments.operands.count == 1 else {
            throw .usage(
                "-o names one file, but there are \(arguments.operands.count) URLs; -d DIR names a folder"
            )
        }
        guard arguments.value(.checksum) == nil || arguments.operands.count == 1 else {
            throw .usage("--checksum is that of one file, but there are \(arguments.operands.count) URLs")
        }
        var headers: [RequestHeader] = []
        for text in arguments.values(.header) { headers.append(try OptionValue.header(text, as: "-H")) }
        var requests: [JobRequest] = []
        for url in arguments.operands {
            guard !url.isEmpty, !url.utf8.contains(0) else { throw .usage("\(name): a URL is empty") }
            requests.append(
                JobRequest(
                    url: url,
                    directory: destination.directory,
                    output: destination.output,
                    ifExists: arguments.value(.ifExists).flatMap(IfExists.init),
                    headers: headers,
                    allowHTTP: arguments.has(.allowHTTP),
                    caFile: try Self.caFile(arguments.value(.caFile), surroundings),
                    attempts: arguments.value(.attempts).flatMap(OptionValue.number),
                    umask: surroundings.umask,
                    proxy: surroundings.proxy,
                    foreground: arguments.command != .add,
                    checksum: arguments.value(.checksum).flatMap { Checksum(text: $0) },
                    sizeLimitBytes: arguments.value(.sizeLimit).flatMap { ByteCount(text: $0)?.bytes },
                    compressed: arguments.has(.compressed),
                    remoteTime: arguments.has(.remoteTime)
                )
            )
        }
        self.requests = requests
        self.destination = destination
    }

    private static func caFile(_ given: String?, _ surroundings: Surroundings) throws(FerryError) -> String? {
        guard let given else {
            return surroundings.variable("CURL_CA_BUNDLE", "SSL_CERT_FILE").map { surroundings.absolute($0) }
        }
        let path = surroundings.absolute(given)
        var info = stat()
        guard stat(path, &info) == 0, faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0 else {
            let problem = String(cString: strerror(errno))
            throw .usage("--cacert: '\(path.shown)' cannot be read: \(problem)")
        }
        guard info.st_mode & S_IFMT == S_IFREG else { throw .usage("--cacert: '\(path.shown)' is no file") }
        return path
    }
}
