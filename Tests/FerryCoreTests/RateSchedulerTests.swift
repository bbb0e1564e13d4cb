import Testing

@testable import FerryCore

/// Buckets and turns, over long simulated times.
@Suite(.timeLimit(.minutes(5))) struct RateSchedulerTests {
    private static let second: Int64 = 1_000_000_000

    // MARK: One bucket

    @Test(arguments: [1, 1_000, 4_096, 1_000_000, 100_000_000, 1_000_000_000, 1 << 40] as [Int64])
    func `a bucket lets pass its rate, exactly`(rate: Int64) {
        var bucket = TokenBucket(rate: rate, at: 0)
        bucket.take(Int(bucket.burst))
        #expect(!bucket.isOpen)
        var passed: Int64 = 0
        var now: Int64 = 0
        let piece = max(1, rate / 64)
        while now < 100 * Self.second {
            now = max(now + 1, bucket.readyAt)
            bucket.refill(at: now)
            while bucket.isOpen {
                bucket.take(Int(piece))
                passed += piece
            }
        }
        let due = Double(rate) * Double(now) / 1e9
        #expect(abs(Double(passed) - due) <= Double(piece) + 1)
    }

    @Test func `a bucket keeps a burst and no more`() {
        var bucket = TokenBucket(rate: 1_000_000, at: 0)
        bucket.refill(at: 3_600 * Self.second)
        bucket.take(49_999)
        #expect(bucket.isOpen)
        bucket.take(1)
        #expect(!bucket.isOpen)
        bucket.take(-5_000_000)
        bucket.take(50_000)
        #expect(!bucket.isOpen)
        #expect(TokenBucket(rate: 1, at: 0).burst == 16_384)
        #expect(TokenBucket(rate: .max, at: 0).rate == TokenBucket.rateLimit)
        #expect(TokenBucket(rate: 0, at: 0).rate == 1)
    }

    @Test func `a clock that stands still or goes back gives nothing`() {
        var bucket = TokenBucket(rate: 1_000, at: 5)
        bucket.take(16_384)
        bucket.refill(at: 5)
        bucket.refill(at: 0)
        #expect(!bucket.isOpen)
        #expect(bucket.readyAt > 5)
    }

    @Test func `what is owed at a high rate is not waited for at a low one`() {
        var bucket = TokenBucket(rate: 100_000_000, at: 0)
        bucket.take(10_000_000 + 262_144)
        bucket.setRate(4_096, at: 0)
        #expect(bucket.readyAt <= Self.second / 3)
        bucket.setRate(1_000_000_000, at: 0)
        #expect(bucket.readyAt <= Self.second / 100)
    }

    // MARK: Many transfers

    /// Transfers that always have more, in pieces as libcurl hands them over, served by a loop that is late at times.
    private struct Simulation {
        typealias Scheduler = RateScheduler<Int>

        var scheduler = Scheduler()
        var now: Int64 = 0
        /// Bytes of each transfer.
        var taken: [Int]
        /// Bytes of all transfers in each tenth of a second.
        var tenths: [Int]
        private let pieces: [Int]
        private let uploads: Set<Int>
        private var generator: UInt64 = 88_172_645_463_325_252
        /// The machine stands still for up to 300 milliseconds each two seconds.
        var isBusy = false
        private var busyAt: Int64 = 0

        init(_ traits: [Scheduler.Traits], piece: (Int) -> Int, seconds: Int) {
            self.pieces = traits.indices.map(piece)
            self.taken = traits.map { _ in 0 }
            self.tenths = [Int](repeating: 0, count: seconds * 10 + 1)
            self.uploads = Set(traits.indices.filter { traits[$0].isUpload })
            for (id, traits) in traits.enumerated() { self.scheduler.enter(id, traits) }
        }

        /// Xorshift, for delays.
        private mutating func random(below limit: Int64) -> Int64 {
            self.generator ^= self.generator << 13
            self.generator ^= self.generator >> 7
            self.generator ^= self.generator << 17
            return Int64(self.generator % UInt64(limit))
        }

        private mutating func serve(_ id: Int) {
            while true {
                let piece = self.pieces[id]
                var count = piece
                if self.uploads.contains(id) {
                    count = self.scheduler.take(upTo: piece, of: id, at: self.now)
                } else if !self.scheduler.take(piece, of: id, at: self.now) {
                    count = 0
                }
                guard count > 0 else { return }
                self.taken[id] += count
                self.tenths[Int(self.now / 100_000_000)] += count
            }
        }

        /// Lets all transfers compete until a time, in seconds.
        mutating func run(until end: Int) {
            if self.now == 0 {
                for id in self.taken.indices where self.scheduler.share(of: id) != nil { self.serve(id) }
            }
            while true {
                let (granted, next) = self.scheduler.grant(at: self.now)
                for id in granted { self.serve(id) }
                if !granted.isEmpty { continue }
                guard let next else { return }
                // Milliseconds, as poll(2) counts, and sometimes the machine has other things to do.
                var late = self.random(below: 20) == 0 ? self.random(below: 20_000_000) : 0
                if self.isBusy, self.now >= self.busyAt {
                    late = self.random(below: 300_000_000)
                    self.busyAt = self.now + 2 * RateSchedulerTests.second
                }
                let later = (max(next, self.now + 1) + 999_999) / 1_000_000 * 1_000_000 + late
                guard later < Int64(end) * RateSchedulerTests.second else { return }
                self.now = later
            }
        }

        /// The most bytes in one second, whenever it begins.
        var worstSecond: Int {
            self.tenths.indices.dropLast(9).map { self.tenths[$0..<$0 + 10].reduce(0, +) }.max() ?? 0
        }
    }

    struct Load: Sendable, CustomTestStringConvertible {
        let rate: Int
        let count: Int
        let isUpload: Bool
        /// Enough of them to tell, and not more pieces than a test has time for.
        var seconds: Int {
            self.rate > 500_000_000 ? 1 : self.rate > 50_000_000 ? 4 : self.rate > 5_000_000 ? 10 : 30
        }
        /// The most that one may be ahead: two turns.
        var lead: Int { 2 * max(16_384, min(262_144, self.rate / 5 / self.count)) }
        var testDescription: String { "\(self.rate) B/s, \(self.count) \(self.isUpload ? "up" : "down")" }
    }

    private static let loads: [Load] = [4_096, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000]
        .flatMap { rate in
            (rate > 500_000_000 ? [16] : [1, 2, 16, 64]).flatMap { count in
                [false, true].map { Load(rate: rate, count: count, isUpload: $0) }
            }
        }

    @Test(arguments: loads)
    func `a rate is kept, in each second and on the whole, with equal shares`(load: Load) {
        let seconds = load.seconds
        let traits = RateScheduler<Int>.Traits(isUpload: load.isUpload)
        var simulation = Simulation(
            [RateScheduler<Int>.Traits](repeating: traits, count: load.count),
            piece: { _ in load.isUpload ? 262_144 : load.rate < 100_000 ? 1_024 : 16_384 },
            seconds: seconds
        )
        simulation.scheduler.set(RateLimits(all: RateSet(total: Int64(load.rate))), at: 0)
        simulation.run(until: seconds)
        let total = simulation.taken.reduce(0, +)
        let due = load.rate * seconds
        // The burst that a bucket begins with is no error of its rate.
        #expect(abs(total - due) <= due * 3 / 100 + load.rate / 20 + 2 * 16_384, "\(total) of \(due)")
        #expect(simulation.worstSecond <= load.rate * 12 / 10 + 65_536, "\(simulation.worstSecond)")
        let least = simulation.taken.min() ?? 0
        let most = simulation.taken.max() ?? 0
        #expect(most - least <= load.lead, "\(most) and \(least)")
    }

    @Test(arguments: [1_000_000, 100_000_000], [1, 16])
    func `a busy machine changes no rate`(rate: Int, count: Int) {
        let traits = [RateScheduler<Int>.Traits](repeating: .init(isUpload: false), count: count)
        var simulation = Simulation(traits, piece: { _ in 16_384 }, seconds: 20)
        simulation.isBusy = true
        simulation.scheduler.set(RateLimits(all: RateSet(total: Int64(rate))), at: 0)
        simulation.run(until: 20)
        let total = simulation.taken.reduce(0, +)
        #expect(abs(total - rate * 20) <= rate * 20 * 3 / 100, "\(total)")
        #expect(simulation.worstSecond <= rate * 12 / 10 + 65_536, "\(simulation.worstSecond)")
    }

    @Test func `an upload that comes late has no more than its burst and a twentieth of a second`() {
        var scheduler = RateScheduler<Int>()
        scheduler.set(RateLimits(all: RateSet(up: 1_000_000)), at: 0)
        scheduler.enter(1, .init(isUpload: true))
        var taken = 0
        while true {
            let count = scheduler.take(upTo: 262_144, of: 1, at: Self.second)
            guard count > 0 else { break }
            taken += count
        }
        #expect((50_000...100_000).contains(taken))
    }

    @Test func `pieces of different sizes change no share`() {
        let traits = [RateScheduler<Int>.Traits](repeating: .init(isUpload: false), count: 4)
        var simulation = Simulation(traits, piece: { [1_000, 16_384, 1_448, 9_000][$0] }, seconds: 30)
        simulation.scheduler.set(RateLimits(all: RateSet(down: 1_000_000)), at: 0)
        simulation.run(until: 30)
        for taken in simulation.taken { #expect(abs(taken - 7_500_000) < 225_000, "\(simulation.taken)") }
    }

    @Test func `each limit that fits holds`() {
        let traits: [RateScheduler<Int>.Traits] = [
            .init(isUpload: false, hosts: ["a:80"], job: JobID(rawValue: 1)),
            .init(isUpload: false, hosts: ["a:81"], job: JobID(rawValue: 2)),
            .init(isUpload: false, hosts: ["b:80"], job: JobID(rawValue: 3)),
            .init(isUpload: true, hosts: ["c:80", "b:80"]),
            .init(isUpload: true, hosts: ["ab:80"]),
        ]
        var simulation = Simulation(traits, piece: { _ in 4_096 }, seconds: 20)
        simulation.scheduler.set(
            RateLimits(
                all: RateSet(total: 1_000_000, up: 400_000),
                hosts: ["a": RateSet(down: 200_000), "b:80": RateSet(up: 100_000)]
            ),
            at: 0
        )
        simulation.scheduler.set(50_000, of: JobID(rawValue: 2), at: 0)
        simulation.run(until: 20)
        let due = [3_000_000, 1_000_000, 8_000_000, 2_000_000, 6_000_000]
        for (taken, due) in zip(simulation.taken, due) {
            #expect(abs(taken - due) <= due * 5 / 100, "\(simulation.taken)")
        }
    }

    @Test func `a limit may change, come and go while transfers run`() {
        let traits = [RateScheduler<Int>.Traits](repeating: .init(isUpload: false), count: 3)
        var simulation = Simulation(traits, piece: { _ in 16_384 }, seconds: 40)
        simulation.scheduler.set(RateLimits(all: RateSet(total: 10_000_000)), at: 0)
        simulation.run(until: 10)
        let before = simulation.taken.reduce(0, +)
        #expect(abs(before - 100_000_000) < 3_000_000)
        simulation.scheduler.set(RateLimits(all: RateSet(total: 100_000)), at: simulation.now)
        simulation.run(until: 40)
        let after = simulation.taken.reduce(0, +) - before
        #expect(abs(after - 3_000_000) < 130_000)
        #expect(simulation.scheduler.isActive)
        simulation.scheduler.set(RateLimits(), at: simulation.now)
        #expect(simulation.scheduler.isActive, "some wait")
        let answer1 = simulation.scheduler.grant(at: simulation.now).granted
        #expect(answer1.count == 3)
        #expect(!simulation.scheduler.isActive)
        let answer2 = simulation.scheduler.take(1 << 40, of: 0, at: simulation.now)
        #expect(answer2)
    }

    @Test func `one who comes later has missed nothing`() {
        let traits = [RateScheduler<Int>.Traits](repeating: .init(isUpload: false), count: 2)
        var simulation = Simulation(traits, piece: { _ in 16_384 }, seconds: 30)
        simulation.scheduler.leave(1)
        simulation.scheduler.set(RateLimits(all: RateSet(total: 1_000_000)), at: 0)
        simulation.run(until: 1)
        #expect(simulation.scheduler.share(of: 0) == 1_000_000)
        let before = simulation.taken
        simulation.scheduler.enter(1, traits[1])
        #expect(simulation.scheduler.share(of: 0) == 500_000)
        let answer3 = simulation.scheduler.take(16_384, of: 1, at: simulation.now)
        #expect(!answer3, "another one waits already")
        #expect(simulation.scheduler.isWaiting(1))
        simulation.run(until: 11)
        let gained = zip(simulation.taken, before).map(-)
        #expect(abs(gained[0] - gained[1]) < 300_000, "\(gained)")
    }

    @Test func `what is given back is used first, or flows back`() {
        var scheduler = RateScheduler<Int>()
        scheduler.set(RateLimits(all: RateSet(total: 1_000)), at: 0)
        scheduler.enter(1, .init(isUpload: false))
        let answer4 = scheduler.take(16_384, of: 1, at: 0)
        #expect(answer4)
        scheduler.giveBack(16_384, of: 1)
        let answer5 = scheduler.take(16_384, of: 1, at: 0)
        #expect(answer5)
        let answer6 = scheduler.take(1, of: 1, at: 0)
        #expect(!answer6)
        let answer7 = scheduler.grant(at: 0).granted
        #expect(answer7.isEmpty)
        scheduler.leave(1)
        let answer8 = scheduler.grant(at: 0)
        #expect(answer8.next == nil)
        scheduler.enter(2, .init(isUpload: true))
        let answer9 = scheduler.take(upTo: 1_000, of: 2, at: Self.second)
        #expect(answer9 == 1_000)
        scheduler.giveBack(1_000, of: 2)
        scheduler.leave(2)
        scheduler.enter(3, .init(isUpload: false))
        let answer10 = scheduler.take(1_000, of: 3, at: Self.second)
        #expect(answer10)
        let answer11 = scheduler.take(1, of: 3, at: Self.second)
        #expect(!answer11)
    }

    @Test func `without limits nobody waits`() {
        var scheduler = RateScheduler<Int>()
        #expect(!scheduler.isActive)
        scheduler.enter(1, .init(isUpload: false))
        #expect(scheduler.share(of: 1) == nil)
        let answer12 = scheduler.take(.max, of: 1, at: 0)
        #expect(answer12)
        let answer13 = scheduler.take(upTo: 5, of: 9, at: 0)
        #expect(answer13 == 5)
        scheduler.set(RateLimits(all: RateSet(up: 1)), at: 0)
        #expect(scheduler.isActive)
        #expect(scheduler.share(of: 1) == nil)
        let answer14 = scheduler.take(.max, of: 1, at: 0)
        #expect(answer14)
    }
}
