/// What to do when the destination's name is taken (`--if-exists`).
public enum IfExists: String, Sendable, Codable, CaseIterable {
    /// The job fails, reason `exists`.
    case fail
    /// Another name is taken: `name (2).ext`.
    case rename
    /// The old file is replaced, in one step, when the new one is whole.
    case overwrite
    /// No job; said on standard error.
    case skip
    /// Asks with the stored validator and leaves the file alone on 304.
    case update
}

/// One header field that the user gave with `-H`.
public struct RequestHeader: Hashable, Sendable, Codable {
    /// The field's name, as given.
    public let name: String
    /// The field's value; shown nowhere.
    public let value: String

    /// Makes a field.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// The proxy variables of the command's environment; the service's own play no part.
public struct ProxyEnvironment: Hashable, Sendable, Codable {
    /// `http_proxy`.
    public var http: String?
    /// `https_proxy`, `HTTPS_PROXY`.
    public var https: String?
    /// `all_proxy`, `ALL_PROXY`.
    public var all: String?
    /// `no_proxy`, `NO_PROXY`.
    public var no: String?

    /// Makes a set; nil is "not set".
    public init(http: String? = nil, https: String? = nil, all: String? = nil, no: String? = nil) {
        self.http = http
        self.https = https
        self.all = all
        self.no = no
    }
}

/// What a user asks for: one download or upload, with all of the command's surroundings resolved.
///
/// It travels from the command to the service and, without its secrets, into the database.
public struct JobRequest: Hashable, Sendable, Codable {
    /// Download or upload.
    public var kind: JobKind
    /// The URL as given; its query and user info are secrets.
    public var url: String
    /// The folder that the file goes to, absolute.
    public var directory: String
    /// `-o`: the file, absolute; nil lets URL or server name it inside ``directory``.
    public var output: String?
    /// What to do when the name is taken; nil is the default: `rename` without `-o`, `fail` with it.
    public var ifExists: IfExists?
    /// `-H` fields, in order; secrets.
    public var headers: [RequestHeader]
    /// `--allow-http`.
    public var allowHTTP: Bool
    /// `--cacert`, absolute; else what the caller's environment names.
    public var caFile: String?
    /// `--attempts`: tries in all; 0 = no limit; nil = the configuration's.
    public var attempts: Int?
    /// The caller's file mode creation mask.
    public var umask: UInt32
    /// The caller's proxies.
    public var proxy: ProxyEnvironment
    /// Made by `get` or `put`: gives up sooner (`retry.no_progress_foreground`).
    public var foreground: Bool
    /// `--group`.
    public var group: String?
    /// `--priority`, -100…100.
    public var priority: Int
    /// `--checksum`: what the file must have.
    public var checksum: Checksum?
    /// `--size-limit`, in bytes.
    public var sizeLimitBytes: Int64?
    /// `--compressed`: asks for content codings and stores the decoded body.
    public var compressed: Bool
    /// `--remote-time`: gives the file the server's date.
    public var remoteTime: Bool
    /// `--not-before`: the job waits until then.
    public var notBefore: Timestamp?
    /// `--limit-rate`, in bytes a second; nil is no limit of its own.
    public var limitRateBytes: Int64?
    /// `-d`: a folder that is missing is made, by the service in the machine's queue.
    public var createsDirectory: Bool?
    /// `--window`: the hours at which it may run.
    public var window: RunWindow?
    /// `--after`: the jobs that have to be completed first; nil is none.
    public var after: [JobID]?
    /// `--renew`: the program that knows a new URL when the link has expired, absolute.
    public var renew: String?
    /// `--stall-timeout`, in milliseconds: how long silence may last; 0 = for ever; nil = the default.
    public var stallTimeoutMilliseconds: Int64?
    /// What an upload sends; nil for downloads.
    public var upload: UploadOrder?
    /// `--deadline`, in milliseconds from when the job is added; 0 or nil = none.
    public var deadlineMs: Int64?
    /// When it gives up, in milliseconds since 1970; set by the service from ``deadlineMs``.
    public var deadlineAtMs: Int64?

    /// Makes a request; the defaults are those of a bare `ferry add URL`.
    public init(
        kind: JobKind = .download,
        url: String,
        directory: String,
        output: String? = nil,
        ifExists: IfExists? = nil,
        headers: [RequestHeader] = [],
        allowHTTP: Bool = false,
        caFile: String? = nil,
        attempts: Int? = nil,
        umask: UInt32 = 0o022,
        proxy: ProxyEnvironment = ProxyEnvironment(),
        foreground: Bool = false,
        group: String? = nil,
        priority: Int = 0,
        checksum: Checksum? = nil,
        sizeLimitBytes: Int64? = nil,
        compressed: Bool = false,
        remoteTime: Bool = false,
        notBefore: Timestamp? = nil,
        limitRateBytes: Int64? = nil,
        upload: UploadOrder? = nil
    ) {
        self.kind = kind
        self.url = url
        self.directory = directory
        self.output = output
        self.ifExists = ifExists
        self.headers = headers
        self.allowHTTP = allowHTTP
        self.caFile = caFile
        self.attempts = attempts
        self.umask = umask
        self.proxy = proxy
        self.foreground = foreground
        self.group = group
        self.priority = priority
        self.checksum = checksum
        self.sizeLimitBytes = sizeLimitBytes
        self.compressed = compressed
        self.remoteTime = remoteTime
        self.notBefore = notBefore
        self.limitRateBytes = limitRateBytes
        self.upload = upload
    }
}

extension JobRequest {
    /// `--stall-timeout`; nil is the default.
    public var stallTimeout: Duration? {
        get { self.stallTimeoutMilliseconds.map { .milliseconds($0) } }
        set {
            self.stallTimeoutMilliseconds = newValue.map { time in
                let (seconds, attoseconds) = time.components
                return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
            }
        }
    }
}
