import Dispatch
import FerryCore
import Synchronization

/// What is known of outages and full disks beyond the rows of those who wait; none of it is missed after a restart.
final class WaitBook: Sendable {
    private struct DiskRefusals {
        var count: Int
        var durable: Int64
    }

    private struct State {
        var outages = NetworkOutages()
        var refusals: [JobID: DiskRefusals] = [:]
        var names: (answer: Bool, at: Duration)?
        var onAnswer: (@Sendable (String) -> Void)?
    }

    private let state = Mutex(State())
    private let hasOutages = Atomic(false)
    /// Looks at the name service; one at a time, so that those who wait for it get the same answer.
    private let names = DispatchQueue(label: "ferry.names")

    /// How long an answer of the name service, or its lack, is taken as true.
    private static let nameServiceAge = Duration.seconds(2)

    // MARK: Network

    /// Sets what is called when a host answers that could not be reached.
    func onAnswer(_ body: @escaping @Sendable (String) -> Void) {
        self.state.withLock { $0.onAnswer = body }
    }

    /// Takes a failure for lack of a network; gives the time until the next look.
    func failed(_ host: String, at now: Duration) -> Duration {
        self.update { $0.failed(host, at: now) }
    }

    /// See ``NetworkOutages/look(at:_:)``.
    func look(at host: String, _ now: Duration) -> Duration? {
        self.update { $0.look(at: host, now) }
    }

    /// Takes an answer of a host: those who wait for it may go on.
    func answered(by host: String) {
        guard self.hasOutages.load(ordering: .relaxed), self.update({ $0.answered(host) }) else { return }
        self.state.withLock { $0.onAnswer }?(host)
    }

    /// Says that the network is another one now.
    func networkChanged() {
        self.state.withLock { $0.names = nil }
        self.update { $0.changed() }
    }

    private func update<Result>(_ body: (inout NetworkOutages) -> Result) -> Result {
        self.state.withLock { state in
            defer { self.hasOutages.store(!state.outages.isEmpty, ordering: .relaxed) }
            return body(&state.outages)
        }
    }

    /// Judges a failure; what it takes to look at the machine is not done on the caller's thread.
    func lack(behind failure: TransferFailure, _ machine: Machine, now: @escaping @Sendable () -> Duration)
        async
        -> NetworkLack?
    {
        guard let target = failure.target, NetworkVerdict.isSuspect(failure.cause) else { return nil }
        return await withCheckedContinuation { continuation in
            self.names.async {
                let facts = NetworkVerdict.Facts(
                    hasRoute: machine.hasRoute,
                    hasNetwork: machine.hasNetwork,
                    answersNames: { self.answersNames(machine, at: now()) }
                )
                continuation.resume(
                    returning: NetworkVerdict.judge(
                        failure.cause,
                        host: target.host,
                        addresses: target.addresses,
                        facts: facts
                    )
                )
            }
        }
    }

    private func answersNames(_ machine: Machine, at now: Duration) -> Bool {
        if let known = self.state.withLock({ $0.names }), now - known.at < Self.nameServiceAge {
            return known.answer
        }
        let answer = machine.answersNames()
        self.state.withLock { $0.names = (answer, now) }
        return answer
    }

    // MARK: Disk

    /// Takes a refusal of the disk although it seems to have room; gives the time until the next try.
    func refused(_ id: JobID, durable: Int64) -> Duration {
        self.state.withLock { state in
            var refusals = state.refusals[id] ?? DiskRefusals(count: 0, durable: durable)
            if durable > refusals.durable { refusals = DiskRefusals(count: 0, durable: durable) }
            defer {
                refusals.count += 1
                state.refusals[id] = refusals
            }
            return DiskPlan.pause(after: refusals.count)
        }
    }

    /// Forgets a job that waits no more, or for another reason.
    func forget(_ id: JobID) {
        self.state.withLock { $0.refusals[id] = nil }
    }
}
