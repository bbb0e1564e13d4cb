import FerryCore
import FerryStore
import Testing

@testable import FerryEngine

/// Who gives a place up for lack of a connection, and to whom.
@Suite struct SilencePlanTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// `a1:500` is job 1 of host `a`, silent for 500 ms; `+5` a priority, `?1` a suspect host that was silent once.
        let holders: String
        /// `b` or `b+5`: hosts that wait.
        var rivals = ""
        var suspects = ""
        var share = 1
        let yielding: [Int64]
        /// Milliseconds to the next look.
        var next: Int?
    }

    @Test(arguments: [
        Case(testDescription: "nobody waits", holders: "a1:9000 b2:9000", yielding: []),
        Case(testDescription: "another host waits", holders: "a1:1000", rivals: "b", yielding: [1]),
        Case(testDescription: "not yet", holders: "a1:900", rivals: "b", yielding: [], next: 100),
        Case(testDescription: "only the same host waits", holders: "a1:9000", rivals: "a", yielding: []),
        Case(
            testDescription: "one for each that waits, the longest silent first",
            holders: "a1:2000 b2:3000 c3:1000",
            rivals: "x y",
            yielding: [2, 1]
        ),
        Case(testDescription: "a more important job stays", holders: "a1+1:9000", rivals: "b", yielding: []),
        Case(
            testDescription: "the least important gives way first",
            holders: "a1+3:9000 b2+1:1000 c3+2:5000",
            rivals: "x+5 y+2",
            yielding: [2, 3]
        ),
        Case(
            testDescription: "a suspect host keeps its share",
            holders: "a1?1:9000",
            rivals: "b",
            yielding: []
        ),
        Case(
            testDescription: "beyond the share suspects give way, those that began last",
            holders: "a1?2:9000 b2?2:2000 c3?2:5000",
            rivals: "x y z",
            yielding: [3, 2]
        ),
        Case(
            testDescription: "the second try has longer, and only other suspects end it",
            holders: "a1?1:1500",
            rivals: "x",
            suspects: "b",
            yielding: [],
            next: 500
        ),
        Case(testDescription: "that time is over", holders: "a1?1:2000", suspects: "b", yielding: [1]),
        Case(
            testDescription: "the third try has all the time",
            holders: "a1?2:29000",
            suspects: "b",
            yielding: []
        ),
        Case(
            testDescription: "each place is given away once",
            holders: "a1?1:5000 b2?1:4000",
            rivals: "x",
            suspects: "y z",
            yielding: [2, 1]
        ),
    ])
    func `places are given up`(_ item: Case) {
        let plan = SilencePlan(patience: ConnectPatience(), share: item.share)
        let verdict = plan.decide(
            item.holders.split(separator: " ").map(Self.holder),
            rivals: item.rivals.split(separator: " ").map(Self.rival),
            suspects: item.suspects.split(separator: " ").map(Self.rival)
        )
        #expect(verdict.yielding.map(\.rawValue) == item.yielding)
        #expect(verdict.next == item.next.map { .milliseconds($0) })
    }

    private static func holder(_ text: Substring) -> SilencePlan.Holder {
        let parts = text.split(separator: ":")
        let marks = parts[0].split(separator: "?")
        let names = marks[0].split(separator: "+")
        return SilencePlan.Holder(
            id: JobID(rawValue: Int64(names[0].dropFirst()) ?? 0),
            host: String(names[0].prefix(1)),
            priority: names.count > 1 ? Int(names[1]) ?? 0 : 0,
            silence: .milliseconds(Int(parts[1]) ?? 0),
            silences: marks.count > 1 ? Int(marks[1]) ?? 0 : 0,
            isSuspect: marks.count > 1
        )
    }

    private static func rival(_ text: Substring) -> SilencePlan.Rival {
        let parts = text.split(separator: "+")
        return SilencePlan.Rival(host: String(parts[0]), priority: parts.count > 1 ? Int(parts[1]) ?? 0 : 0)
    }
}

/// How much of starts and places suspects get.
@Suite struct SuspectLaneTests {
    @Test(arguments: [
        (1, true, 0), (4, true, 0), (8, true, 1), (16, true, 2), (1_000, true, 125), (1, false, 0),
        (2, false, 1),
        (4, false, 3), (16, false, 12), (1_000, false, 750),
    ])
    func `places`(places: Int, isWanted: Bool, share: Int) {
        #expect(SuspectLane.share(of: places, isWanted: isWanted) == share)
    }

    @Test func `starts`() {
        var lane = SuspectLane()
        var now = Timestamp(milliseconds: 1_000_000)
        #expect(lane.isDue(at: now, places: 16))
        lane.suspectStarted(at: now)
        for _ in 1..<SuspectLane.ratio { lane.otherStarted() }
        #expect(!lane.isDue(at: now, places: 16))
        lane.otherStarted()
        #expect(lane.isDue(at: now, places: 16))
        lane.suspectStarted(at: now)
        for (places, milliseconds) in [(1, 16_000), (4, 4_000), (16, 1_000), (1_000, 1_000)] {
            #expect(!lane.isDue(at: now + .milliseconds(milliseconds - 1), places: places))
            #expect(lane.isDue(at: now + .milliseconds(milliseconds), places: places))
        }
        now = now + (.zero - .seconds(86_400))
        #expect(lane.isDue(at: now, places: 16), "the clock was set back")
    }
}
