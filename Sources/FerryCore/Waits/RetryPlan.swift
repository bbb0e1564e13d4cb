/// Answers "try again, wait, or give up?" from the cause, the policy and what was tried before.
public enum RetryPlan {
    /// How often a full disk is looked at again.
    public static let diskInterval = Duration.seconds(5)

    /// Sorts a cause, by the tables of HTTP statuses and libcurl codes.
    public static func classify(_ cause: TransferCause) -> RetryVerdict {
        switch cause {
        case .status(let status, let retryAfter, let hadBytes, let linkMayExpire):
            self.classify(
                status: status,
                hasRetryAfter: retryAfter != nil,
                mayBeExpired: hadBytes || linkMayExpire
            )
        case .transport(let code, _, let handshakeAlert): self.classify(code: code, alert: handshakeAlert)
        case .shortBody: .retry(.transient, reason: .gaveUp)
        case .badResponse, .redirect: .retry(.doubtful, reason: .badResponse)
        case .tlsTruncated: .retry(.doubtful, reason: .tls)
        case .webPage: .fail(.badResponse, advice: nil)
        case .changed: .fail(.changed, advice: nil)
        case .tooLarge: .fail(.tooLarge, advice: nil)
        case .checksum: .fail(.checksum, advice: nil)
        case .local(let errno, _): self.classify(errno: errno)
        case .network: .wait(.network)
        case .exists: .fail(.exists, advice: nil)
        case .policy: .fail(.policy, advice: nil)
        case .busy: .retry(.transient, reason: .gaveUp)
        case .hostPaused: .retry(.hostPause, reason: .gaveUp)
        case .refused(let reason, _, let advice): .fail(reason, advice: advice)
        }
    }

    /// Decides what becomes of the job, and counts.
    ///
    /// A pause that the server asks for (429, 503 and 413 with `Retry-After`), a full disk and the lack of a
    /// network spend no try:
    /// `attempts` comes back unchanged, since it counts tries begun, and `forgivenAttempts` is raised by one,
    /// so that this try does not count against the policy's limit. The no-progress limit holds for such
    /// pauses too, but not for disk and network.
    ///
    /// - Parameters:
    ///   - cause: Why the transfer ended.
    ///   - policy: The limits.
    ///   - state: The counts before; `attempts` includes the try that just ended.
    ///   - now: Our clock.
    ///   - random: A number in 0..<1, for full jitter.
    /// - Returns: The decision, and the counts to store.
    public static func decide(
        _ cause: TransferCause,
        policy: RetryPolicy,
        state: RetryState,
        now: Timestamp,
        random: () -> Double
    ) -> (decision: RetryDecision, state: RetryState) {
        var state = state
        let stalled = policy.noProgress.map { now - state.progressAt >= $0 } ?? false
        let gaveUp = RetryDecision.fail(.gaveUp, advice: nil)
        switch self.classify(cause) {
        case .fail(let reason, let advice):
            return (.fail(reason, advice: advice), state)
        case .wait(let reason):
            state.forgivenAttempts += 1
            let interval = reason == .network ? NetworkOutages.shortest : self.diskInterval
            return (.wait(reason, after: interval), state)
        case .retry(.hostPause, _):
            state.forgivenAttempts += 1
            if stalled { return (gaveUp, state) }
            let pause = max(self.serverPause(cause, policy) ?? .zero, policy.base, policy.floor)
            return (.wait(.host, after: pause), state)
        case .retry(let counted, let reason):
            if counted == .doubtful { state.doubtfulTries += 1 } else { state.transientTries += 1 }
            if counted == .doubtful, policy.doubtfulAttempts > 0,
                state.doubtfulTries >= policy.doubtfulAttempts
            {
                return (.fail(reason, advice: nil), state)
            }
            if let limit = policy.attempts, limit > 0, state.attempts - state.forgivenAttempts >= limit {
                return (counted == .doubtful ? .fail(reason, advice: nil) : gaveUp, state)
            }
            if stalled { return (gaveUp, state) }
            let tries = state.transientTries + state.doubtfulTries
            var delay = self.backOff(try: tries - 1, policy: policy, random: random())
            // A full server or a used-up quota of bandwidth does not pass in seconds.
            if case .status(507...509, _, _, _) = cause { delay = max(delay, policy.cap) }
            return (
                .retry(after: max(delay, self.serverPause(cause, policy) ?? .zero), counted: counted), state
            )
        }
    }

    /// Full jitter: a random time up to `base · 2^n`, at most the cap, at least the floor.
    ///
    /// - Parameters:
    ///   - n: The failures before, from 0.
    ///   - policy: The limits.
    ///   - random: A number in 0..<1.
    /// - Returns: The time to wait.
    public static func backOff(`try` n: Int, policy: RetryPolicy, random: Double) -> Duration {
        var ceiling = min(policy.base, policy.cap)
        for _ in 0..<max(0, min(n, 64)) where ceiling < policy.cap {
            ceiling = min(ceiling + ceiling, policy.cap)
        }
        let factor = random.isNaN ? 0 : min(max(random, 0), 1)
        return max(ceiling * factor, policy.floor)
    }

    private static func serverPause(_ cause: TransferCause, _ policy: RetryPolicy) -> Duration? {
        switch cause {
        case .status(_, let wish?, _, _), .hostPaused(_, rest: let wish):
            min(max(wish, .zero), policy.retryAfterCap)
        default: nil
        }
    }

    private static func classify(status: Int, hasRetryAfter: Bool, mayBeExpired: Bool) -> RetryVerdict {
        switch status {
        case 429, 503:
            .retry(hasRetryAfter ? .hostPause : .transient, reason: .gaveUp)
        case 413:
            hasRetryAfter ? .retry(.hostPause, reason: .gaveUp) : .fail(.tooLarge, advice: nil)
        case 408, 421, 425, 502, 504, 509, 521...524, 529:
            .retry(.transient, reason: .gaveUp)
        case 501, 505:
            .fail(.unsupported, advice: nil)
        case 500...599:
            .retry(.doubtful, reason: .server)
        case 401, 407:
            .fail(.unauthorized, advice: nil)
        case 403, 410:
            if mayBeExpired {
                .fail(.linkExpired, advice: nil)
            } else {
                .fail(status == 403 ? .forbidden : .notFound, advice: nil)
            }
        case 404, 451:
            .fail(.notFound, advice: nil)
        case 416:
            .retry(.doubtful, reason: .badResponse)
        case 400...499:
            .fail(.server, advice: nil)
        case 300...399:
            .fail(.badResponse, advice: nil)
        default:
            .retry(.doubtful, reason: .badResponse)
        }
    }

    /// The codes of libcurl-errors(3).
    private static func classify(code: Int32, alert: Bool) -> RetryVerdict {
        switch code {
        case 5, 6, 7, 16, 18, 27, 28, 52, 55, 56, 92, 95, 96, 97:
            .retry(.transient, reason: .gaveUp)
        case 35:
            alert ? .retry(.doubtful, reason: .tls) : .retry(.transient, reason: .gaveUp)
        case 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 91, 98:
            .fail(.tls, advice: nil)
        case 90:
            .fail(.policy, advice: nil)
        case 23, 26, 42, 65:
            .fail(.localIO, advice: nil)
        case 2, 45, 99:
            .retry(.doubtful, reason: .localIO)
        case 1, 3, 4, 43, 48, 49:
            .fail(.unsupported, advice: nil)
        case 47:
            .fail(.badResponse, advice: nil)
        case 63:
            .fail(.tooLarge, advice: nil)
        case 67, 94:
            .fail(.unauthorized, advice: nil)
        default:
            .retry(.doubtful, reason: .badResponse)
        }
    }

    /// The numbers are Linux's (errno(3)).
    private static func classify(errno: Int32) -> RetryVerdict {
        switch errno {
        case 28, 122: .wait(.disk)  // ENOSPC, EDQUOT
        case 12, 23, 24: .retry(.doubtful, reason: .localIO)  // ENOMEM, ENFILE, EMFILE
        default: .fail(.localIO, advice: nil)
        }
    }
}
