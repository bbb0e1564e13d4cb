import FerryControl
import FerryCore
import Glibc

/// What `ferry resume-data` is to do.
enum ResumeDataOrder: Sendable {
    /// Write a job's resume data to a file, nil is standard output.
    case export(JobID, file: String?, redact: Bool)
    /// Queue the job of a file, `-` is standard input.
    case take(file: String, ResumeDataAdditions)
}

/// What a document does not hold and the command adds.
struct ResumeDataAdditions: Sendable {
    /// `-d`, absolute.
    var directory: String?
    /// `-H` fields.
    var headers: [RequestHeader]
    /// `--allow-http`.
    var allowHTTP: Bool
    /// `--cacert`, or what the environment names.
    var caFile: String?
}

extension ResumeDataOrder {
    /// Reads operands and options.
    init(_ arguments: Arguments, in surroundings: Surroundings) throws(FerryError) {
        let operands = arguments.operands
        switch operands.first {
        case "export":
            guard operands.count == 2, let job = JobID(operands[1]) else {
                throw .usage("ferry resume-data export needs the number of one job")
            }
            try Self.refuse([.directory, .header, .allowHTTP, .caFile], arguments, "export")
            let file = arguments.value(.output).flatMap { $0 == "-" ? nil : surroundings.absolute($0) }
            self = .export(job, file: file, redact: arguments.has(.redact))
        case "import":
            guard operands.count == 2, !operands[1].isEmpty else {
                throw .usage("ferry resume-data import needs one file, - is standard input")
            }
            try Self.refuse([.output, .redact], arguments, "import")
            var headers: [RequestHeader] = []
            for text in arguments.values(.header) { headers.append(try OptionValue.header(text, as: "-H")) }
            let additions = ResumeDataAdditions(
                directory: arguments.value(.directory).map { surroundings.absolute($0) },
                headers: headers,
                allowHTTP: arguments.has(.allowHTTP),
                caFile: try TransferOrder.caFile(arguments.value(.caFile), surroundings)
            )
            self = .take(file: operands[1] == "-" ? "-" : surroundings.absolute(operands[1]), additions)
        default:
            throw .usage("ferry resume-data needs 'export JOB' or 'import FILE'")
        }
    }

    private static func refuse(_ options: [OptionID], _ arguments: Arguments, _ word: String)
        throws(FerryError)
    {
        guard let option = options.first(where: { arguments.has($0) }),
            let name = OptionTable.all.first(where: { $0.id == option })?.long
        else { return }
        throw .usage("ferry resume-data \(word) has no option --\(name)")
    }
}

extension RunningCommand {
    /// `ferry resume-data`.
    func resumeData(_ order: ResumeDataOrder) throws(FerryError) -> ExitStatus {
        switch order {
        case .export(let job, let file, let redact):
            try self.export(job, to: file, redact: redact, session: try self.session())
            return .success
        case .take(let file, let additions):
            return try self.take(file, additions)
        }
    }

    /// `ferry cancel --resume-data FILE`: nothing is cancelled before the document is on the disk.
    ///
    /// A running job is paused first, so that all it has written counts.
    func cancel(_ job: JobID, resumeDataTo file: String) throws(FerryError) -> ExitStatus {
        let session = try self.session()
        guard case .job(let before) = try session.call(.show(job: job)) else { throw Session.unexpected() }
        guard !before.state.isFinal else {
            throw FerryError(
                .wrongState,
                "job \(job) is \(before.state.rawValue); there is nothing to cancel",
                exitStatus: .failed
            )
        }
        let isPaused = before.state == .running
        if isPaused { _ = try self.steer(.pause, job, session) }
        do throws(FerryError) {
            try self.export(job, to: file, redact: false, session: session)
        } catch {
            if isPaused { _ = try? self.steer(.resume, job, session) }  // the first error tells
            throw error
        }
        let error = try self.steer(.cancel, job, session)
        if let error { throw FerryError(.wrongState, error, exitStatus: .failed) }
        return .success
    }

    private func steer(
        _ action: SteerAction,
        _ job: JobID,
        _ session: Session
    ) throws(FerryError) -> String? {
        let selector = Selector(jobs: [job])
        let response = try session.call(.steer(action: action, selector: selector, keepPartial: true))
        guard case .steered(let jobs, _) = response else { throw Session.unexpected() }
        return jobs.first?.error
    }

    private func export(
        _ job: JobID,
        to file: String?,
        redact: Bool,
        session: Session
    ) throws(FerryError) {
        guard case .resumeData(var document) = try session.call(.exportResumeData(job: job)) else {
            throw Session.unexpected()
        }
        if redact { document.redact() }
        guard let file else { return try self.console.print(json: document) }
        let text: [UInt8]
        do {
            text = try ControlJSON.encode(document) + [10]
        } catch {
            throw FerryError(.localIO, "the resume data cannot be written: \(error)", exitStatus: .failed)
        }
        try PrivateFile.write(text, to: file)
    }

    private func take(_ file: String, _ additions: ResumeDataAdditions) throws(FerryError) -> ExitStatus {
        let text = try PrivateFile.read(file, limit: ResumeData.sizeLimit)
        let document: ResumeDocument
        do {
            document = try ControlJSON.decode(ResumeDocument.self, from: text)
        } catch {
            let name = file == "-" ? "on standard input" : "in \(file.shown)"
            throw .usage("the resume data \(name) \(ResumeData.Refusal(error).reason.shown)")
        }
        var request = document.request(in: additions.directory)
        request.headers = additions.headers
        request.allowHTTP = additions.allowHTTP
        request.caFile = additions.caFile
        request.umask = self.surroundings.umask
        request.proxy = self.surroundings.proxy
        let beside = file == "-" ? nil : file.lastIndex(of: "/").map { String(file[..<$0]) }
        let response = try self.session().call(
            .importResumeData(document: document, request: request, beside: beside == "" ? "/" : beside)
        )
        guard case .added(let added, let isRunning) = response, let entry = added.first else {
            throw Session.unexpected()
        }
        if let note = entry.note { self.console.note(note.shownLines) }
        if document.isRedacted {
            self.console.note(
                "the query of the URL was left out of the file, if it had one; the server may want it"
            )
        }
        guard let job = entry.job else { return .success }
        if self.console.json {
            try self.console.print(json: job)
        } else {
            self.console.out.line("\(job.id)")
        }
        if !isRunning, [.new, .same].contains(entry.outcome) { self.sayNothingRuns() }
        return .success
    }
}

/// Files that may hold secrets.
enum PrivateFile {
    /// Writes a file of mode 0600 in one step: it is there whole and durable, or as it was before.
    static func write(_ bytes: [UInt8], to path: String) throws(FerryError) {
        var info = stat()
        if lstat(path, &info) == 0, info.st_mode & S_IFMT != S_IFREG {
            // To rename over a device or a link would be the end of it.
            throw FerryError(.localIO, "\(path.shown) exists and is not a file", exitStatus: .failed)
        }
        let unfinished = "\(path).\(getpid()).new"
        let descriptor = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw self.error("write", path) }
        var problem: Int32 = 0
        var rest = bytes[...]
        while !rest.isEmpty, problem == 0 {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 { rest = rest.dropFirst(count) } else if errno != EINTR { problem = errno }
        }
        if problem == 0, fsync(descriptor) != 0 { problem = errno }
        close(descriptor)
        if problem == 0, rename(unfinished, path) != 0 { problem = errno }
        guard problem == 0 else {
            unlink(unfinished)
            errno = problem
            throw self.error("write", path)
        }
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        let folder = open(slash == path.startIndex ? "/" : String(path[..<slash]), O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { return }  // a folder that may be searched and not read cannot be synced
        _ = fsync(folder)
        close(folder)
    }

    /// Reads a file, or standard input for `-`.
    static func read(_ path: String, limit: Int) throws(FerryError) -> [UInt8] {
        let descriptor = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw self.error("read", path) }
        defer { if descriptor > 0 { close(descriptor) } }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw self.error("read", path) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= limit else {
                throw .usage("\(path.shown) is larger than \(limit) bytes and no resume data")
            }
        }
    }

    private static func error(_ action: String, _ path: String) -> FerryError {
        let reason = String(cString: strerror(errno))
        return FerryError(.localIO, "cannot \(action) \(path.shown): \(reason)", exitStatus: .failed)
    }
}
