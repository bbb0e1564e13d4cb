public import FerryCore

/// A job that is asked for and not yet accepted.
public struct NewJob: Sendable {
    /// What is asked for, with its secrets.
    public var request: JobRequest
    /// The URL as it may be shown; if it differs from the whole URL, that is kept as a secret.
    public var redactedURL: String
    /// A digest of the whole URL, by which the same transfer is found again.
    public var urlFingerprint: String
    /// The host and port that its requests go to: `name:port`.
    public var host: String
    /// When it was accepted.
    public var createdAt: Timestamp
    /// The library session that it belongs to.
    public var session: String?
    /// The profile that it uses.
    public var profile: String?

    /// Makes a job to insert.
    public init(
        request: JobRequest,
        redactedURL: String,
        urlFingerprint: String,
        host: String,
        createdAt: Timestamp,
        session: String? = nil,
        profile: String? = nil
    ) {
        self.request = request
        self.redactedURL = redactedURL
        self.urlFingerprint = urlFingerprint
        self.host = host
        self.createdAt = createdAt
        self.session = session
        self.profile = profile
    }
}
