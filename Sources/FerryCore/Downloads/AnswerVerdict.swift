/// Why bytes that were there are fetched anew.
public enum RestartReason: String, Hashable, Sendable {
    /// The object is another one now.
    case changed
    /// The object is the same, and the server sent all of it.
    case rangesIgnored = "ranges-ignored"
    /// The answer to the range request cannot be used.
    case unusableRange = "unusable-range"
    /// The body came in a content coding.
    case encoded
    /// The part that came ends before the first byte that was asked for.
    case tooShort = "too-short"
    /// The object is again the one of an older partial, which is gone on with.
    case changedBack = "changed-back"
    /// The partial is not what was written: another program has changed, cut or replaced it.
    case partialChanged = "partial-changed"
}

/// What the head of an answer to a GET means for the bytes that are there and those that follow.
public enum AnswerVerdict: Hashable, Sendable {
    /// The body begins at byte 0; `restart` tells why, if it had been asked for from a later one.
    ///
    /// `length` is the body's length in bytes; nil if chunked or ended by the connection.
    case whole(RemoteObject, length: Int64?, restart: RestartReason?)
    /// The body covers `range`, of which the first `skip` bytes are there already.
    ///
    /// The object is the stored one with what the answer adds. `proved` is false if no strong validator
    /// vouches for the two parts being of one version.
    case append(RemoteObject, range: ByteRange, skip: Int64, proved: Bool)
    /// The body is of no use: drop it and ask without `Range`.
    case askAgain(RestartReason)
    /// Nothing is missing.
    case complete
    /// 301, 302, 303, 307, 308: see ``RedirectPlan``.
    case redirect
    /// Another status that refuses; ``RetryPlan`` decides.
    case refused
    /// It breaks the protocol or is no file, reason `bad-response`; a sentence fragment.
    case bad(String)
}
