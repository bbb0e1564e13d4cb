/// What one attempt told of the host that it went to.
public enum HostSign: Hashable, Sendable {
    /// It answered, and not with a wish to be left alone.
    case answered
    /// It named a time before which nobody should come (`Retry-After`, RFC 9110 §10.2.3).
    case pause(Duration)
    /// It has too much to do, and named no time: 429, 503, and what gateways say of it.
    case overloaded
    /// No answer came: refused, reset or timed out before a head.
    case unreachable
    /// No connection was made in the time after which a job gives its place to one that waits.
    case silent
    /// Nothing, such as when a person stopped the attempt.
    case nothing
}

extension HostSign {
    /// Reads a failure.
    ///
    /// - Parameters:
    ///   - cause: Why the attempt ended.
    ///   - hasAnswered: Whether the host had answered earlier in the same attempt.
    ///   - policy: Bounds the pause that is taken from a server.
    public init(_ cause: TransferCause, hasAnswered: Bool, policy: RetryPolicy) {
        switch cause {
        case .status(let status, let retryAfter, _, _):
            if let retryAfter, Self.mayAskForPause(status) {
                let pause = min(max(retryAfter, .zero), policy.retryAfterCap)
                self = .pause(max(pause, policy.base, policy.floor))
            } else {
                self = Self.isOverload(status) ? .overloaded : .answered
            }
        case .transport(let code, _, let handshakeAlert):
            let isLost = Self.codes.contains(code) && !handshakeAlert
            self = isLost && !hasAnswered ? .unreachable : .nothing
        case .shortBody, .badResponse, .webPage, .changed, .tooLarge, .checksum, .tlsTruncated, .local,
            .exists,
            .policy, .redirect, .busy, .hostPaused, .refused, .network:
            // For lack of a network nothing was heard of any host.
            self = .nothing
        }
    }

    /// Whether an answer with that status is one of a host that does its work.
    public static func isGood(_ status: Int) -> Bool {
        !self.isOverload(status) && !self.mayAskForPause(status)
    }

    /// Statuses whose `Retry-After` is a wish for all requests (protocols of retrying take it on all of these).
    private static func mayAskForPause(_ status: Int) -> Bool {
        [408, 413, 425, 429, 500, 502, 503, 504, 509, 529].contains(status)
    }

    /// Statuses that a host or its gateway sends when it cannot cope, whatever is asked for.
    private static func isOverload(_ status: Int) -> Bool {
        switch status {
        case 429, 502, 503, 504, 509, 521...524, 529: true
        default: false
        }
    }

    /// The codes of libcurl-errors(3) by which a host that does not answer is known: names, connections, time-outs,
    /// resets and empty answers.
    private static let codes: Set<Int32> = [5, 6, 7, 16, 28, 35, 52, 55, 56, 92, 95, 96, 97]
}
