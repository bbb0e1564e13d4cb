import FerryCore
import FerryEngine
import Testing

@testable import FerryDaemon

@Suite struct SelectionTests {
    @Test func `a job that has left the selection meanwhile is no failure unless it was named`() {
        let selection = Selection(
            jobs: (1...6).map { JobID(rawValue: $0) },
            named: [JobID(rawValue: 1), JobID(rawValue: 2)],
            states: [.queued, .running]
        )
        let steered = [
            Self.answer(1, state: .completed, error: "is over"),
            Self.answer(2, state: nil, error: "there is no job 2"),
            Self.answer(3, state: .completed, error: "is over"),
            Self.answer(4, state: nil, error: "there is no job 4"),
            Self.answer(5, state: .paused, error: nil),
            Self.answer(6, state: .running, error: "its partial cannot be removed"),
        ]
        #expect(selection.answers(to: steered).map(\.id.rawValue) == [1, 2, 5, 6])
    }

    private static func answer(_ id: Int64, state: JobState?, error: String?) -> Engine.Steered {
        Engine.Steered(id: JobID(rawValue: id), state: state, error: error)
    }
}
