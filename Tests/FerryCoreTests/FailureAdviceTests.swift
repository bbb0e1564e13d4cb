import FerryCore
import Testing

/// Every failure ends with advice, and with one that can be followed.
@Suite struct FailureAdviceTests {
    /// Every way in which a transfer can end: all statuses and codes, and each of the other causes.
    private static let causes: [TransferCause] =
        (100...599).flatMap { status in
            [(false, false), (true, false), (false, true)].map { hadBytes, expires in
                TransferCause.status(status, retryAfter: nil, hadBytes: hadBytes, linkMayExpire: expires)
            }
        }
        + [429, 503, 413].map {
            .status($0, retryAfter: .seconds(1), hadBytes: false, linkMayExpire: false)
        }
        + (0...110).flatMap { code in
            [false, true].map { .transport(code: code, detail: "x", handshakeAlert: $0) }
        }
        + (-1...133).map { .local(errno: $0, path: "/data/x") }
        + FailureReason.allCases.map { .refused($0, "it did not work", advice: nil) }
        + [
            .shortBody, .badResponse("x"), .webPage, .changed, .tooLarge, .checksum("sha-256"), .tlsTruncated,
            .exists("/data/x"), .policy("x"), .redirect("x"), .busy("x"),
            .refused(.server, "x", advice: "look on the server"),
        ]

    /// A policy under which every cause ends at once.
    private static let impatient = RetryPolicy(attempts: 1, doubtfulAttempts: 1, noProgress: .zero)

    @Test func `every cause that ends a job has a sentence and advice`() {
        var reasons: Set<FailureReason> = []
        for cause in Self.causes {
            let (decision, _) = RetryPlan.decide(
                cause,
                policy: Self.impatient,
                state: RetryState(attempts: 1, progressAt: now),
                now: now,
                random: { 0.5 }
            )
            guard case .fail(let reason, let given) = decision else { continue }
            reasons.insert(reason)
            self.check(given ?? FailureAdvice.text(cause, reason: reason), "\(cause)")
            self.check(RetryPlan.message(cause, host: "example.org:443"), "\(cause)")
        }
        #expect(reasons == Set(FailureReason.allCases))
    }

    @Test(arguments: FailureReason.allCases)
    func `every reason has advice of its own`(reason: FailureReason) {
        self.check(FailureAdvice.text(reason), reason.rawValue)
        #expect(FailureReason.allCases.count { FailureAdvice.text($0) == FailureAdvice.text(reason) } == 1)
    }

    private func check(_ text: String, _ context: String) {
        #expect(!text.isEmpty, "\(context)")
        #expect(!text.hasSuffix("."), "\(context): \(text)")
        #expect(FileName.display(text) == text, "\(context): \(text)")
    }

    @Test(arguments: [
        (
            TransferCause.status(403, retryAfter: nil, hadBytes: true, linkMayExpire: false),
            ["set JOB --url", "--renew"]
        ),
        (.status(401, retryAfter: nil, hadBytes: false, linkMayExpire: false), ["-H"]),
        (.status(407, retryAfter: nil, hadBytes: false, linkMayExpire: false), ["proxy"]),
        (.status(404, retryAfter: nil, hadBytes: false, linkMayExpire: false), ["--url"]),
        (.transport(code: 60, detail: "", handshakeAlert: false), ["clock", "--cacert"]),
        (.transport(code: 6, detail: "", handshakeAlert: false), ["name"]),
        (.local(errno: 13, path: "/x"), ["writable", "retry JOB"]),
        (.local(errno: 5, path: "/x"), ["kernel"]),
        (.tooLarge, ["--size-limit"]),
        (.webPage, ["browser"]),
        (.refused(.server, "x", advice: "look there"), ["look there"]),
    ])
    func `the advice names what helps`(cause: TransferCause, parts: [String]) {
        let (decision, _) = RetryPlan.decide(
            cause,
            policy: Self.impatient,
            state: RetryState(attempts: 1, progressAt: now),
            now: now,
            random: { 0.5 }
        )
        guard case .fail(let reason, let given) = decision else {
            Issue.record("\(decision)")
            return
        }
        let text = given ?? FailureAdvice.text(cause, reason: reason)
        for part in parts { #expect(text.contains(part), "\(text)") }
    }

    @Test(arguments: [
        ("ferry retry JOB", "ferry retry 7"), ("ferry retry JOB; or JOB", "ferry retry 7; or 7"),
        ("say: ferry set JOB --after none", "say: ferry set 7 --after none"), ("JOBS stay", "JOBS stay"),
        ("", ""),
    ])
    func `the job's number stands where it belongs`(advice: String, named: String) {
        #expect(FailureAdvice.naming(JobID(rawValue: 7), advice) == named)
    }
}
