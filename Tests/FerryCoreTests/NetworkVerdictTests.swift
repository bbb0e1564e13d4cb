import Testing

@testable import FerryCore

/// Whether it is the machine's network that failed.
@Suite struct NetworkVerdictTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let code: Int32
        var host = "example.org"
        var addresses: [String] = []
        var routes: [String: Bool] = [:]
        var hasNetwork = true
        var answersNames = true
        let lack: NetworkLack?

        var testDescription: String { "\(self.code) \(self.host) \(self.addresses)" }
    }

    static let cases = [
        // A name.
        Case(code: 6, answersNames: true, lack: nil),
        Case(code: 6, answersNames: false, lack: .nameService),
        Case(code: 6, hasNetwork: false, answersNames: false, lack: .network),
        Case(code: 5, answersNames: false, lack: .nameService),
        Case(code: 28, answersNames: false, lack: .nameService),
        Case(code: 28, answersNames: true, lack: nil),
        Case(code: 56, answersNames: false, lack: nil),
        Case(code: 6, host: "localhost", hasNetwork: false, answersNames: false, lack: nil),
        Case(code: 6, host: "files.localhost", hasNetwork: false, answersNames: false, lack: nil),
        Case(code: 28, host: "192.0.2.1", hasNetwork: false, answersNames: false, lack: nil),
        // Addresses.
        Case(code: 7, addresses: ["192.0.2.1"], routes: ["192.0.2.1": false], lack: .route),
        Case(
            code: 7,
            addresses: ["192.0.2.1"],
            routes: ["192.0.2.1": false],
            hasNetwork: false,
            lack: .network
        ),
        Case(code: 7, addresses: ["192.0.2.1"], routes: ["192.0.2.1": true], hasNetwork: false, lack: nil),
        Case(
            code: 7,
            addresses: ["2001:db8::1", "192.0.2.1"],
            routes: ["2001:db8::1": false, "192.0.2.1": true],
            lack: nil
        ),
        Case(
            code: 7,
            addresses: ["2001:db8::1", "192.0.2.1"],
            routes: ["2001:db8::1": false, "192.0.2.1": false],
            lack: .route
        ),
        Case(code: 7, addresses: ["192.0.2.1"], lack: nil),
        Case(code: 7, addresses: ["127.0.0.1"], routes: ["127.0.0.1": false], hasNetwork: false, lack: nil),
        Case(code: 7, addresses: ["127.8.8.8"], routes: ["127.8.8.8": false], hasNetwork: false, lack: nil),
        Case(code: 7, addresses: ["::1"], routes: ["::1": false], hasNetwork: false, lack: nil),
        Case(code: 55, addresses: ["192.0.2.1"], routes: ["192.0.2.1": false], lack: .route),
        Case(code: 56, addresses: ["192.0.2.1"], routes: ["192.0.2.1": false], lack: .route),
        Case(code: 28, addresses: ["192.0.2.1"], routes: ["192.0.2.1": false], lack: .route),
        Case(code: 18, addresses: ["192.0.2.1"], routes: ["192.0.2.1": false], lack: .route),
        // Not the network's at all.
        Case(code: 60, addresses: ["192.0.2.1"], routes: ["192.0.2.1": false], lack: nil),
        Case(code: 23, addresses: ["192.0.2.1"], routes: ["192.0.2.1": false], lack: nil),
    ]

    @Test(arguments: Self.cases) func `a failure is the network's or not`(_ item: Case) {
        let facts = NetworkVerdict.Facts(
            hasRoute: { item.routes[$0] },
            hasNetwork: { item.hasNetwork },
            answersNames: { item.answersNames }
        )
        let cause = TransferCause.transport(code: item.code, detail: "", handshakeAlert: false)
        let lack = NetworkVerdict.judge(cause, host: item.host, addresses: item.addresses, facts: facts)
        #expect(lack == item.lack)
    }

    @Test func `what is not the transport's is never the network's`() {
        let facts = NetworkVerdict.Facts(
            hasRoute: { _ in false },
            hasNetwork: { false },
            answersNames: { false }
        )
        let causes: [TransferCause] = [
            .status(503, retryAfter: nil, hadBytes: false, linkMayExpire: false), .shortBody,
            .local(errno: 28, path: "/x"), .transport(code: 35, detail: "alert", handshakeAlert: true),
        ]
        for cause in causes {
            #expect(NetworkVerdict.judge(cause, host: "a.b", addresses: [], facts: facts) == nil)
        }
    }

    @Test(arguments: NetworkLack.allCases) func `a lack waits and spends no try`(lack: NetworkLack) {
        let state = RetryState(attempts: 1, progressAt: Timestamp(milliseconds: 0))
        let policy = RetryPolicy(attempts: 1, noProgress: .seconds(1))
        let (decision, after) = RetryPlan.decide(
            .network(lack),
            policy: policy,
            state: state,
            now: Timestamp(milliseconds: 1_000_000_000),
            random: { 0.5 }
        )
        #expect(decision == .wait(.network, after: NetworkOutages.shortest))
        #expect(after.forgivenAttempts == 1)
        #expect(after.transientTries == 0 && after.doubtfulTries == 0)
        #expect(RetryPlan.message(.network(lack), host: "example.org").hasPrefix("no "))
    }
}

/// How much room a job needs, and who may go on.
@Suite struct DiskNeedTests {
    private static func space(_ bytes: Int64, device: UInt64 = 1) -> FreeSpace {
        FreeSpace(place: "/data", device: device, bytes: bytes)
    }

    @Test(
        arguments: [
            (100, 0, 100), (100, 40, 60), (100, 100, 0), (100, 140, 0), (nil, 0, 16 << 20),
            (nil, 99, 16 << 20),
            (0, 0, 0),
        ] as [(Int64?, Int64, Int64)]
    )
    func `what is allocated is not needed again`(total: Int64?, allocated: Int64, need: Int64) {
        #expect(DiskNeed(total: total, allocated: allocated).bytes == need)
    }

    @Test func `the message has both sizes`() {
        let need = DiskNeed(total: 1_288_490_189, allocated: 0)
        #expect(
            need.message(Self.space(300 << 20)) == "no space left on /data: 1.2 GiB needed, 300.0 MiB free"
        )
        #expect(need.message(Self.space(2 << 30)) == nil)
        #expect(need.message(nil) == nil)
        #expect(DiskNeed(total: 0, allocated: 0).message(Self.space(0))?.contains("0 B free") == true)
    }

    @Test func `each file system is shared out once, in order`() {
        func waiter(_ id: Int64, _ need: Int64, _ space: FreeSpace?) -> DiskPlan.Waiter {
            DiskPlan.Waiter(id: JobID(rawValue: id), need: DiskNeed(total: need, allocated: 0), space: space)
        }
        let ready = DiskPlan.ready([
            waiter(1, 60, Self.space(100)), waiter(2, 60, Self.space(100)), waiter(3, 40, Self.space(100)),
            waiter(4, 60, Self.space(100, device: 2)), waiter(5, 1_000, nil),
            waiter(6, 0, Self.space(0, device: 3)),
        ])
        #expect(ready.map(\.rawValue) == [1, 3, 4, 5])
    }

    @Test func `a job that is refused room although there seems to be some comes more and more rarely`() {
        #expect((0...3).map { DiskPlan.pause(after: $0) } == [5, 10, 20, 40].map { .seconds($0) })
        #expect(DiskPlan.pause(after: 100) == .seconds(300))
    }
}
