public import FerryCore
import FerryFiles
import FerryHTTP
public import FerryStore

extension Engine {
    /// How a request for a job was answered.
    public struct Added: Sendable {
        /// How.
        public enum Outcome: Sendable {
            /// A new job.
            case new
            /// The same transfer was under way.
            case same
            /// The same transfer had stopped, and goes on now.
            case resumed
            /// The file is there, complete.
            case alreadyComplete
            /// `--if-exists skip`: the name is taken.
            case skipped
        }
        /// How.
        public let outcome: Outcome
        /// The job; nil for `skipped`.
        public let job: JobRecord?
        /// A note for the user.
        public let note: String?
    }

    /// A request that has been checked, ready for the store.
    struct Checked: Sendable {
        let request: JobRequest
        let new: NewJob
        /// `-o`: folder and name to reserve.
        let place: (directory: String, name: String)?
        /// What an upload sends.
        var sources: UploadSources?
    }

    /// Accepts jobs, all of them or none; when it returns they survive a power cut.
    ///
    /// The same URL, folder and `-o` as a job that is not final gives that job again (see the
    /// manual, "The same job twice").
    ///
    /// With `goOn` a failed or paused one is set going again, as `get` does. Thrown is ``FerryError`` `.usage` for
    /// a URL that cannot be used, `.exists` for an `-o` that is taken.
    public func add(_ requests: [JobRequest], goOn: Bool) async throws -> [Added] {
        await self.followClock()
        let now = self.services.time.now()
        let configuration = self.services.configuration
        let calls = self.services.calls
        let checked = try requests.map { request in
            var item = try Self.check(request, configuration, at: now)
            item.sources = try request.upload.map { try UploadSources($0, calls: calls) }
            return item
        }
        try self.checkPlaces(checked)
        let (added, changes) = try await self.services.store.write { transaction in
            var added: [Added] = []
            var changes: [JobChange] = []
            for item in checked {
                let (answer, change) = try Self.accept(item, goOn: goOn, in: transaction, at: now, calls)
                added.append(answer)
                if let change { changes.append(change) }
            }
            return (added, changes)
        }
        self.services.crash.reach(.jobCommitted)
        self.tell(changes)
        return added
    }

    /// Lets jobs that were just added run; apart from ``add(_:goOn:)`` so that a client is attached first.
    public func runAdded() async {
        await self.schedule()
    }

    /// Checks what can be checked of a request without the disk and the network.
    static func check(
        _ request: JobRequest,
        _ configuration: EngineConfiguration,
        at now: Timestamp
    ) throws -> Checked {
        try self.check(priority: request.priority, group: request.group)
        let parsed: URLParser.Parsed
        do throws(URLParser.Failure) {
            parsed = try URLParser.parse(request.url)
        } catch {
            throw FerryError.usage("the URL \(URLRedaction.redact(request.url)) \(error.reason)")
        }
        let shown = URLRedaction.redact(parsed.address.url)
        let scheme = parsed.address.origin.scheme
        guard scheme == "http" || scheme == "https" else {
            throw FerryError.usage("the URL \(shown) has the scheme \(scheme); only https and http are known")
        }
        let policy = configuration.transportPolicy(for: request)
        if let refusal = policy.refusal(of: parsed.address.origin) { throw FerryError.usage(refusal) }
        var stored = request
        stored.url = parsed.address.url
        stored.beginDeadline(at: now)
        if parsed.address.hasUserInfo,
            !request.headers.contains(where: { $0.name.lowercased() == "authorization" })
        {
            stored.headers.append(
                BasicCredentials.header(user: parsed.user ?? "", password: parsed.password ?? "")
            )
        }
        try self.check(renew: request, configuration)
        if request.kind == .upload {
            guard request.upload != nil else { throw FerryError.usage("an upload needs something to send") }
            // It is found again by what it sends and where to, wherever the command was given.
            stored.directory = "/"
            stored.output = nil
        }
        return Checked(
            request: stored,
            new: NewJob(
                request: stored,
                redactedURL: shown,
                urlFingerprint: request.upload?.fingerprint(url: parsed.address.url)
                    ?? URLParser.fingerprint(parsed.address.url),
                host: parsed.address.origin.hostAndPort,
                createdAt: now
            ),
            place: stored.output.map { DownloadTransfer.split($0) }
        )
    }

    /// Refuses a priority or a group that cannot be.
    static func check(priority: Int?, group: String?) throws {
        if let priority, !(-100...100).contains(priority) {
            throw FerryError.usage("the priority must be a number from -100 to 100")
        }
        if let group, let problem = GroupName.problem(group) {
            throw FerryError.usage("the name of the group \(problem)")
        }
    }

    /// Looks at folders, before anything is queued.
    func checkPlaces(_ checked: [Checked]) throws {
        for item in checked where item.request.upload == nil {
            try self.checkPlace(item.place?.directory ?? item.request.directory, of: item.request)
        }
    }

    static func accept(
        _ item: Checked,
        goOn: Bool,
        in transaction: Transaction,
        at now: Timestamp,
        _ calls: FileCalls
    ) throws -> (Added, JobChange?) {
        let same = try transaction.sameTransfer(
            fingerprint: item.new.urlFingerprint,
            directory: item.request.directory,
            output: item.request.output
        )
        if let job = same.first(where: { !$0.state.isFinal }) {
            let note = try self.difference(item.request, transaction.request(job.id), job.id)
            let event: JobEvent? =
                switch job.state {
                case .failed: .retry
                case .paused: .resume
                case .queued, .running, .waiting, .completed, .cancelled: nil
                }
            guard goOn, let event,
                case .moved(let change) = try JobLedger.apply(event, to: job.id, in: transaction, at: now)
            else { return (Added(outcome: .same, job: job, note: note), nil) }
            return (Added(outcome: .resumed, job: change.job, note: note), change)
        }
        if item.sources == nil, item.request.ifExists == nil,
            let job = same.first(where: { $0.state == .completed }),
            try self.has(item.request.checksum, job, transaction),
            try self.isStillThere(job, transaction, calls)
        {
            return (
                Added(outcome: .alreadyComplete, job: job, note: "already complete: \(job.path ?? "")"), nil
            )
        }
        let place =
            item.place
            ?? (item.sources == nil && item.request.ifExists == .skip ? self.urlPlace(item.request) : nil)
        if let place, let taken = try self.taken(place, item.request, transaction, calls) {
            return (taken, nil)
        }
        try self.check(after: item.request.after ?? [], of: nil, in: transaction)
        let id = try transaction.insert(item.new)
        if let order = item.request.upload { try item.sources?.insert(order, job: id, in: transaction) }
        if let place = item.place,
            try !transaction.reserve(directory: place.directory, name: place.name, for: id)
        {
            let other = try transaction.reservation(directory: place.directory, name: place.name)
            throw FerryError(
                .exists,
                "job \(other?.description ?? "?") is going to write \(place.directory)/\(place.name) already",
                exitStatus: .failed
            )
        }
        if var job = try transaction.job(id), let others = item.request.after {
            try JobSchedule.set(after: others, of: &job, in: transaction)
            try transaction.save(job)
        }
        let job = try transaction.job(id)
        let event = try transaction.append(
            event: "added",
            job: id,
            state: job?.state,
            reason: nil,
            message: nil,
            at: now
        )
        var change = JobChange(event: event, job: job, remote: nil, deadline: item.request.deadlineAt)
        if var held = try JobSchedule.reconsider(id, in: transaction, at: now) {
            held.others.insert(change, at: 0)
            change = held
        }
        return (Added(outcome: .new, job: change.job, note: nil), change)
    }

    /// Where a file goes that is named by its URL, as far as that is known without an answer.
    private static func urlPlace(_ request: JobRequest) -> (directory: String, name: String)? {
        guard let parsed = try? URLParser.parse(request.url) else { return nil }
        return FileName.fromURLPath(parsed.address.path).map { (request.directory, $0) }
    }

    /// What `-o` meets: nil if the name is free or may be replaced.
    private static func taken(
        _ place: (directory: String, name: String),
        _ request: JobRequest,
        _ transaction: Transaction,
        _ calls: FileCalls
    ) throws -> Added? {
        let folder = try Folder(place.directory, calls: calls)
        guard let found = try folder.identity(of: place.name) else { return nil }
        let path = folder.path(of: place.name)
        switch request.ifExists ?? .fail {
        case .skip:
            return Added(outcome: .skipped, job: nil, note: "left alone: \(path) exists")
        case .overwrite, .update, .rename:
            guard !found.isRegular, request.ifExists != .rename else { return nil }
            throw FerryError(.exists, "\(path) exists and is not a file", exitStatus: .failed)
        case .fail:
            throw FerryError(
                .exists,
                "\(path) exists; choose another name with -o, or say --if-exists overwrite",
                exitStatus: .failed
            )
        }
    }

    /// Whether a completed job's file was found to have the digest that is wanted now, if one is.
    private static func has(_ checksum: Checksum?, _ job: JobRecord, _ transaction: Transaction) throws
        -> Bool
    {
        guard let checksum else { return true }
        return try transaction.file(job.id).map { RemoteObject(json: $0.remote).verified?.actual } == checksum
    }

    /// Whether a completed job's file is the one that was published: same size and date.
    private static func isStillThere(_ job: JobRecord, _ transaction: Transaction, _ calls: FileCalls) throws
        -> Bool
    {
        guard let path = job.path, let published = try transaction.published(path: path) else { return false }
        let (directory, name) = DownloadTransfer.split(path)
        guard let folder = try? Folder(directory, calls: calls),
            let found = try? folder.identity(of: name)
        else { return false }
        return found.isRegular && found.size == published.size
            && found.modifiedNanoseconds == published.mtimeNs
    }

    /// The options of a repeated request that differ from the job's and are not applied.
    private static func difference(_ new: JobRequest, _ old: JobRequest?, _ id: JobID) throws -> String? {
        guard let old else { return nil }
        var names: [String] = []
        if new.headers != old.headers { names.append("--header") }
        if new.ifExists != old.ifExists { names.append("--if-exists") }
        if new.caFile != old.caFile { names.append("--cacert") }
        if new.attempts != old.attempts { names.append("--attempts") }
        if new.stallTimeout != old.stallTimeout { names.append("--stall-timeout") }
        if new.deadlineMs != old.deadlineMs { names.append("--deadline") }
        if new.allowHTTP != old.allowHTTP { names.append("--allow-http") }
        if new.checksum != old.checksum { names.append("--checksum") }
        if new.sizeLimitBytes != old.sizeLimitBytes { names.append("--size-limit") }
        if new.compressed != old.compressed { names.append("--compressed") }
        if new.remoteTime != old.remoteTime { names.append("--remote-time") }
        if new.group != old.group { names.append("--group") }
        if new.priority != old.priority { names.append("--priority") }
        if new.notBefore != old.notBefore { names.append("--not-before") }
        if new.window != old.window { names.append("--window") }
        if new.after != old.after { names.append("--after") }
        if new.renew != old.renew { names.append("--renew") }
        if new.limitRateBytes != old.limitRateBytes { names.append("--limit-rate") }
        if new.upload?.transport != old.upload?.transport { names.append("--protocol") }
        if new.upload?.contentType != old.upload?.contentType { names.append("-H Content-Type") }
        if new.upload?.responsePath != old.upload?.responsePath { names.append("--response") }
        guard !names.isEmpty else { return nil }
        return "job \(id) exists and keeps its own \(names.joined(separator: ", "))"
    }
}
