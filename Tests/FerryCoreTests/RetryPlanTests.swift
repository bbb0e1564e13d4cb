import FerryCore
import Testing

@Suite struct RetryPlanTests {
    private static let transient = RetryVerdict.retry(.transient, reason: .gaveUp)
    private static let fresh = RetryState(attempts: 1, progressAt: now)

    private static func status(
        _ status: Int,
        retryAfter: Duration? = nil,
        hadBytes: Bool = false,
        mayExpire: Bool = false
    ) -> TransferCause {
        .status(status, retryAfter: retryAfter, hadBytes: hadBytes, linkMayExpire: mayExpire)
    }

    private static func code(_ code: Int32, alert: Bool = false) -> TransferCause {
        .transport(code: code, detail: "", handshakeAlert: alert)
    }

    /// What a verdict comes to, without the advice.
    private static func essence(_ verdict: RetryVerdict) -> RetryVerdict {
        if case .fail(let reason, _) = verdict { return .fail(reason, advice: nil) }
        return verdict
    }

    private static let statuses: [([Int], RetryVerdict)] = [
        ([408, 421, 425, 429, 502, 503, 504, 509, 521, 522, 523, 524, 529], transient),
        ([500, 507, 508, 510, 511, 520, 525, 526, 530, 599], .retry(.doubtful, reason: .server)),
        ([401, 407], .fail(.unauthorized, advice: nil)), ([403], .fail(.forbidden, advice: nil)),
        ([404, 410, 451], .fail(.notFound, advice: nil)), ([413], .fail(.tooLarge, advice: nil)),
        ([501, 505], .fail(.unsupported, advice: nil)),
        (
            [400, 402, 405, 406, 409, 411, 412, 414, 415, 417, 418, 422, 423, 424, 426, 428, 431, 499],
            .fail(.server, advice: nil)
        ),
        ([416], .retry(.doubtful, reason: .badResponse)),
        ([300, 304, 305, 306], .fail(.badResponse, advice: nil)),
        ([0, 99, 204, 600, 999], .retry(.doubtful, reason: .badResponse)),
    ]

    @Test(arguments: statuses)
    func `each status has its class`(statuses: [Int], expected: RetryVerdict) {
        for status in statuses {
            #expect(Self.essence(RetryPlan.classify(Self.status(status))) == expected, "\(status)")
        }
    }

    @Test(
        arguments: [
            ([1, 3, 4, 43, 48, 49], .fail(.unsupported, advice: nil)),
            ([5, 6, 7, 16, 18, 27, 28, 35, 52, 55, 56, 92, 95, 96, 97], transient),
            ([33, 61, 22, 8, 12_345, -1, 0], .retry(.doubtful, reason: .badResponse)),
            ([23, 26, 42, 65], .fail(.localIO, advice: nil)),
            ([2, 45, 99], .retry(.doubtful, reason: .localIO)),
            ([60, 83, 91, 58, 77, 98, 59, 53, 54, 66, 80], .fail(.tls, advice: nil)),
            ([90], .fail(.policy, advice: nil)), ([47], .fail(.badResponse, advice: nil)),
            ([63], .fail(.tooLarge, advice: nil)), ([67, 94], .fail(.unauthorized, advice: nil)),
        ] as [([Int32], RetryVerdict)]
    )
    func `each libcurl code has its class`(codes: [Int32], expected: RetryVerdict) {
        for code in codes {
            #expect(Self.essence(RetryPlan.classify(Self.code(code))) == expected, "\(code)")
        }
    }

    @Test(
        arguments: [
            (code(35, alert: true), .retry(.doubtful, reason: .tls)),
            (status(403, hadBytes: true), .fail(.linkExpired, advice: nil)),
            (status(403, mayExpire: true), .fail(.linkExpired, advice: nil)),
            (status(410, hadBytes: true), .fail(.linkExpired, advice: nil)),
            (status(410, mayExpire: true), .fail(.linkExpired, advice: nil)),
            (status(404, hadBytes: true, mayExpire: true), .fail(.notFound, advice: nil)),
            (status(429, retryAfter: .zero), .retry(.hostPause, reason: .gaveUp)),
            (status(503, retryAfter: .seconds(5)), .retry(.hostPause, reason: .gaveUp)),
            (status(413, retryAfter: .seconds(5)), .retry(.hostPause, reason: .gaveUp)),
            (status(502, retryAfter: .seconds(5)), transient),
            (.shortBody, transient), (.badResponse("x"), .retry(.doubtful, reason: .badResponse)),
            (.redirect("x"), .retry(.doubtful, reason: .badResponse)),
            (.tlsTruncated, .retry(.doubtful, reason: .tls)),
            (.webPage, .fail(.badResponse, advice: nil)), (.changed, .fail(.changed, advice: nil)),
            (.tooLarge, .fail(.tooLarge, advice: nil)), (.exists("/x"), .fail(.exists, advice: nil)),
            (.policy("x"), .fail(.policy, advice: nil)), (.local(errno: 28, path: "/x"), .wait(.disk)),
            (.local(errno: 122, path: "/x"), .wait(.disk)),
            (.local(errno: 5, path: "/x"), .fail(.localIO, advice: nil)),
            (.local(errno: 13, path: "/x"), .fail(.localIO, advice: nil)),
            (.local(errno: 24, path: "/x"), .retry(.doubtful, reason: .localIO)),
            (.local(errno: -1, path: ""), .fail(.localIO, advice: nil)),
        ] as [(TransferCause, RetryVerdict)]
    )
    func `the circumstances count`(cause: TransferCause, expected: RetryVerdict) {
        #expect(Self.essence(RetryPlan.classify(cause)) == expected)
    }

    // MARK: back-off

    private func delay(after tries: Int, random: Double, policy: RetryPolicy = RetryPolicy()) -> Duration? {
        var state = Self.fresh
        state.transientTries = tries
        let decision = RetryPlan.decide(.shortBody, policy: policy, state: state, now: now) { random }
            .decision
        guard case .retry(let delay, .transient) = decision else { return nil }
        return delay
    }

    @Test(arguments: 0...70)
    func `back-off lies between floor and the doubled base, and never above the cap`(n: Int) throws {
        let ceiling = n < 9 ? Duration.seconds(1 << n) : .seconds(300)
        #expect(self.delay(after: n, random: 0) == .milliseconds(100))
        let most = try #require(self.delay(after: n, random: 0.999_999))
        #expect(most <= ceiling)
        #expect(most > ceiling * 0.99)
        let half = try #require(self.delay(after: n, random: 0.5))
        #expect(half == ceiling / 2)
    }

    @Test(arguments: [Int.max - 1, 1_000_000], [0, 0.5, 1, 2, -1, .nan, .infinity] as [Double])
    func `no count and no random number is too strange`(n: Int, random: Double) throws {
        let delay = try #require(self.delay(after: n, random: random))
        #expect(delay >= .milliseconds(100))
        #expect(delay <= .seconds(300))
    }

    @Test func `odd policies do no harm`() {
        let huge = RetryPolicy(base: .seconds(Int64.max / 4), cap: .seconds(Int64.max / 2))
        #expect(self.delay(after: 60, random: 0) == .milliseconds(100))
        #expect(self.delay(after: 60, random: 0, policy: huge) == .milliseconds(100))
        #expect(self.delay(after: 3, random: 0.5, policy: RetryPolicy(base: .zero)) == .milliseconds(100))
        #expect(self.delay(after: 3, random: 0.5, policy: RetryPolicy(cap: .zero)) == .milliseconds(100))
    }

    // MARK: what the server asks for

    @Test(
        arguments: [
            (status(502, retryAfter: .seconds(60)), .retry(after: .seconds(60), counted: .transient)),
            (
                status(502, retryAfter: .milliseconds(1)),
                .retry(after: .milliseconds(500), counted: .transient)
            ),
            (status(502, retryAfter: .seconds(-5)), .retry(after: .milliseconds(500), counted: .transient)),
            (
                status(500, retryAfter: .seconds(365 * 86_400)),
                .retry(after: .seconds(21_600), counted: .doubtful)
            ),
            (status(509), .retry(after: .seconds(300), counted: .transient)),
            (status(507), .retry(after: .seconds(300), counted: .doubtful)),
            (status(429), .retry(after: .milliseconds(500), counted: .transient)),
            (status(429, retryAfter: .seconds(90)), .wait(.host, after: .seconds(90))),
            (status(503, retryAfter: .seconds(90)), .wait(.host, after: .seconds(90))),
            (status(413, retryAfter: .seconds(90)), .wait(.host, after: .seconds(90))),
            (status(429, retryAfter: .zero), .wait(.host, after: .seconds(1))),
            (status(503, retryAfter: .seconds(365 * 86_400)), .wait(.host, after: .seconds(21_600))),
            (.local(errno: 28, path: "/x"), .wait(.disk, after: .seconds(5))),
        ] as [(TransferCause, RetryDecision)]
    )
    func `the server's pause is the least, within the cap`(cause: TransferCause, expected: RetryDecision) {
        let answer = RetryPlan.decide(cause, policy: RetryPolicy(), state: Self.fresh, now: now) { 0.5 }
        #expect(answer.decision == expected)
    }

    @Test(arguments: [status(429, retryAfter: .seconds(1)), .local(errno: 28, path: "/x")])
    func `a pause spends no try`(cause: TransferCause) {
        let policy = RetryPolicy(attempts: 2)
        var state = RetryState(attempts: 0, progressAt: now)
        for attempt in 1...50 {
            state.attempts += 1
            let answer = RetryPlan.decide(cause, policy: policy, state: state, now: now) { 0 }
            guard case .wait = answer.decision else {
                Issue.record("\(answer.decision)")
                return
            }
            state = answer.state
            #expect(state.attempts == attempt)
            #expect(state.transientTries == 0)
            #expect(state.doubtfulTries == 0)
        }
        state.attempts += 1
        var answer = RetryPlan.decide(.shortBody, policy: policy, state: state, now: now) { 0 }
        #expect(answer.decision == .retry(after: .milliseconds(100), counted: .transient))
        state = answer.state
        state.attempts += 1
        answer = RetryPlan.decide(.shortBody, policy: policy, state: state, now: now) { 0 }
        #expect(Self.reason(answer.decision) == .gaveUp)
    }

    // MARK: limits

    private static func reason(_ decision: RetryDecision) -> FailureReason? {
        if case .fail(let reason, _) = decision { return reason }
        return nil
    }

    /// How many tries it takes until the job fails, and the reason; nil after 1,000.
    private func run(_ cause: TransferCause, _ policy: RetryPolicy) -> (tries: Int, reason: FailureReason)? {
        var state = RetryState(attempts: 0, progressAt: now)
        for attempt in 1...1_000 {
            state.attempts = attempt
            let answer = RetryPlan.decide(cause, policy: policy, state: state, now: now) { 0 }
            state = answer.state
            if let reason = Self.reason(answer.decision) { return (attempt, reason) }
        }
        return nil
    }

    @Test(
        arguments: [
            (status(500), nil, 8, .server), (.badResponse("x"), nil, 8, .badResponse),
            (code(35, alert: true), nil, 8, .tls), (.tlsTruncated, nil, 8, .tls),
            (status(500), 3, 3, .server),
            (status(500), 20, 8, .server), (.shortBody, 1, 1, .gaveUp), (.shortBody, 5, 5, .gaveUp),
            (status(503), 5, 5, .gaveUp), (.webPage, nil, 1, .badResponse), (.changed, 9, 1, .changed),
        ] as [(TransferCause, Int?, Int, FailureReason)]
    )
    func `the tries are counted`(cause: TransferCause, attempts: Int?, tries: Int, reason: FailureReason) {
        let end = self.run(cause, RetryPolicy(attempts: attempts))
        #expect(end?.tries == tries)
        #expect(end?.reason == reason)
    }

    @Test func `without a limit transient causes are tried for ever`() {
        #expect(self.run(.shortBody, RetryPolicy()) == nil)
        #expect(self.run(.shortBody, RetryPolicy(attempts: 0)) == nil)
        #expect(self.run(Self.status(500), RetryPolicy(doubtfulAttempts: 0)) == nil)
    }

    @Test func `progress starts the counts anew`() {
        var state = RetryState(attempts: 7, doubtfulTries: 7, progressAt: now)
        let last = RetryPlan.decide(Self.status(500), policy: RetryPolicy(), state: state, now: now) { 0 }
        #expect(Self.reason(last.decision) == .server)
        state.doubtfulTries = 0
        let next = RetryPlan.decide(Self.status(500), policy: RetryPolicy(), state: state, now: now) { 0 }
        #expect(next.decision == .retry(after: .milliseconds(100), counted: .doubtful))
        #expect(next.state.doubtfulTries == 1)
        #expect(next.state.attempts == 7)
    }

    @Test func `both kinds of causes lengthen the back-off, each has its own limit`() {
        let state = RetryState(attempts: 9, transientTries: 5, doubtfulTries: 2, progressAt: now)
        let answer = RetryPlan.decide(.shortBody, policy: RetryPolicy(), state: state, now: now) { 0.5 }
        #expect(answer.decision == .retry(after: .seconds(64), counted: .transient))
        #expect(answer.state.transientTries == 6)
        #expect(answer.state.doubtfulTries == 2)
    }

    @Test(arguments: [.shortBody, status(500), status(429, retryAfter: .seconds(5))] as [TransferCause])
    func `without progress it ends after the time limit`(cause: TransferCause) {
        let day = Duration.seconds(86_400)
        func reason(_ age: Duration, _ policy: RetryPolicy) -> FailureReason? {
            let state = RetryState(attempts: 3, progressAt: now)
            return Self.reason(
                RetryPlan.decide(cause, policy: policy, state: state, now: now + age) { 0 }.decision
            )
        }
        #expect(reason(day * 14 - .milliseconds(1), RetryPolicy()) == nil)
        #expect(reason(day * 14, RetryPolicy()) == .gaveUp)
        #expect(reason(.seconds(3_600), RetryPolicy(noProgress: .seconds(3_600))) == .gaveUp)
        #expect(reason(day * 1_000, RetryPolicy(noProgress: nil)) == nil)
        #expect(reason(day * -1, RetryPolicy()) == nil)
    }

    @Test func `a full disk may stay full`() {
        let answer = RetryPlan.decide(
            .local(errno: 28, path: "/x"),
            policy: RetryPolicy(attempts: 1),
            state: Self.fresh,
            now: now + .seconds(86_400 * 100)
        ) { 0 }
        #expect(answer.decision == .wait(.disk, after: .seconds(5)))
    }

    // MARK: words

    @Test(
        arguments: [
            (status(404), "h answered 404 (not found)"), (status(418), "h answered 418"),
            (
                .status(429, retryAfter: .seconds(86_400), hadBytes: false, linkMayExpire: false),
                "h answered 429 (too many requests), and asks to wait 1d 00h"
            ),
            (
                .status(503, retryAfter: .zero, hadBytes: false, linkMayExpire: false),
                "h answered 503 (service unavailable)"
            ),
            (
                .hostPaused("g:80", rest: .seconds(9)),
                "h redirects to g:80, which is left alone for a while"
            ),
            (.transport(code: 6, detail: "", handshakeAlert: false), "the name h could not be resolved"),
            (
                .transport(code: 56, detail: "reset\u{1B}[2J", handshakeAlert: false),
                "the connection to h broke: reset\\u{1B}[2J"
            ),
            (code(12_345), "the transfer from h failed (libcurl code 12345)"),
            (
                .badResponse("the server answered 204, which has no body"),
                "h: the server answered 204, which has no body"
            ),
            (.local(errno: 28, path: "/a/b"), "/a/b: no space left on the device"),
            (.local(errno: 999, path: "/a"), "/a: error 999"), (.exists("/a"), "/a exists already"),
            (.policy("plain http to h is refused"), "plain http to h is refused"),
        ] as [(TransferCause, String)]
    )
    func `a cause is told in a sentence`(cause: TransferCause, sentence: String) {
        #expect(RetryPlan.message(cause, host: "h") == sentence)
    }

    @Test func `every code and status has words`() {
        for code in Int32(-1)...110 {
            for alert in [true, false] {
                let sentence = RetryPlan.message(Self.code(code, alert: alert), host: "example.org")
                #expect(sentence.count > 10)
                #expect(!sentence.hasSuffix("."))
            }
        }
        for status in 0...700 {
            #expect(RetryPlan.message(Self.status(status), host: "example.org").contains("\(status)"))
        }
        for cause in [.shortBody, .webPage, .changed, .tooLarge, .tlsTruncated] as [TransferCause] {
            #expect(RetryPlan.message(cause, host: "example.org").count > 10)
        }
    }
}
