import FerryCore
import FerryStore
import Testing

@testable import FerryEngine

/// Which hosts are looked at, and when; the order of jobs is ``SchedulerTests``' matter.
@Suite struct ClaimQueueTests {
    private static let start = Timestamp(milliseconds: 0)

    private static func head(_ id: Int64, _ host: String, _ priority: Int = 0) -> QueuedHead {
        QueuedHead(id: JobID(rawValue: id), priority: priority, host: host)
    }

    private static func queue(perHost: Int = 6, _ hosts: [String: ClosedRange<Int64>]) -> ClaimQueue {
        var queue = ClaimQueue(perHost: { _ in perHost }, random: { 0.5 })
        for (host, ids) in hosts {
            queue.refill(host, ids.map { Self.head($0, host) }, isCut: false, at: Self.start)
        }
        return queue
    }

    private static func claim(_ queue: inout ClaimQueue, _ count: Int, at seconds: Int = 0) -> [Int64] {
        queue.claim(count, at: Self.start + .seconds(seconds)).map(\.id.rawValue)
    }

    @Test func `a paused host is passed over until its time has come`() {
        var queue = Self.queue(["a": 1...9, "b": 10...19])
        let claims = Self.claim(&queue, 2)
        #expect(claims == [1, 10])
        let isPaused = queue.end(JobID(rawValue: 1), host: "a", .pause(.seconds(60)), at: Self.start)
        let pauseEnd = queue.nextOpening
        let others = Self.claim(&queue, 3, at: 59)
        let first = Self.claim(&queue, 3, at: 60)
        let whileProbed = queue.nextOpening
        let isOver = queue.answered(JobID(rawValue: 2), host: "a", at: Self.start + .seconds(60))
        let next = queue.nextOpening
        let second = Self.claim(&queue, 3, at: 61)
        #expect(isPaused && isOver)
        #expect(pauseEnd == Self.start + .seconds(60))
        #expect(others == [11, 12, 13] && first == [2, 14, 15] && second == [3])
        #expect(whileProbed == nil, "one job is on its way to see")
        #expect(next == Self.start + .milliseconds(60_500))
    }

    @Test func `jobs that are held are passed over, and not lost`() {
        var queue = Self.queue(["a": 1...3])
        let claims = queue.claim(2, at: Self.start) { $0.rawValue != 2 }
        #expect(claims.map(\.id.rawValue) == [2])
        let free = Self.claim(&queue, 5)
        #expect(free == [1, 3])
    }

    @Test func `a host's queue is read again when its known jobs have run out`() {
        var queue = ClaimQueue(perHost: { _ in 6 })
        queue.refill("a", [Self.head(1, "a"), Self.head(2, "a")], isCut: true, at: Self.start)
        let first = Self.claim(&queue, 1)
        #expect(first == [1])
        #expect(queue.wanting.isEmpty)
        let second = Self.claim(&queue, 1)
        #expect(second == [2])
        #expect(queue.wanting == ["a"])
        queue.isRead("a")
        // What was claimed may not be committed yet, and is read once more.
        queue.refill("a", [Self.head(2, "a"), Self.head(3, "a")], isCut: false, at: Self.start)
        let rest = Self.claim(&queue, 5)
        #expect(rest == [3])
        #expect(queue.wanting.isEmpty)
    }

    @Test func `hosts that only fail get one start of many`() {
        var hosts: [String: ClosedRange<Int64>] = ["z": 1_000...1_119]
        for number in 0..<20 { hosts["dead\(number)"] = Int64(number * 10 + 1)...Int64(number * 10 + 9) }
        var queue = Self.queue(perHost: 200, hosts)
        for id in Self.claim(&queue, 20) {
            queue.end(JobID(rawValue: id), host: "dead\((id - 1) / 10)", .unreachable, at: Self.start)
        }
        func dead(_ claims: [ClaimQueue.Claim]) -> Int { claims.count { $0.host.hasPrefix("dead") } }
        let first = queue.claim(16, at: Self.start)
        let second = queue.claim(16, at: Self.start)
        let third = queue.claim(16, at: Self.start)
        #expect([first, second, third].map(dead) == [1, 0, 1], "one of 33")
        let later = [1, 2, 2].map { dead(queue.claim(1, at: Self.start + .seconds($0))) }
        #expect(later == [1, 1, 0], "one a second, where little starts")
    }

    @Test func `suspects that nobody is beside have three quarters of the places`() {
        var hosts: [String: ClosedRange<Int64>] = [:]
        for number in 0..<20 { hosts["dead\(number)"] = Int64(number * 10 + 1)...Int64(number * 10 + 9) }
        var queue = Self.queue(hosts)
        for id in Self.claim(&queue, 20) {
            queue.end(JobID(rawValue: id), host: "dead\((id - 1) / 10)", .silent, at: Self.start)
        }
        let most = Self.claim(&queue, 16)
        let rest = Self.claim(&queue, 4)
        #expect(most.count == 12 && rest.isEmpty)
        let left = queue.rivals(9, places: 16)
        #expect(left.others.isEmpty && left.suspects.count == 8)
        queue.refill("z", [Self.head(900, "z")], isCut: false, at: Self.start)
        let rivals = queue.rivals(9, places: 16)
        #expect(rivals.others == [SilencePlan.Rival(host: "z", priority: 0)] && rivals.suspects.count == 8)
        let new = Self.claim(&queue, 4)
        #expect(new == [900])
    }

    @Test func `of suspects the least suspicious goes first`() {
        var queue = Self.queue(["a": 1...9, "b": 11...19])
        let first = Self.claim(&queue, 2)
        queue.end(JobID(rawValue: 1), host: "a", .silent, at: Self.start)
        queue.end(JobID(rawValue: 11), host: "b", .silent, at: Self.start)
        let second = Self.claim(&queue, 16)
        queue.end(JobID(rawValue: 2), host: "a", .silent, at: Self.start)
        queue.end(JobID(rawValue: 12), host: "b", .nothing, at: Self.start)
        let third = Self.claim(&queue, 1)
        #expect(first == [1, 11] && second == [2, 12] && third == [13])
    }

    @Test func `a limit that changes holds for the next claim`() {
        var queue = Self.queue(perHost: 1, ["a": 1...9])
        let one = Self.claim(&queue, 9)
        #expect(one == [1])
        queue.set(perHost: { _ in 3 }, at: Self.start)
        let two = Self.claim(&queue, 9)
        #expect(two == [2, 3])
        queue.set(perHost: { _ in 1 }, at: Self.start)
        queue.end(JobID(rawValue: 1), host: "a", .answered, at: Self.start)
        let none = Self.claim(&queue, 9)
        #expect(none == [])
    }

    @Test func `many hosts are served in turn, and memory is given back`() {
        var hosts: [String: ClosedRange<Int64>] = [:]
        for number in 0..<500 { hosts["h\(number)"] = Int64(number * 10)...Int64(number * 10 + 9) }
        var queue = Self.queue(hosts)
        var claimed: Set<Int64> = []
        while true {
            let claims = queue.claim(16, at: Self.start)
            guard !claims.isEmpty else { break }
            for claim in claims {
                #expect(claimed.insert(claim.id.rawValue).inserted)
                _ = queue.answered(claim.id, host: claim.host, at: Self.start)
                queue.end(claim.id, host: claim.host, .answered, at: Self.start)
            }
        }
        #expect(claimed.count == 5_000)
        #expect(queue.hostCount == 0)
    }

    @Test func `a heap gives the least first`() {
        var heap = Heap<Int>()
        var random = SystemRandomNumberGenerator()
        let numbers = (0..<1_000).map { _ in Int.random(in: 0..<500, using: &random) }
        for number in numbers { heap.insert(number) }
        var sorted: [Int] = []
        while let number = heap.removeFirst() { sorted.append(number) }
        #expect(sorted == numbers.sorted())
    }
}
