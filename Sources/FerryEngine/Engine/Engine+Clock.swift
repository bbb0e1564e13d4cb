import FerryCore
import FerryStore

extension Engine {
    /// A clock that differs by less was not set but is kept right, as NTP does.
    private static let tolerance = Duration.seconds(2)

    /// Says that the machine's clock may have been set.
    ///
    /// What is stored as a time and meant as a span is moved along: while the service lives, waits last as long as
    /// they were to, whatever the clock shows. A time that a person named is not moved, and counts by the new clock.
    public func clockMayHaveBeenSet() async {
        self.noticeSleep()
        guard await self.followClock() else { return }
        await self.wakeDueJobs()
    }

    /// Looks whether the clock was set since the last look; to be called before a stored time is compared with now.
    ///
    /// - Returns: Whether it was.
    @discardableResult
    func followClock() async -> Bool {
        if let following = self.following {
            await following.value
            return true
        }
        let offset = Self.offset(self.services.time)
        guard let known = self.clockOffset else {
            self.clockOffset = offset
            return false
        }
        let jump = offset - known
        guard jump > Self.tolerance || jump < .zero - Self.tolerance else { return false }
        let task = Task { await self.follow(jump, offset: offset) }
        self.following = task
        await task.value
        return true
    }

    private func follow(_ jump: Duration, offset: Duration) async {
        defer { self.following = nil }
        do {
            try await self.services.store.write { try $0.shiftWaits(byMilliseconds: jump.milliseconds) }
        } catch {
            return  // the database refuses; the next look finds the jump again
        }
        self.clockOffset = offset
        let now = self.services.time.now()
        self.queue.shift(by: jump, at: now)
        self.deadlines.shift(by: jump)
        self.publishPauses()
        self.forgetTimer()
    }

    /// How far the wall clock is ahead of the clock that nobody sets.
    ///
    /// They are read one after the other. A thread that is held up in between reads them again: else the time that it
    /// stood still would look as if somebody had set the clock.
    private static func offset(_ time: EngineTime) -> Duration {
        while true {
            let before = time.boottime()
            let now = time.now()
            if time.boottime() - before < .milliseconds(100) {
                return now - (Timestamp(milliseconds: 0) + before)
            }
        }
    }
}
