/// How long and how often a failed transfer is tried again (`retry` in the configuration).
public struct RetryPolicy: Hashable, Sendable {
    /// Tries in all, progress or not; nil or 0 = no limit.
    public var attempts: Int?
    /// Tries that may end for a doubtful cause without durable progress between them; 0 = no limit.
    public var doubtfulAttempts: Int
    /// The ceiling of the first back-off; it doubles with each try.
    public var base: Duration
    /// The largest ceiling.
    public var cap: Duration
    /// The shortest back-off.
    public var floor: Duration
    /// The longest pause taken from a server; a longer one is cut, and asked again after it.
    public var retryAfterCap: Duration
    /// How long it may go on without durable progress; nil = no limit.
    public var noProgress: Duration?

    /// Makes a policy; the defaults are the manual's.
    public init(
        attempts: Int? = nil,
        doubtfulAttempts: Int = 8,
        base: Duration = .seconds(1),
        cap: Duration = .seconds(300),
        floor: Duration = .milliseconds(100),
        retryAfterCap: Duration = .seconds(21_600),
        noProgress: Duration? = .seconds(14 * 86_400)
    ) {
        self.attempts = attempts
        self.doubtfulAttempts = doubtfulAttempts
        self.base = base
        self.cap = cap
        self.floor = floor
        self.retryAfterCap = retryAfterCap
        self.noProgress = noProgress
    }
}

/// What a job has behind it, as far as trying again depends on it.
public struct RetryState: Hashable, Sendable {
    /// Tries begun in all, this one included; never goes down.
    public var attempts: Int
    /// Tries since durable progress that ended for a transient cause.
    public var transientTries: Int
    /// Tries since durable progress that ended for a doubtful cause.
    public var doubtfulTries: Int
    /// When bytes last became durable; else when the job was created.
    public var progressAt: Timestamp
    /// Those of ``attempts`` that are none for the policy's limit: ended by a pause that the server asked
    /// for, by a full disk, for lack of a network, or with the service.
    public var forgivenAttempts: Int

    /// Makes a state.
    public init(
        attempts: Int,
        transientTries: Int = 0,
        doubtfulTries: Int = 0,
        progressAt: Timestamp,
        forgivenAttempts: Int = 0
    ) {
        self.attempts = attempts
        self.transientTries = transientTries
        self.doubtfulTries = doubtfulTries
        self.progressAt = progressAt
        self.forgivenAttempts = forgivenAttempts
    }
}

/// Why a transfer ended before it was done.
public enum TransferCause: Hashable, Sendable {
    /// The final HTTP status is no success.
    ///
    /// `hadBytes`: bytes of the object are there already. `linkMayExpire`: see ``URLRedaction``.
    case status(Int, retryAfter: Duration?, hadBytes: Bool, linkMayExpire: Bool)
    /// libcurl gave up with this code; `handshakeAlert`: the peer ended the TLS handshake with an alert.
    case transport(code: Int32, detail: String, handshakeAlert: Bool)
    /// The body ended early.
    case shortBody
    /// The answer breaks the protocol; a sentence fragment with its subject.
    case badResponse(String)
    /// A web page came instead of the file.
    case webPage
    /// Three restarts without a stable object.
    case changed
    /// Over the size limit.
    case tooLarge
    /// This machine has no network, no route to the host, or no name service.
    case network(NetworkLack)
    /// A digest did not match, and fetching anew did not help; its name.
    case checksum(String)
    /// TLS ended without close_notify, and nothing told the length.
    case tlsTruncated
    /// A system call on a local file failed.
    case local(errno: Int32, path: String)
    /// The name is taken; the path.
    case exists(String)
    /// The transport policy refused; its sentence.
    case policy(String)
    /// A redirect is broken; a sentence fragment with its subject.
    case redirect(String)
    /// Another one has the upload, or the server is not ready for it: the server's own matter, and it passes.
    case busy(String)
    /// A redirect leads to a host that is left alone for that much longer; its name.
    case hostPaused(String, rest: Duration)
    /// An upload cannot go on, and why; a sentence, and what helps.
    case refused(FailureReason, String, advice: String?)
}

/// How a cause is counted.
public enum RetryClass: String, Hashable, Sendable {
    /// Will pass: no limit on the number.
    case transient
    /// May be permanent: a few tries.
    case doubtful
    /// The server asked for a pause: no try at all.
    case hostPause
}

/// What follows from a cause alone.
public enum RetryVerdict: Hashable, Sendable {
    /// Try again; `reason` is the failure once no try is left.
    case retry(RetryClass, reason: FailureReason)
    /// Wait for something, without a try being spent.
    case wait(WaitReason)
    /// Trying again cannot help.
    case fail(FailureReason, advice: String?)
}

/// What becomes of a job whose transfer failed.
public enum RetryDecision: Hashable, Sendable {
    /// Try again after a back-off, wait reason `retry`.
    case retry(after: Duration, counted: RetryClass)
    /// Wait for another reason; look again after that time.
    case wait(WaitReason, after: Duration)
    /// Give up, with what would help.
    case fail(FailureReason, advice: String?)
}
