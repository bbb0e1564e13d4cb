public import FerryCore
import FerryFiles
public import FerryStore

/// How a job's own program is asked for a new link when the old one has expired (`--renew`).
///
/// It runs with the rights of the service, so only in a queue of one's own. It gets the job as JSON on standard
/// input and in variables `FERRY_JOB_…`, without secrets: the URL is redacted there as everywhere.
public struct Renewal: Sendable {
    /// New links that a job may get without getting on in between.
    static let limit = 3

    /// How long a program may take.
    public var patience: Duration = .seconds(60)
    /// The job as JSON.
    public var document: @Sendable (JobRecord, RemoteObject?) -> [UInt8] = { _, _ in [] }
    /// The service's environment; of it programs get ``inherited``.
    public var environment: [String: String] = [:]

    /// What programs get of the service's environment.
    static let inherited = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME",
    ]

    /// Makes one whose programs get no document and no environment.
    public init() {}

    /// Whether a job whose link has expired is to get a new one.
    static func isDue(_ job: JobRecord, _ request: JobRequest?) -> Bool {
        job.kind == .download && request?.renew != nil && job.renewals < self.limit
    }

    /// What is said of a job whose link has expired for good.
    static func message(_ message: String, _ job: JobRecord, _ request: JobRequest?) -> String {
        guard let program = request?.renew, job.renewals >= self.limit else { return message }
        return "\(message), also for the \(job.renewals) links that \(program) gave"
    }

    /// What a program said.
    enum Answer: Sendable {
        /// The new URL.
        case url(String)
        /// Nothing that helps; a clause about the program.
        case failed(String)
        /// It was stopped.
        case stopped
    }

    /// Runs a job's program.
    func ask(_ program: String, about job: JobRecord, _ remote: RemoteObject?) async -> Answer {
        let run = ProgramRun(
            path: program,
            input: self.document(job, remote) + [UInt8(ascii: "\n")],
            environment: self.variables(of: job),
            limit: self.patience,
            outputLimit: RenewedLink.limitBytes
        )
        func failed(_ what: String, _ errors: [UInt8] = []) -> Answer {
            .failed("\(program) \(what)" + (RenewedLink.lastWords(errors).map { ": \($0)" } ?? ""))
        }
        switch await run.run() {
        case .exited(0, let output, let errors):
            switch RenewedLink.read(output) {
            case .url(let url): return .url(url)
            case .refused(let why): return failed(why, errors)
            }
        case .exited(let status, _, let errors): return failed("ended with status \(status)", errors)
        case .signalled(let signal, let errors): return failed("was ended by signal \(signal)", errors)
        case .overtime(let errors):
            return failed("gave no answer within \(DurationText.format(self.patience))", errors)
        case .tooMuch: return failed("printed too much")
        case .notStarted(let errno): return failed("could not be run: \(SystemError.text(errno))")
        case .stopped: return .stopped
        }
    }

    private func variables(of job: JobRecord) -> [String: String] {
        var variables = self.environment.filter { Self.inherited.contains($0.key) }
        let facts: [(String, String?)] = [
            ("ID", "\(job.id)"), ("KIND", job.kind.rawValue), ("STATE", job.state.rawValue),
            ("REASON", job.waitReason?.rawValue), ("MESSAGE", job.message), ("URL", job.url),
            ("PATH", job.path),
            ("GROUP", job.group), ("BYTES_DONE", "\(job.bytesDurable)"),
            ("BYTES_TOTAL", job.bytesTotal.map { "\($0)" }),
        ]
        for (name, value) in facts { variables["FERRY_JOB_\(name)"] = value ?? "" }
        return variables
    }
}
