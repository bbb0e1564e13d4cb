public import FerryCore
public import FerryFiles
public import FerryHTTP

/// What the configuration file says about transfers; the defaults are the built-in ones.
public struct EngineConfiguration: Sendable, Equatable {
    /// Jobs that run at once (`limits.running`).
    public var running = 16
    /// Connections to one host and port at once (`limits.per_host`).
    public var perHost = 6
    /// `retry`, for jobs made by `add`.
    public var retry = RetryPolicy()
    /// `retry.no_progress_foreground`: how long `get` and `put` go on without progress.
    public var noProgressForeground: Duration? = .seconds(3_600)
    /// `transport`.
    public var transport = TransportPolicy()
    /// `transport.tls_minimum`.
    public var tlsMinimum = HTTPRequest.TLSMinimum.v12
    /// `history.keep`: how long ended jobs stay listed.
    public var historyKeep: Duration = .seconds(90 * 86_400)

    /// `--allow-dir`: the only folders that files may go to; nil is anywhere. Holds as long as the engine lives.
    public var allowedFolders: AllowedFolders?

    /// The built-in defaults.
    public init() {}

    /// The policy that a job lives by.
    func retryPolicy(for request: JobRequest) -> RetryPolicy {
        var policy = self.retry
        if let attempts = request.attempts { policy.attempts = attempts }
        if request.foreground { policy.noProgress = self.noProgressForeground }
        return policy
    }

    /// The transport policy with the job's own leave.
    func transportPolicy(for request: JobRequest) -> TransportPolicy {
        var policy = self.transport
        policy.jobAllowsHTTP = request.allowHTTP
        return policy
    }
}
