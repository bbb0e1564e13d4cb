import FerryCore
import Testing

/// How long a connection may take while others wait.
@Suite struct ConnectPatienceTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// What connections took, in milliseconds.
        let taken: [Int]
        /// The bounds of the time for the next one.
        let first: ClosedRange<Int>
    }

    @Test(arguments: [
        Case(testDescription: "nothing is known", taken: [], first: 1_000...1_000),
        Case(testDescription: "a machine beside", taken: [1], first: 100...100),
        Case(testDescription: "one that is far", taken: [200], first: 600...600),
        Case(
            testDescription: "many that are as far",
            taken: [Int](repeating: 200, count: 50),
            first: 200...210
        ),
        Case(
            testDescription: "near and far ones by turns",
            taken: [20, 300, 20, 300, 20, 300, 20, 300, 20, 300],
            first: 500...900
        ),
        Case(testDescription: "never above two seconds", taken: [9_000, 8_000], first: 2_000...2_000),
        Case(
            testDescription: "a line that becomes slow",
            taken: [Int](repeating: 5, count: 100) + [600],
            first: 600...1_000
        ),
    ])
    func `the time follows what connections took`(_ item: Case) {
        var patience = ConnectPatience()
        for time in item.taken { patience.took(.milliseconds(time)) }
        let bounds =
            Duration.milliseconds(item.first.lowerBound)...Duration.milliseconds(item.first.upperBound)
        #expect(bounds.contains(patience.first))
        #expect(patience.second >= patience.first * 2)
        #expect((Duration.seconds(2)...Duration.seconds(4)).contains(patience.second))
    }
}
