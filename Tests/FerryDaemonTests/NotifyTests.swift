import FerryCore
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryDaemon

@Suite(.timeLimit(.minutes(2))) struct NotifyTests {
    @Test(
        arguments: [
            (.ready(status: "nothing to do"), "READY=1\nSTATUS=nothing to do"),
            (.status("3 running"), "STATUS=3 running"),
            (.reloading(atMicroseconds: 12_345), "RELOADING=1\nMONOTONIC_USEC=12345"),
            (.stopping, "STOPPING=1\nSTATUS=stopping"),
            (.watchdog, "WATCHDOG=1"),
            (.extendTimeout(.seconds(30), status: "busy"), "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=busy"),
        ] as [(NotifyMessage, String)]
    )
    func `a message is lines of keys and values`(_ message: NotifyMessage, _ text: String) {
        #expect(message.text == text)
    }

    @Test func `messages arrive at a path and at an abstract name`() async throws {
        try await withTemporaryFolder { folder in
            let abstract = "@ferry-test-\(folder.path.split(separator: "/").last ?? "")"
            for name in [folder.file("notify"), abstract] {
                let listener = try NotifyListener(name)
                let socket = NotifySocket(name)
                #expect(socket.isUsed)
                socket.send(.watchdog)
                socket.send(.stopping)
                try await listener.wait(for: "the last one") { $0.hasPrefix("STOPPING=1") }
                #expect(listener.messages == ["WATCHDOG=1", "STOPPING=1\nSTATUS=stopping"])
            }
        }
    }

    @Test(arguments: [nil, "", "@", "relative", "vsock:2:1234", "/" + String(repeating: "x", count: 107)])
    func `a name that is none tells nobody`(_ name: String?) {
        let socket = NotifySocket(name)
        #expect(!socket.isUsed)
        socket.send(.stopping)
    }

    @Test func `a listener that has gone is no failure`() {
        let socket = NotifySocket("/nonexistent/notify")
        socket.send(.ready(status: ""))
    }

    @Test(
        arguments: [
            ([:], nil, nil, false),
            (["NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "3000000"], "/n", .seconds(3), false),
            (["NOTIFY_SOCKET": "", "WATCHDOG_USEC": "0"], nil, nil, false),
            (["WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "42"], nil, .seconds(3), false),
            (["WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "43"], nil, nil, false),
            (["WATCHDOG_USEC": "soon", "WATCHDOG_PID": "42"], nil, nil, false),
            (["JOURNAL_STREAM": "8:99"], nil, nil, true),
            (["JOURNAL_STREAM": "8:98"], nil, nil, false),
        ] as [([String: String], String?, Duration?, Bool)]
    )
    func `the manager's variables are read`(
        _ environment: [String: String],
        _ socket: String?,
        _ watchdog: Duration?,
        _ isJournal: Bool
    ) {
        let variables = ManagerVariables(environment, pid: 42, standardError: (device: 8, inode: 99))
        #expect(variables.notifySocket == socket)
        #expect(variables.watchdog == watchdog)
        #expect(variables.isJournal == isJournal)
    }

    // MARK: Status

    @Test(
        arguments: [
            ([:], 0, 0, "nothing to do"),
            ([.completed: 5, .cancelled: 1], 0, 0, "nothing to do"),
            ([.running: 3, .queued: 12], 3, 4_404_019, "3 running, 12 queued, 4.2 MiB/s"),
            ([.waiting: 1, .paused: 2, .failed: 3], 0, 0, "1 waiting, 2 paused, 3 failed"),
            // The rate is that of what runs.
            ([.queued: 1], 0, 1_000, "1 queued"),
            ([.running: 1], 1, 0, "1 running"),
        ] as [([JobState: Int64], Int, Int64, String)]
    )
    func `the status is one line`(_ counts: [JobState: Int64], _ running: Int, _ rate: Int64, _ text: String)
    {
        #expect(StatusLine.text(counts, running: running, rate: rate) == text)
    }

    // MARK: Watchdog

    @Test func `the watchdog is fed when every part has answered, and not before`() async throws {
        let gates = Dictionary(uniqueKeysWithValues: HangPoint.Part.allCases.map { ($0, Gate()) })
        let fed = Watched(0)
        let check = HealthCheck(
            gates.map { part, gate in HealthCheck.Part(name: part) { try? await gate.wait() } },
            feed: { fed.update { $0 += 1 } }
        )
        #expect(check.ask().isEmpty)
        #expect(check.ask() == [.loop, .store, .engine])
        gates[.loop]?.open()
        gates[.engine]?.open()
        while check.ask() != [.store] { await Task.yield() }
        #expect(fed.value == 0)
        gates[.store]?.open()
        _ = try await fed.wait(for: "the first feeding", timeout: .seconds(60)) { $0 == 1 ? true : nil }
        #expect(check.ask().isEmpty)
        _ = try await fed.wait(for: "the second feeding", timeout: .seconds(60)) { $0 == 2 ? true : nil }
    }

    @Test func `an alarm that is switched off is never due`() {
        var off = Alarm(every: nil)
        let isOffDue = off.goesOff()
        #expect(!isOffDue && off.milliseconds == .max)
        var on = Alarm(every: .seconds(3_600))
        let times = [on.goesOff(), on.goesOff()]
        #expect(times == [true, false])
        #expect(on.milliseconds > 3_500_000)
    }
}
