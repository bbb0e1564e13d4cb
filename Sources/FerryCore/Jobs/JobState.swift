/// What a job does: fetch a file or send one.
public enum JobKind: String, Sendable, Codable, CaseIterable {
    /// A URL becomes a file.
    case download
    /// A file goes to a URL.
    case upload
}

/// Where a job stands; the words of the manual, the database and JSON.
public enum JobState: String, Sendable, Codable, CaseIterable {
    /// Ready to run.
    case queued
    /// Has a place and works.
    case running
    /// Cannot run now, will by itself; see ``WaitReason``.
    case waiting
    /// Stopped by a person.
    case paused
    /// Waiting cannot help; everything fetched so far is kept.
    case failed
    /// The file is in place, or the server has confirmed the upload.
    case completed
    /// Given up by a person.
    case cancelled

    /// Whether nothing more happens by itself: completed, failed or cancelled.
    public var isEnded: Bool { self == .completed || self == .failed || self == .cancelled }

    /// Whether nothing can happen any more: completed or cancelled.
    public var isFinal: Bool { self == .completed || self == .cancelled }
}

/// What a running job is doing.
public enum JobPhase: String, Sendable, Codable, CaseIterable {
    /// Resolving, connecting, waiting for the head of the answer.
    case connecting
    /// Body bytes flow.
    case transferring
    /// Digests are compared.
    case verifying
    /// The file is being synced and put in its place.
    case finishing
}

/// Why a job waits.
public enum WaitReason: String, Sendable, Codable, CaseIterable {
    /// Back-off after a failure.
    case retry
    /// The server asked this job to come later.
    case host
    /// No route or no name service.
    case network
    /// Not-before, window or dependency.
    case schedule
    /// No space or quota.
    case disk
    /// A token is being renewed.
    case auth
}

/// Why a job failed.
public enum FailureReason: String, Sendable, Codable, CaseIterable {
    /// 404, 410, 451.
    case notFound = "not-found"
    /// 403.
    case forbidden
    /// 401, 407.
    case unauthorized
    /// 403 or 410 on a URL that had worked or carries an expiry.
    case linkExpired = "link-expired"
    /// Three restarts without a stable object.
    case changed
    /// The local file of an upload changed.
    case sourceChanged = "source-changed"
    /// A digest did not match twice.
    case checksum
    /// Over a size limit, the server's or the user's.
    case tooLarge = "too-large"
    /// Insecure transport, pin mismatch, redirect refused.
    case policy
    /// The TLS handshake or a certificate.
    case tls
    /// An answer that breaks the protocol or is no file.
    case badResponse = "bad-response"
    /// The local disk or folder.
    case localIO = "local-io"
    /// The name is taken.
    case exists
    /// The server cannot do what was asked.
    case unsupported
    /// A job that this one comes after failed.
    case dependency
    /// Attempts or deadline used up; the last cause is kept.
    case gaveUp = "gave-up"
    /// Another refusal, in the server's own words.
    case server
}
