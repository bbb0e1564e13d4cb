import FerryControl
import FerryCore
import Testing

@testable import FerryCLI

@Suite struct FollowStateTests {
    private let one = JobID(rawValue: 1)
    private let two = JobID(rawValue: 2)

    @Test func `a download is told from begin to end, once`() {
        var state = FollowState(.jobs([self.one]))
        let begun = state.begin([sampleJob(1, .queued)])
        #expect(begun.outputs.isEmpty && begun.missing.isEmpty)
        #expect(!state.isFinished)

        let running = sampleJob(1, .running) { $0.phase = .connecting }
        #expect(state.apply(event(running, kind: "started")).last == .began(running))
        let progress = ProgressDocument(
            id: self.one,
            phase: .transferring,
            bytesDone: 5,
            bytesDurable: 0,
            bytesTotal: 10,
            rateBytesPerS: 1,
            etaS: 5
        )
        #expect(state.apply(.progress([progress])) == [.progress([progress])])
        #expect(state.running.map(\.bytesDone) == [5])

        let completed = sampleJob(1, .completed) { $0.path = "/f" }
        #expect(state.apply(event(completed)).last == .ended(completed))
        #expect(state.isFinished)
        #expect(state.exitStatus() == .success)
        #expect(state.update(completed).isEmpty)
        #expect(state.apply(.progress([progress])).isEmpty)
    }

    @Test func `waiting is told again only when it changes`() {
        var state = FollowState(.jobs([self.one]))
        let first = sampleJob(1, .waiting) { $0.reason = "retry" }
        let second = sampleJob(1, .waiting) { job in
            job.reason = "retry"
            job.retryAt = noon
        }
        #expect(state.update(first) == [.waits(first)])
        #expect(state.update(first).isEmpty)
        #expect(state.update(second) == [.waits(second)])
        #expect(!state.isFinished)
    }

    @Test func `events of other jobs are left out`() {
        var state = FollowState(.jobs([self.one]))
        #expect(state.apply(event(sampleJob(2, .completed))).isEmpty)
    }

    @Test func `only paused jobs left end it with status 4`() {
        var state = FollowState(.jobs([self.one, self.two]))
        _ = state.begin([sampleJob(1, .running), sampleJob(2, .completed)])
        let paused = sampleJob(1, .paused)
        #expect(state.apply(event(paused)).last == .paused(paused))
        #expect(state.isFinished)
        #expect(state.exitStatus() == .notFinished)
        #expect(state.openJobs == [self.one])
    }

    @Test func `a job that ended counts as it ended, whatever comes later`() {
        var state = FollowState(.jobs([self.one]))
        _ = state.begin([sampleJob(1, .failed)])
        #expect(state.apply(event(sampleJob(1, .queued))).count == 1)
        #expect(state.isFinished)
        #expect(state.exitStatus() == .failed)
    }

    @Test func `a new subscription tells what happened in between, and names what it lacks`() {
        var state = FollowState(.jobs([self.one, self.two]))
        _ = state.begin([sampleJob(1, .running), sampleJob(2, .running)])
        let completed = sampleJob(1, .completed)
        let again = state.begin([completed])
        #expect(again.outputs == [.ended(completed)])
        #expect(again.missing == [self.two])
        #expect(state.vanish(self.two) == [.vanished(self.two)])
        #expect(state.vanish(self.two).isEmpty)
        #expect(state.isFinished)
        #expect(state.exitStatus() == .partlyFailed)
    }

    @Test func `a removed job that had ended has not vanished`() {
        var state = FollowState(.jobs([self.one]))
        _ = state.begin([sampleJob(1, .completed)])
        let removed = EventDocument(
            seq: 2,
            time: noon,
            job: self.one,
            kind: "removed",
            state: nil,
            reason: nil,
            message: nil
        )
        #expect(state.apply(.event(removed, job: nil)) == [.event(removed)])
        #expect(state.exitStatus() == .success)
    }

    @Test func `a queue counts what ends while it is followed, and the last result of a job`() {
        var state = FollowState(.queue)
        let begun = state.begin([sampleJob(1, .failed), sampleJob(2, .queued), sampleJob(3, .running)])
        #expect(begun.outputs == [.began(sampleJob(3, .running))])
        #expect(!state.isFinished)
        #expect(state.exitStatus() == .success)
        _ = state.apply(event(sampleJob(2, .failed)))
        #expect(state.exitStatus() == .failed)
        _ = state.apply(event(sampleJob(3, .completed)))
        #expect(state.exitStatus() == .partlyFailed)
        _ = state.apply(event(sampleJob(2, .queued)))
        #expect(!state.isFinished)
        _ = state.apply(event(sampleJob(2, .completed)))
        _ = state.apply(event(sampleJob(4, .cancelled)))
        #expect(state.isFinished)
        #expect(state.exitStatus() == .success)
    }

    @Test func `a queue is empty when the rest waits for a schedule or is paused`() {
        var state = FollowState(.queue)
        _ = state.begin([sampleJob(1, .waiting) { $0.reason = "schedule" }, sampleJob(2, .paused)])
        #expect(state.isFinished)
        #expect(state.scheduled == 1)
        _ = state.update(sampleJob(3, .waiting) { $0.reason = "retry" })
        #expect(!state.isFinished)
    }

    @Test func `what is drawn begins with the jobs at work`() {
        var state = FollowState(.queue)
        _ = state.begin([
            sampleJob(1, .queued), sampleJob(2, .waiting), sampleJob(3, .running), sampleJob(4, .running),
            sampleJob(5, .paused),
        ])
        let all = state.active(limit: 10)
        #expect(all.jobs.map(\.id.rawValue) == [3, 4, 2, 1])
        #expect(all.more == 0)
        let some = state.active(limit: 3)
        #expect(some.jobs.map(\.id.rawValue) == [3, 4, 2])
        #expect(some.more == 1)
        _ = state.begin((10...200).map { sampleJob($0, .queued) })
        #expect(state.active(limit: 10).jobs.count == 3)
        #expect(state.active(limit: 10).more == 192)
    }

    @Test(arguments: [
        (0, 0, 0, FerryCore.ExitStatus.success), (1, 0, 0, .success), (0, 1, 0, .failed), (0, 2, 0, .failed),
        (1, 1, 0, .partlyFailed), (0, 0, 1, .notFinished), (1, 0, 1, .notFinished), (1, 1, 1, .notFinished),
    ])
    func `the exit status follows from all items`(
        completed: Int,
        failed: Int,
        paused: Int,
        expected: FerryCore.ExitStatus
    ) {
        #expect(FerryCore.ExitStatus.of(completed: completed, failed: failed, paused: paused) == expected)
    }

    @Test func `a cancelled job counts as failed for those who wait for it`() {
        var state = FollowState(.jobs([self.one]))
        _ = state.begin([sampleJob(1, .cancelled)])
        #expect(state.exitStatus() == .failed)
        #expect(state.exitStatus(successes: 1) == .partlyFailed)
    }
}
