import FerryCore
import Testing

/// The budget of a host, told as a script: what happens, and what may start after it.
@Suite struct HostBudgetTests {
    private static let zero = Timestamp(milliseconds: 0)

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var limit = 6
        /// `+N`: so many start; `=N`: exactly so many could start now; `ok`, `503`, `429:SECONDS`, `lost`, `mute`, `stop`:
        /// how the oldest that runs ends; `head`: the oldest is answered; `@S`: that second has come; `at:S`: none may
        /// start before.
        let script: String
    }

    @Test(arguments: [
        Case(testDescription: "a new host takes all at once", script: "=6 +6 =0 ok =1 ok =2"),
        Case(testDescription: "a limit of one", limit: 1, script: "=1 +1 =0 ok =1"),
        Case(testDescription: "a pause holds for all", script: "+3 429:120 at:120 @119 at:120 @120 =1"),
        Case(testDescription: "what runs goes on", script: "+3 429:120 head ok head ok at:120"),
        Case(testDescription: "after a pause one goes first", script: "+1 429:5 @5 +1 =0 @9 =0"),
        Case(
            testDescription: "the others follow its answer, one by one",
            script: "+2 429:5 429:5 @5 +1 head @6 +1 =0 ok @7 =1"
        ),
        Case(
            testDescription: "answers give the jobs at once back slowly",
            script: "+6 429:5 429:5 429:5 429:5 429:5 429:5 @5 +1 head =0 @6 +1 @7 +1 @8 +1 @9 =0 ok =1"
        ),
        Case(
            testDescription: "a longer pause wins",
            script: "+3 429:5 429:60 429:10 at:60"
        ),
        Case(
            testDescription: "a probe that is told to wait makes all wait again",
            script: "+1 429:5 @5 +1 429:7 at:12"
        ),
        Case(
            testDescription: "an answer from before the pause proves nothing",
            script: "+2 429:5 @5 head ok =1 +1 =0"
        ),
        Case(testDescription: "one refusal is no outage", script: "+1 lost =1"),
        Case(testDescription: "many at once that fail together halve once", script: "+6 503 503 =0"),
        Case(
            testDescription: "where nothing else is answered the jobs at once grow with time",
            script: "+6 503 =0 at:10 @29 =0 @30 =1"
        ),
        Case(testDescription: "three in a row are an outage", script: "+1 lost +1 lost +1 lost at:1"),
        Case(testDescription: "three together are one too", script: "+6 lost lost lost at:1"),
        Case(
            testDescription: "an outage grows with each probe that fails",
            script: "+3 lost lost lost at:1 @1 +1 lost at:3 @3 +1 lost at:7"
        ),
        Case(
            testDescription: "late failures of the same outage do not count",
            script: "+6 lost lost lost at:1 lost lost lost at:1 @1 =1"
        ),
        Case(
            testDescription: "an answer between them begins the count anew",
            script: "+1 lost +1 lost +1 ok +1 lost +1 lost =1"
        ),
        Case(
            testDescription: "a probe that a person stops gives way to the next",
            script: "+1 429:5 @5 +1 =0 stop =1"
        ),
        Case(testDescription: "overloaded hosts get a rest too", script: "+1 503 @1 +1 503 @2 +1 503 at:3"),
        Case(
            testDescription: "after a silence one goes",
            script: "+6 mute =0 mute mute mute mute mute =1 +1 =0"
        ),
        Case(testDescription: "an answer ends the silence", script: "+1 mute +1 head =5"),
        Case(testDescription: "silence is no outage", script: "+1 mute +1 mute +1 mute +1 mute =1"),
        Case(testDescription: "a limit that falls holds at once", limit: 2, script: "+2 =0 ok =1"),
    ])
    func `what may start`(_ item: Case) throws {
        var budget = HostBudget()
        var now = Self.zero
        var next: Int64 = 1
        var running: [JobID] = []
        func leave() -> HostBudget.Leave { budget.leave(at: now, limit: item.limit) }
        func end(_ sign: HostSign) {
            let id = running.removeFirst()
            if sign == .answered { _ = budget.answered(id, limit: item.limit) }
            _ = budget.ended(id, sign, at: now, limit: item.limit) { .seconds(1 << $0) }
        }
        for step in item.script.split(separator: " ").map(String.init) {
            let number = Int64(step.drop { !$0.isNumber }) ?? 0
            switch step {
            case "ok": end(.answered)
            case "503": end(.overloaded)
            case "lost": end(.unreachable)
            case "mute": end(.silent)
            case "stop": end(.nothing)
            case "head": _ = budget.answered(running[0], limit: item.limit)
            case _ where step.hasPrefix("429:"): end(.pause(.seconds(Int64(step.dropFirst(4)) ?? 0)))
            case _ where step.hasPrefix("@"): now = Self.zero + .seconds(number)
            case _ where step.hasPrefix("at:"):
                #expect(leave() == .at(Self.zero + .seconds(number)), "\(step) of \(item.script)")
            case _ where step.hasPrefix("+"):
                for _ in 0..<number {
                    #expect(leave() == .now, "\(step) of \(item.script)")
                    let id = JobID(rawValue: next)
                    next += 1
                    running.append(id)
                    budget.began(id, at: now, random: 0)
                }
            default:
                var copy = budget
                var count: Int64 = 0
                while copy.leave(at: now, limit: item.limit) == .now {
                    copy.began(JobID(rawValue: 1_000 + count), at: now, random: 0)
                    count += 1
                }
                #expect(count == number, "\(step) of \(item.script)")
            }
        }
    }

    @Test func `doubt grows with silence and failures until an answer comes`() {
        var budget = HostBudget()
        var doubts: [Int] = []
        for (number, sign) in [HostSign.silent, .silent, .unreachable, .unreachable, .unreachable]
            .enumerated()
        {
            let id = JobID(rawValue: Int64(number))
            budget.began(id, at: Self.zero, random: 0)
            #expect(budget.unanswered == 1)
            _ = budget.ended(id, sign, at: Self.zero, limit: 6) { _ in .seconds(1) }
            doubts.append(budget.doubt)
            #expect(budget.isSuspect && !budget.isPlain)
        }
        #expect(doubts == [1, 2, 3, 4, 6])
        #expect(budget.silences == 2 && budget.trouble == .unreachable)
        budget.began(JobID(rawValue: 9), at: Self.zero + .seconds(1), random: 0)
        _ = budget.answered(JobID(rawValue: 9), limit: 6)
        #expect(budget.doubt == 0 && budget.silences == 0 && budget.unanswered == 0 && !budget.isSuspect)
    }

    @Test func `after trouble the starts are spread`() {
        var budget = HostBudget(pausedUntil: Self.zero, level: 1, trouble: .unreachable)
        var now = Self.zero
        var gaps: [Duration] = []
        for number in 1...12 {
            let id = JobID(rawValue: Int64(number))
            guard budget.leave(at: now, limit: 3) == .now else {
                Issue.record("job \(number) may not start")
                return
            }
            budget.began(id, at: now, random: 0.5)
            let endsTrouble = budget.answered(id, limit: 3)
            #expect(endsTrouble == (number == 1))
            _ = budget.ended(id, .answered, at: now, limit: 3) { _ in .zero }
            guard case .at(let next) = budget.leave(at: now, limit: 3) else { continue }
            gaps.append(next - now)
            now = next
        }
        #expect(gaps == [500, 500, 250, 125, 62].map { .milliseconds($0) })
        #expect(budget.isPlain)
    }

    @Test func `a person's wish ends the pause and not the caution`() {
        var budget = HostBudget(pausedUntil: Self.zero + .seconds(60), level: 1, trouble: .asked)
        budget.hurry()
        #expect(budget.leave(at: Self.zero, limit: 6) == .now)
        budget.began(JobID(rawValue: 1), at: Self.zero, random: 0)
        #expect(budget.leave(at: Self.zero, limit: 6) == .later)
    }

    @Test func `a clock that was set moves the pause with it`() {
        var budget = HostBudget(pausedUntil: Self.zero + .seconds(60), level: 1, trouble: .asked)
        budget.shift(by: .seconds(-31_536_000))
        #expect(budget.pausedUntil == Self.zero + .seconds(60 - 31_536_000))
        budget.shift(by: .seconds(31_536_000 * 2))
        budget.cap(.seconds(10), at: Self.zero)
        #expect(budget.pausedUntil == Self.zero + .seconds(10))
    }

    @Test(
        arguments: [
            (
                .status(429, retryAfter: .seconds(3), hadBytes: false, linkMayExpire: false),
                .pause(.seconds(3))
            ),
            (.status(503, retryAfter: .zero, hadBytes: true, linkMayExpire: false), .pause(.seconds(1))),
            (
                .status(503, retryAfter: .seconds(86_400), hadBytes: false, linkMayExpire: false),
                .pause(.seconds(21_600))
            ),
            (
                .status(413, retryAfter: .seconds(9), hadBytes: false, linkMayExpire: false),
                .pause(.seconds(9))
            ),
            (
                .status(502, retryAfter: .seconds(9), hadBytes: false, linkMayExpire: false),
                .pause(.seconds(9))
            ),
            (.status(301, retryAfter: .seconds(9), hadBytes: false, linkMayExpire: false), .answered),
            (.status(429, retryAfter: nil, hadBytes: false, linkMayExpire: false), .overloaded),
            (.status(503, retryAfter: nil, hadBytes: false, linkMayExpire: false), .overloaded),
            (.status(500, retryAfter: nil, hadBytes: false, linkMayExpire: false), .answered),
            (.status(404, retryAfter: nil, hadBytes: false, linkMayExpire: false), .answered),
            (.transport(code: 7, detail: "", handshakeAlert: false), .unreachable),
            (.transport(code: 28, detail: "", handshakeAlert: false), .unreachable),
            (.transport(code: 35, detail: "", handshakeAlert: true), .nothing),
            (.transport(code: 60, detail: "", handshakeAlert: false), .nothing),
            (.shortBody, .nothing),
            (.local(errno: 28, path: "/"), .nothing),
        ] as [(TransferCause, HostSign)]
    )
    func `what a failure tells of its host`(_ cause: TransferCause, _ sign: HostSign) {
        #expect(HostSign(cause, hasAnswered: false, policy: RetryPolicy()) == sign)
        if sign == .unreachable {
            #expect(HostSign(cause, hasAnswered: true, policy: RetryPolicy()) == .nothing)
        }
    }
}
