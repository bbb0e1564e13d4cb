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
    case config
    case list(selector: Selector, host: String?, limit: Int?, includeOld: Bool)
    case show(JobID)
    case log(JobID)
    case wait(Selector, timeout: Duration?)
    case watch([JobID], groups: [String])
    case steer(SteerAction, Selector, keepPartial: Bool)
    case cancel(JobID, resumeData: String)
    case resumeData(ResumeDataOrder)
    case verify(VerifyOrder.Subject, Checksum)
    case doctor(repair: Bool, startOver: Bool)
    case set([JobID], JobChanges, Destination?)
    case limit([LimitChange], host: String?)
    case service(ServiceOrder)
    case completions(Shell)
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
        case .config:
            try Self.refuseOperands(arguments)
            self = .config
        case .list:
            try Self.refuseOperands(arguments)
            let limit = arguments.value(.limit).flatMap(OptionValue.number)
            if limit == 0 { throw .usage("--limit: there is nothing to list with a limit of 0") }
            self = .list(
                selector: Selector(
                    states: Self.states(arguments),
                    groups: arguments.values(.ofGroup),
                    all: !arguments.has(.state) && !arguments.has(.ofGroup)
                ),
                host: arguments.value(.host),
                limit: limit,
                includeOld: arguments.has(.old)
            )
        case .show: self = .show(try Self.oneJob(arguments))
        case .log: self = .log(try Self.oneJob(arguments))
        case .watch:
            let (jobs, groups) = (try Self.jobs(arguments), arguments.values(.ofGroup))
            guard jobs.isEmpty || groups.isEmpty else {
                throw .usage("ferry watch takes numbers of jobs or --group, not both")
            }
            self = .watch(jobs, groups: groups)
        case .wait:
            let selector = Selector(jobs: try Self.jobs(arguments), groups: arguments.values(.ofGroup))
            guard selector.jobs.isEmpty != selector.groups.isEmpty else {
                let problem = selector.jobs.isEmpty ? "needs" : "takes only one of"
                throw .usage("ferry wait \(problem) numbers of jobs or --group")
            }
            self = .wait(selector, timeout: arguments.value(.timeout).flatMap(DurationText.parse))
        case .pause: self = try Self.steer(.pause, arguments)
        case .resume: self = try Self.steer(.resume, arguments)
        case .cancel:
            if let file = arguments.value(.resumeData) {
                guard arguments.operands.count == 1, !arguments.has(.state), !arguments.has(.ofGroup),
                    !arguments.has(.all)
                else {
                    throw .usage("--resume-data takes the number of one job")
                }
                self = .cancel(try Self.oneJob(arguments), resumeData: surroundings.absolute(file))
            } else {
                self = try Self.steer(.cancel, arguments)
            }
        case .retry: self = try Self.steer(.retry, arguments)
        case .remove: self = try Self.steer(.remove, arguments)
        case .resumeData: self = .resumeData(try ResumeDataOrder(arguments, in: surroundings))
        case .verify:
            guard let operand = arguments.operands.first, arguments.operands.count == 1 else {
                throw .usage("ferry verify needs the number of one job, or one file")
            }
            guard let checksum = arguments.value(.checksum).flatMap({ Checksum(text: $0) }) else {
                throw .usage("ferry verify needs --checksum ALGO:HEX")
            }
            self = .verify(JobID(operand).map { .job($0) } ?? .file(surroundings.absolute(operand)), checksum)
        case .doctor:
            try Self.refuseOperands(arguments)
            guard !arguments.has(.startOver) || arguments.has(.repair) else {
                throw .usage("--start-over needs --repair")
            }
            self = .doctor(repair: arguments.has(.repair), startOver: arguments.has(.startOver))
        case .set: self = try Self.set(arguments, in: surroundings)
        case .limit:
            self = try Self.limit(arguments)
        case .service: self = .service(try ServiceOrder(arguments, in: surroundings))
        case .completions: self = .completions(try Shell(arguments))
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
        let isFiltered = arguments.has(.state) || arguments.has(.ofGroup)
        let ways = (jobs.isEmpty ? 0 : 1) + (isFiltered ? 1 : 0) + (arguments.has(.all) ? 1 : 0)
        guard ways == 1 else {
            let what = "numbers of jobs, --group and --state, or --all"
            let problem = ways == 0 ? "needs" : "takes only one of"
            throw .usage("ferry \(arguments.command.rawValue) \(problem) \(what)")
        }
        let selector = Selector(
            jobs: jobs,
            states: Self.states(arguments),
            groups: arguments.values(.ofGroup),
            all: arguments.has(.all)
        )
        return .steer(action, selector, keepPartial: arguments.has(.keepPartial))
    }

    private static func limit(_ arguments: Arguments) throws(FerryError) -> Invocation {
        guard arguments.operands.count <= 1 else {
            throw .usage("ferry limit takes one RATE; --down and --up limit one direction")
        }
        let host = arguments.value(.ofHost)
        var change = LimitChange(host: host, running: arguments.value(.running).flatMap(OptionValue.limit))
        if let text = arguments.operands.first { change.rate = try OptionValue.liveRate(text, as: "RATE") }
        if let text = arguments.value(.down) { change.down = try OptionValue.liveRate(text, as: "--down") }
        if let text = arguments.value(.up) { change.up = try OptionValue.liveRate(text, as: "--up") }
        return .limit(change == LimitChange(host: host) ? [] : [change], host: host)
    }

    private static func set(
        _ arguments: Arguments,
        in surroundings: Surroundings
    ) throws(FerryError) -> Invocation {
        let jobs = try Self.jobs(arguments)
        guard !jobs.isEmpty else { throw .usage("ferry set needs the number of a job") }
        let outputs = arguments.values(.output)
        let destination =
            outputs.isEmpty
            ? nil : try Destination(output: outputs.last, directory: nil, in: surroundings)
        var changes = JobChanges(
            priority: arguments.value(.priority).flatMap(OptionValue.priority),
            group: arguments.value(.group),
            url: arguments.value(.url),
            allowHTTP: arguments.has(.allowHTTP),
            notBefore: arguments.value(.notBefore).flatMap(LocalTime.parse),
            output: destination?.output,
            attempts: arguments.value(.attempts).flatMap(OptionValue.number),
            limitRateBytes: arguments.value(.limitRate).flatMap(OptionValue.rate)
        )
        changes.deadlineMs = OptionValue.milliseconds(arguments.value(.deadline))
        for text in arguments.values(.header) {
            changes.headers.append(try OptionValue.header(text, as: "-H"))
        }
        try ScheduleOptions(arguments, in: surroundings).apply(to: &changes)
        guard !changes.isEmpty else {
            throw .usage("ferry set needs something to change, such as --priority 5")
        }
        for (id, name) in [(OptionID.url, "--url"), (.output, "-o")] where arguments.has(id) && jobs.count > 1
        {
            throw .usage("\(name) is that of one job, but there are \(jobs.count)")
        }
        return .set(jobs, changes, destination)
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
        var destination = try Destination(
            output: outputs.first,
            directory: arguments.value(.directory),
            in: surroundings
        )
        destination.isLeftToService = arguments.has(.system)
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
                    group: arguments.value(.group),
                    priority: arguments.value(.priority).flatMap(OptionValue.priority) ?? 0,
                    checksum: arguments.value(.checksum).flatMap { Checksum(text: $0) },
                    sizeLimitBytes: arguments.value(.sizeLimit).flatMap { ByteCount(text: $0)?.bytes },
                    compressed: arguments.has(.compressed),
                    remoteTime: arguments.has(.remoteTime),
                    notBefore: arguments.value(.notBefore).flatMap(LocalTime.parse),
                    limitRateBytes: arguments.value(.limitRate).flatMap(RateText.parse)?.bytes
                )
            )
        }
        let stallTimeout = arguments.value(.stallTimeout).flatMap { DurationText.parse($0) }
        for index in requests.indices { requests[index].stallTimeout = stallTimeout }
        let deadline = OptionValue.milliseconds(arguments.value(.deadline))
        for index in requests.indices { requests[index].deadlineMs = deadline }
        let schedule = try ScheduleOptions(arguments, in: surroundings)
        for index in requests.indices { schedule.apply(to: &requests[index]) }
        if destination.isLeftToService, destination.createsDirectory {
            for index in requests.indices { requests[index].createsDirectory = true }
        }
        self.requests = requests
        self.destination = destination
    }

    static func caFile(_ given: String?, _ surroundings: Surroundings) throws(FerryError) -> String? {
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
