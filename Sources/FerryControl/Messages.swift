public import FerryCore

/// The version of the control protocol; both sides must name the same one.
public let controlProtocolVersion = 1

/// The version of Ferry.
public let ferryVersion = "0.1.0"

/// The first line that each side sends.
public struct Hello: Codable, Sendable, Equatable {
    /// ``controlProtocolVersion`` of the sender.
    public var protocolVersion: Int
    /// ``ferryVersion`` of the sender.
    public var version: String
    /// The sender's process.
    public var pid: Int32
    /// Of a service: whether it goes when its last client has gone; nil from clients.
    public var onDemand: Bool?
    /// Of a service: its state folder; nil from clients.
    public var stateDir: String?

    /// Makes a greeting.
    public init(
        protocolVersion: Int,
        version: String,
        pid: Int32,
        onDemand: Bool? = nil,
        stateDir: String? = nil
    ) {
        self.protocolVersion = protocolVersion
        self.version = version
        self.pid = pid
        self.onDemand = onDemand
        self.stateDir = stateDir
    }
}

/// Which jobs a command means.
public struct Selector: Codable, Sendable, Equatable {
    /// By number, in the order given.
    public var jobs: [JobID]
    /// All in these states.
    public var states: [JobState]
    /// All of these groups.
    public var groups: [String]
    /// All jobs.
    public var all: Bool

    /// Makes a selector; an empty one selects nothing.
    public init(jobs: [JobID] = [], states: [JobState] = [], groups: [String] = [], all: Bool = false) {
        self.jobs = jobs
        self.states = states
        self.groups = groups
        self.all = all
    }
}

/// What a steering command does.
public enum SteerAction: String, Codable, Sendable, CaseIterable {
    /// Stop until resumed.
    case pause
    /// Queue a paused job; a waiting one is due now.
    case resume
    /// Give up and remove the partial.
    case cancel
    /// Queue a failed job; a waiting one is due now.
    case retry
    /// Forget an ended job.
    case remove
}

/// A request of a client.
public enum ControlRequest: Codable, Sendable, Equatable {
    /// Queue jobs, all or none. With `attach` the jobs run as long as this client stays.
    case add(requests: [JobRequest], attach: Bool)
    /// Jobs for `list`: newest last.
    case list(selector: Selector, host: String?, limit: Int?, includeOld: Bool)
    /// One job with segments.
    case show(job: JobID)
    /// The attempts and events of one job.
    case log(job: JobID)
    /// Steer jobs.
    case steer(action: SteerAction, selector: Selector, keepPartial: Bool)
    /// Change jobs. A new URL is asked before this is answered, which may take as long as a server does.
    case set(selector: Selector, changes: JobChanges)
    /// Change live limits, none or all of them, and tell what holds; no changes just tell.
    case limits(changes: [LimitChange])
    /// This client stands for these jobs: an on-demand service runs them while it stays.
    case attach(jobs: [JobID])
    /// This client stands for the whole queue.
    case attachAll
    /// Send notifications about these jobs (nil: all): events from now on, with the job's document, and
    /// progress at most ten times a second if wanted. Answered with the jobs' present documents, so that
    /// nothing is missed in between.
    case subscribe(jobs: [JobID]?, progress: Bool)
    /// Look at the queue, and be told when it changes and where running jobs stand; runs nothing. Asked again it
    /// replaces what was asked before.
    case watch(WatchQuery)
    /// Numbers of jobs by state.
    case counts
    /// The settings that the service lives by.
    case configuration
    /// End this on-demand service when it can; a daemon that starts asks so.
    case handOver
    /// Look for what is wrong with the queue, as far as that goes while it is worked on.
    case check
    /// The resume data of a job.
    case exportResumeData(job: JobID)
    /// Queue the job that goes on with resume data; `beside` is the folder that they lie in.
    case importResumeData(document: ResumeDocument, request: JobRequest, beside: String?)
}

/// What became of one request for a download or upload in ``ControlRequest/add(requests:attach:)``.
public struct AddedJob: Codable, Sendable, Equatable {
    /// How the request was answered.
    public enum Outcome: String, Codable, Sendable {
        /// A new job.
        case new
        /// The same transfer was already queued, waiting or running.
        case same
        /// The same transfer had failed or was paused; it goes on now (with `attach` only).
        case resumed
        /// The file is already there, complete.
        case alreadyComplete
        /// `--if-exists skip`: the name is taken, no job.
        case skipped
    }
    /// How it was answered.
    public var outcome: Outcome
    /// The job; null for `skipped`.
    public var job: JobDocument?
    /// A note for standard error, such as options that were not applied.
    public var note: String?

    /// Makes an answer.
    public init(outcome: Outcome, job: JobDocument?, note: String? = nil) {
        self.outcome = outcome
        self.job = job
        self.note = note
    }
}

/// What became of one job of a steering command.
public struct SteeredJob: Codable, Sendable, Equatable {
    /// The job.
    public var id: JobID
    /// Its state now; null if it was removed or is unknown.
    public var state: JobState?
    /// Why it could not be done; null if it was, or was so already.
    public var error: String?

    /// Makes an answer.
    public init(id: JobID, state: JobState?, error: String? = nil) {
        self.id = id
        self.state = state
        self.error = error
    }
}

/// Numbers of jobs by state.
public struct CountsDocument: Codable, Sendable, Equatable {
    /// Always `counts`.
    public var type = "counts"
    /// Each state's number, by the state's word.
    public var states: [String: Int64]

    /// Makes a document.
    public init(states: [String: Int64]) {
        self.states = states
    }
}

/// The answer to a ``ControlRequest``.
public enum ControlResponse: Codable, Sendable, Equatable {
    /// To `add`: one entry a request, in order. `running` says whether something will run the jobs.
    case added([AddedJob], running: Bool)
    /// To `list`.
    case jobs([JobDocument], counts: CountsDocument)
    /// To `show`.
    case job(JobDocument)
    /// To `log`.
    case log(job: JobDocument, attempts: [AttemptDocument], events: [EventDocument])
    /// To `steer` and `set`. `running` says whether something will run the jobs.
    case steered([SteeredJob], running: Bool)
    /// To `limits`.
    case limits(LimitsDocument)
    /// To `subscribe`.
    case subscribed([JobDocument])
    /// To `watch`.
    case watched(WatchedDocument)
    /// To `counts`.
    case counts(CountsDocument)
    /// To `check`.
    case checked([Finding], damaged: Bool)
    /// To `exportResumeData`.
    case resumeData(ResumeDocument)
    /// To `configuration`.
    case configuration([SettingDocument])
    /// To `attach`, `attachAll`, `handOver`.
    case done
}

/// What the service tells a subscriber.
public enum ControlNotification: Codable, Sendable, Equatable {
    /// Something happened; the job's document after it, if it still exists.
    case event(EventDocument, job: JobDocument?)
    /// Where running jobs stand.
    case progress([ProgressDocument])
    /// Something has changed since the last answer to `watch`; told once until it is asked again.
    case changed
    /// The client read too slowly, and events were left out; another `subscribe` tells how things stand.
    case overrun
}

/// A failure that travels over the socket.
public struct ErrorDocument: Codable, Sendable, Equatable, Error {
    /// ``FerryError/Code``.
    public var code: FerryError.Code
    /// One sentence.
    public var message: String
    /// The exit status that follows.
    public var exitStatus: ExitStatus

    /// Takes over an error.
    public init(_ error: FerryError) {
        self.code = error.code
        self.message = error.message
        self.exitStatus = error.exitStatus
    }

    /// The error again.
    public var error: FerryError {
        FerryError(self.code, self.message, exitStatus: self.exitStatus)
    }
}

/// One line from a client.
public struct RequestLine: Codable, Sendable, Equatable {
    /// Echoed in the answer.
    public var id: Int
    /// The request.
    public var request: ControlRequest

    /// Makes a line.
    public init(id: Int, request: ControlRequest) {
        self.id = id
        self.request = request
    }
}

/// One line from the service; exactly one of the fields is set.
public struct ServiceLine: Codable, Sendable, Equatable {
    /// The greeting.
    public var hello: Hello?
    /// The request that ``response`` or ``error`` answers; nil for a failed greeting.
    public var id: Int?
    /// A success.
    public var response: ControlResponse?
    /// A failure.
    public var error: ErrorDocument?
    /// Something that a subscriber wanted.
    public var notification: ControlNotification?

    /// Makes a line.
    public init(
        hello: Hello? = nil,
        id: Int? = nil,
        response: ControlResponse? = nil,
        error: ErrorDocument? = nil,
        notification: ControlNotification? = nil
    ) {
        self.hello = hello
        self.id = id
        self.response = response
        self.error = error
        self.notification = notification
    }
}
