import FerryCore
import Testing

@Suite struct JobMachineTests {
    /// A status of each state, with the words that belong to it.
    private static let before: [JobState: JobStatus] = [
        .queued: JobStatus(state: .queued),
        .running: JobStatus(state: .running, phase: .transferring),
        .waiting: JobStatus(state: .waiting, waitReason: .retry, retryAt: now),
        .paused: JobStatus(state: .paused),
        .failed: JobStatus(state: .failed, failureReason: .notFound),
        .completed: JobStatus(state: .completed),
        .cancelled: JobStatus(state: .cancelled),
    ]

    struct Row: Sendable, CustomStringConvertible {
        var event: JobEvent
        var outcomes: [JobState: (outcome: JobOutcome, status: JobStatus?)]
        var description: String { "\(self.event)" }

        /// In the order queued, running, waiting, paused, failed, completed, cancelled.
        init(_ event: JobEvent, _ outcomes: (JobOutcome, JobStatus?)...) {
            self.event = event
            let order: [JobState] = [.queued, .running, .waiting, .paused, .failed, .completed, .cancelled]
            self.outcomes = Dictionary(
                uniqueKeysWithValues: zip(order, outcomes.map { (outcome: $0.0, status: $0.1) })
            )
        }
    }

    private static let unchanged: (JobOutcome, JobStatus?) = (.unchanged, nil)
    private static let refused: (JobOutcome, JobStatus?) = (.refused, nil)

    private static func to(_ status: JobStatus, _ effects: JobEffect...) -> (JobOutcome, JobStatus?) {
        (.moved(effects), status)
    }

    private static func to(_ state: JobState, _ effects: JobEffect...) -> (JobOutcome, JobStatus?) {
        (.moved(effects), JobStatus(state: state))
    }

    private static let waiting = JobStatus(state: .waiting, waitReason: .host, retryAt: now)
    private static let later = now + .seconds(3_600)
    private static let scheduled = JobStatus(state: .waiting, waitReason: .schedule, retryAt: later)
    private static let gaveUp = JobStatus(state: .failed, failureReason: .gaveUp)

    private static let table: [Row] = [
        Row(
            .claimed,
            to(JobStatus(state: .running, phase: .connecting), .setStarted),
            refused,
            refused,
            refused,
            refused,
            refused,
            refused
        ),
        Row(
            .phase(.verifying),
            unchanged,
            to(JobStatus(state: .running, phase: .verifying)),
            unchanged,
            unchanged,
            unchanged,
            unchanged,
            unchanged
        ),
        Row(
            .phase(.transferring),
            unchanged,
            unchanged,
            unchanged,
            unchanged,
            unchanged,
            unchanged,
            unchanged
        ),
        Row(
            .succeeded,
            unchanged,
            to(.completed, .eraseSecrets, .setFinished),
            unchanged,
            unchanged,
            unchanged,
            unchanged,
            unchanged
        ),
        Row(
            .failed(.checksum),
            unchanged,
            to(JobStatus(state: .failed, failureReason: .checksum), .setFinished),
            unchanged,
            unchanged,
            unchanged,
            unchanged,
            unchanged
        ),
        Row(
            .mustWait(.host, until: now),
            unchanged,
            to(waiting),
            unchanged,
            unchanged,
            unchanged,
            unchanged,
            unchanged
        ),
        Row(
            .interrupted,
            unchanged,
            to(.queued),
            unchanged,
            unchanged,
            unchanged,
            unchanged,
            unchanged
        ),
        Row(
            .pause,
            to(.paused),
            to(.paused, .stopTransfer),
            to(.paused),
            unchanged,
            refused,
            refused,
            refused
        ),
        Row(
            .resume,
            unchanged,
            unchanged,
            to(.queued),
            to(.queued),
            refused,
            refused,
            refused
        ),
        Row(
            .cancel,
            to(.cancelled, .removePartial, .eraseSecrets, .setFinished),
            to(.cancelled, .stopTransfer, .removePartial, .eraseSecrets, .setFinished),
            to(.cancelled, .removePartial, .eraseSecrets, .setFinished),
            to(.cancelled, .removePartial, .eraseSecrets, .setFinished),
            to(.cancelled, .removePartial, .eraseSecrets, .setFinished),
            refused,
            unchanged
        ),
        Row(
            .retry,
            unchanged,
            unchanged,
            to(.queued),
            refused,
            to(.queued),
            refused,
            refused
        ),
        Row(
            .due,
            unchanged,
            unchanged,
            to(.queued),
            unchanged,
            unchanged,
            unchanged,
            unchanged
        ),
        Row(
            .deadlinePassed,
            to(gaveUp, .setFinished),
            to(gaveUp, .stopTransfer, .setFinished),
            to(gaveUp, .setFinished),
            unchanged,
            unchanged,
            unchanged,
            unchanged
        ),
        Row(
            .dependencyFailed,
            unchanged,
            unchanged,
            to(JobStatus(state: .failed, failureReason: .dependency), .setFinished),
            unchanged,
            unchanged,
            unchanged,
            unchanged
        ),
        Row(
            .schedule(later),
            to(scheduled),
            to(scheduled, .stopTransfer),
            to(scheduled),
            unchanged,
            unchanged,
            refused,
            refused
        ),
        Row(.renewLater(later), unchanged, unchanged, unchanged, unchanged, unchanged, unchanged, unchanged),
        Row(.renewalFailed, unchanged, unchanged, unchanged, unchanged, unchanged, unchanged, unchanged),
    ]

    @Test(arguments: [
        (
            JobEvent.renewalFailed, JobStatus(state: .failed, failureReason: .linkExpired),
            [JobEffect.setFinished]
        ),
        (.renewLater(later), JobStatus(state: .waiting, waitReason: .auth, retryAt: later), []),
    ])
    func `only a job that waits for a new link can get none`(
        event: JobEvent,
        expected: JobStatus,
        effects: [JobEffect]
    ) {
        var machine = JobMachine(status: JobStatus(state: .waiting, waitReason: .auth))
        #expect(machine.apply(event) == .moved(effects))
        #expect(machine.status == expected)
        #expect(machine.apply(event) == .unchanged)
    }

    @Test(arguments: table, JobState.allCases)
    func `each event does in each state what the table says`(row: Row, state: JobState) throws {
        let before = try #require(Self.before[state])
        let expected = try #require(row.outcomes[state])
        var machine = JobMachine(status: before)
        #expect(machine.apply(row.event) == expected.outcome)
        #expect(machine.status == expected.status ?? before)
    }

    @Test(arguments: table, JobState.allCases)
    func `no event makes a move that does not exist`(row: Row, state: JobState) throws {
        var machine = JobMachine(status: try #require(Self.before[state]))
        guard case .moved = machine.apply(row.event), machine.status.state != state else { return }
        #expect(JobMachine.moves[state]?.contains(machine.status.state) == true)
    }

    @Test func `the moves are those of the manual`() {
        #expect(Set(JobMachine.moves.keys) == Set(JobState.allCases))
        for (state, targets) in JobMachine.moves {
            #expect(!targets.contains(state))
            #expect(targets.isEmpty == state.isFinal)
        }
        #expect(JobMachine.moves[.queued] == [.running, .waiting, .paused, .cancelled, .failed])
        #expect(JobMachine.moves[.paused] == [.queued, .cancelled])
        #expect(JobMachine.moves[.failed] == [.queued, .cancelled])
    }

    @Test(arguments: table, JobState.allCases)
    func `an event that comes twice moves at most once`(row: Row, state: JobState)
        throws
    {
        var machine = JobMachine(status: try #require(Self.before[state]))
        _ = machine.apply(row.event)
        let once = machine.status
        if case .moved = machine.apply(row.event) {
            Issue.record("moved again from \(once.state)")
        }
        #expect(machine.status == once)
    }

    @Test func `words of an old state do not stay`() {
        var machine = JobMachine(status: JobStatus(state: .waiting, waitReason: .disk, retryAt: now))
        _ = machine.apply(.due)
        #expect(machine.status == JobStatus(state: .queued))
        _ = machine.apply(.claimed)
        _ = machine.apply(.failed(.tls))
        #expect(machine.status == JobStatus(state: .failed, failureReason: .tls))
        _ = machine.apply(.retry)
        #expect(machine.status == JobStatus(state: .queued))
    }
}
