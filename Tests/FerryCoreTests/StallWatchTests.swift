import FerryCore
import Testing

/// When an exchange counts as stalled.
@Suite struct StallWatchTests {
    private static let limit = Duration.seconds(60)

    /// Looks once a second and gives the second in which it was called stalled, with the reason.
    private func run(
        limit: Duration = Self.limit,
        for seconds: Int,
        _ sight: (Int) -> StallWatch.Sight?
    ) -> (second: Int, stall: StallWatch.Stall)? {
        var watch = StallWatch(limit: limit, now: .zero)
        for second in 0...seconds {
            if let sight = sight(second) {
                if let stall = watch.look(sight, at: .seconds(second)) { return (second, stall) }
            } else {
                watch.hold(at: .seconds(second))
            }
        }
        return nil
    }

    @Test(arguments: ExchangePhase.allCases)
    func `silence ends every phase after the limit`(phase: ExchangePhase) throws {
        let end = try #require(self.run(for: 600) { _ in .init(phase: phase, bytes: 7) })
        #expect(end.second == 60)
        #expect(end.stall == .silence(.seconds(60)))
        #expect(end.stall.text == "no byte for 1m 00s")
    }

    @Test func `the answer to a body may take five times as long`() throws {
        let end = try #require(self.run(for: 600) { _ in .init(phase: .answer, bytes: 7, hasBody: true) })
        #expect(end.second == 300)
    }

    @Test func `without a limit silence lasts for ever`() {
        #expect(self.run(limit: .zero, for: 100_000) { _ in .init(phase: .body, bytes: 7) } == nil)
    }

    /// Bytes a second, or one byte in so many seconds, and when that ends.
    @Test(arguments: [
        (10, 1, nil), (9, 1, 300), (1, 1, 300), (1, 50, 300), (1, 59, 300), (1, 61, 60), (600, 59, nil),
        (599, 59, 300), (500, 59, 300), (1_000_000, 1, nil),
    ])
    func `a trickle below ten bytes a second ends after five limits`(bytes: Int64, every: Int, end: Int?) {
        for phase in [ExchangePhase.body, .sending] {
            let stalled = self.run(for: 2_000) { .init(phase: phase, bytes: Int64($0 / every) * bytes) }
            #expect(stalled?.second == end)
            if end == 300 { #expect(stalled?.stall == .trickle(.seconds(300))) }
        }
    }

    @Test func `a fast body that becomes a trickle ends within six limits`() throws {
        let end = try #require(
            self.run(for: 2_000) { .init(phase: .body, bytes: Int64(min($0, 100)) * 1_000_000 + Int64($0)) }
        )
        #expect((400...460).contains(end.second))
        guard case .trickle = end.stall else { throw Problem(text: "\(end)") }
    }

    private struct Problem: Error { let text: String }

    @Test func `what is held by ourselves is never stalled`() {
        #expect(self.run(for: 10_000) { $0 < 10 ? .init(phase: .body, bytes: 7) : nil } == nil)
        // Held nine seconds of ten, and a byte a second in the tenth.
        #expect(
            self.run(for: 10_000) { $0 % 10 == 9 ? .init(phase: .body, bytes: Int64($0 / 10)) : nil } == nil
        )
    }

    @Test func `after a hold the limit counts anew`() throws {
        let end = try #require(self.run(for: 500) { (50..<100) ~= $0 ? nil : .init(phase: .body, bytes: 7) })
        #expect(end.second == 99 + 60)
    }

    @Test func `the next phase is a sign of life`() {
        let phases = ExchangePhase.allCases
        #expect(
            self.run(for: 59 * phases.count) { second in
                .init(phase: phases[min(second / 59, phases.count - 1)], bytes: 0)
            } == nil
        )
    }

    @Test func `bytes that went back are none`() throws {
        // What is queued for the peer counts as not yet sent: more of it is no sign of life.
        let end = try #require(self.run(for: 500) { .init(phase: .sending, bytes: 100 - Int64($0)) })
        #expect(end.second == 60)
    }

    @Test func `a connection that slept has ten seconds, and with the first byte all of its time`() throws {
        var watch = StallWatch(limit: Self.limit, now: .zero)
        #expect(watch.look(.init(phase: .body, bytes: 7), at: .zero) == nil)
        watch.slept(at: .seconds(5))
        #expect(watch.isDoubtfulSinceSleep)
        #expect(watch.look(.init(phase: .body, bytes: 7), at: .seconds(14)) == nil)
        var silent = watch
        #expect(silent.look(.init(phase: .body, bytes: 7), at: .seconds(15)) == .silence(.seconds(10)))
        #expect(watch.look(.init(phase: .body, bytes: 8), at: .seconds(14)) == nil)
        #expect(!watch.isDoubtfulSinceSleep)
        #expect(watch.look(.init(phase: .body, bytes: 8), at: .seconds(73)) == nil)
        #expect(watch.look(.init(phase: .body, bytes: 8), at: .seconds(74)) != nil)
    }

    @Test func `looks are as frequent as the limit needs`() {
        for (limit, interval) in [(60_000, 1_000), (0, 1_000), (1_000, 125), (100, 20)] {
            let watch = StallWatch(limit: .milliseconds(limit), now: .zero)
            #expect(watch.interval == .milliseconds(interval))
        }
    }
}

/// The machine's sleep, seen by its clocks.
@Suite struct SleepWatchTests {
    @Test func `a sleep is told once, a short one not at all`() {
        var watch = SleepWatch(slept: .seconds(100))
        #expect(watch.look(slept: .seconds(100)) == nil)
        #expect(watch.look(slept: .seconds(104)) == nil)
        #expect(watch.look(slept: .seconds(3_700)) == .seconds(3_600))
        #expect(watch.look(slept: .seconds(3_700)) == nil)
    }
}
