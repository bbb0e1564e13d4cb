import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryEngine

/// An engine of a test's own, with its database, network loop and folders, under a clock that stands still.
final class EngineScope: Sendable {
    let folder: TemporaryFolder
    let store: JobStore
    let clock = ManualClock()
    /// How far the wall clock was set from where it stood.
    private let jump = Mutex(Duration.zero)
    /// How long the machine has slept.
    private let slept = Mutex(Duration.zero)
    /// Called with each change before anything waits for it.
    let onChange = Mutex<@Sendable (JobChange) -> Void>({ _ in })
    private let loop: NetworkLoop
    private let mode: Engine.Mode
    private let configuration: EngineConfiguration
    private let calls: FileCalls
    private let renewal: Renewal
    private let machine: Machine
    private let changes = Watched<[JobChange]>([])
    private let seen = Mutex<[JobID: Int64]>([:])
    private let current: Mutex<Engine?> = Mutex(nil)

    fileprivate init(
        _ folder: TemporaryFolder,
        mode: Engine.Mode,
        configuration: EngineConfiguration,
        calls: FileCalls,
        renewal: Renewal,
        machine: Machine
    ) throws {
        self.folder = folder
        self.store = try JobStore(directory: folder.file("state"))
        self.loop = try NetworkLoop(userAgent: "ferry-test")
        self.mode = mode
        self.configuration = configuration
        self.calls = calls
        self.renewal = renewal
        self.machine = machine
    }

    fileprivate func close() async {
        await self.current.withLock { $0 }?.stop()
        await self.loop.stop()
        self.store.close()
    }

    // MARK: The engine

    var engine: Engine {
        get throws { try #require(self.current.withLock { $0 }) }
    }

    /// Stops the engine, if one runs, and starts another on the same database.
    func restart() async throws {
        await self.current.withLock { $0 }?.stop()
        let engine = Engine(
            store: self.store,
            loop: self.loop,
            configuration: self.configuration,
            mode: self.mode,
            time: EngineTime(
                now: { self.now },
                monotonic: { self.clock.now.offset },
                boottime: { self.clock.now.offset + self.slept.withLock { $0 } },
                sleep: { duration in
                    // What was due when the clock was moved is waited for no longer.
                    if duration > .milliseconds(1) { try await self.clock.sleep(for: duration) }
                }
            ),
            machine: self.machine,
            calls: self.calls,
            spool: self.folder.file("state/spool"),
            renewal: self.renewal,
            observer: { changes in
                let hook = self.onChange.withLock { $0 }
                for change in changes { hook(change) }
                self.changes.update { $0 += changes }
            }
        )
        self.current.withLock { $0 = engine }
        try await engine.start()
    }

    // MARK: Time

    var now: Timestamp {
        Timestamp(milliseconds: 1_800_000_000_000) + self.clock.now.offset + self.jump.withLock { $0 }
            + self.slept.withLock { $0 }
    }

    /// Lets the machine sleep: only the clocks that count that go on.
    func sleep(for time: Duration) async throws {
        self.slept.withLock { $0 += time }
        try await self.engine.clockMayHaveBeenSet()
    }

    /// Sets the wall clock so much ahead, without a word to the engine; no time passes.
    func setClock(ahead duration: Duration) {
        self.jump.withLock { $0 += duration }
    }

    /// Lets the time come at which a waiting job is tried again, or as much as is said if that is more.
    func passWait(of job: JobRecord, atLeast duration: Duration = .zero) async throws {
        guard let nextTry = job.nextTry else { return try await self.passLook() }
        let end = max(nextTry, self.now + duration)
        await self.passTime(toEngineWakingAt: nextTry)
        if end > self.now { self.clock.advance(by: end - self.now) }
    }

    /// Lets a time come that the engine sleeps until.
    func passTime(to time: Timestamp) async throws {
        await self.passTime(toEngineWakingAt: time)
    }

    /// Lets the time come at which full disks are looked at.
    func passLook() async throws {
        await self.waitForLook()
        self.clock.advance(by: DiskPlan.interval)
    }

    /// Waits until full disks have been looked at, and will be again.
    func waitForLook() async {
        let end = self.clock.now.advanced(by: DiskPlan.interval)
        while !self.clock.wakeTimes.contains(end) { await Task.yield() }
    }

    /// Moves the clock on from one sleep to the next until a time has come.
    ///
    /// Only when somebody sleeps, for a sleep that begins later would be too long. One that did so all the same, on a
    /// busy machine, is waited for in vain for a while, and then passed.
    private func passTime(toEngineWakingAt time: Timestamp) async {
        var turns = 0
        while self.now < time {
            let end = self.clock.now.advanced(by: time - self.now)
            if let next = self.clock.wakeTimes.first, next <= end || turns > 50_000 {
                self.clock.advance(by: self.clock.now.duration(to: next))
                turns = 0
            } else {
                turns += 1
                await Task.yield()
            }
        }
    }

    // MARK: Jobs

    /// The folder that downloads go to.
    var target: String { self.folder.file("data") }

    func request(_ url: String, _ change: (inout JobRequest) -> Void = { _ in }) -> JobRequest {
        var request = JobRequest(url: url, directory: self.target)
        change(&request)
        return request
    }

    /// Adds a job and lets it run.
    @discardableResult
    func add(_ url: String, _ change: (inout JobRequest) -> Void = { _ in }) async throws -> JobID {
        let added = try await self.engine.add([self.request(url, change)], goOn: false)
        try await self.engine.runAdded()
        return try #require(added.first?.job?.id)
    }

    /// Steers a job and lets run what that made ready.
    @discardableResult
    func steer(_ steering: Engine.Steering, _ id: JobID) async throws -> Engine.Steered {
        let steered = try await self.engine.steer(steering, [id])
        try await self.engine.runSteered()
        return try #require(steered.first)
    }

    /// Changes a job and lets run what that made ready.
    @discardableResult
    func set(_ changes: JobChanges, _ id: JobID) async throws -> Engine.Steered {
        let steered = try await self.engine.set(changes, [id])
        try await self.engine.runSteered()
        return try #require(steered.first)
    }

    /// Waits for the next time that a job comes into one of the states.
    func next(_ id: JobID, _ states: JobState...) async throws -> JobRecord {
        let since = self.seen.withLock { $0[id] ?? 0 }
        let change = try await self.changes.wait(for: "job \(id) to be \(states)") { changes in
            changes.first { change in
                change.event.seq > since && change.event.job == id
                    && change.job.map { states.contains($0.state) } ?? false
            }
        }
        self.seen.withLock { $0[id] = change.event.seq }
        return try #require(change.job)
    }

    /// Waits until a job has ended; time passes as it needs to.
    func end(of id: JobID, tries: Int = 20) async throws -> JobRecord {
        for _ in 1...tries {
            let job = try await self.next(id, .waiting, .completed, .failed, .cancelled)
            guard job.state == .waiting else { return job }
            // One that waits for an event comes by itself.
            if job.nextTry != nil { try await self.passWait(of: job) }
        }
        throw TestSupportError("job \(id) has not ended after \(tries) tries")
    }

    /// Adds a job and waits for its end.
    func fetch(_ url: String, _ change: (inout JobRequest) -> Void = { _ in }) async throws -> JobRecord {
        try await self.end(of: self.add(url, change))
    }

    /// The row as it is now.
    func job(_ id: JobID) async throws -> JobRecord {
        try #require(try await self.store.read { try $0.job(id) })
    }

    /// The events of a job that have this kind, in order.
    func events(of id: JobID, _ kind: String) async throws -> [EventRecord] {
        try await self.store.read { try $0.events(job: id) }.filter { $0.kind == kind }
    }

    /// Waits until a running job has taken so many bytes.
    func waitForBytes(_ count: Int64, of id: JobID) async throws {
        while try await !self.engine.progress().contains(where: { $0.id == id && $0.done >= count }) {
            await Task.yield()
        }
    }

    /// The names in the download folder.
    var names: [String] {
        get throws { try self.folder.names(in: "data") }
    }
}

/// Runs a test with an engine.
func withEngine(
    mode: Engine.Mode = .all,
    configuration: EngineConfiguration = EngineConfiguration(),
    calls: (TemporaryFolder) -> FileCalls = { _ in .real },
    renewal: Renewal = Renewal(),
    machine: Machine = Machine(),
    _ body: (EngineScope) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        let scope = try EngineScope(
            folder,
            mode: mode,
            configuration: configuration,
            calls: calls(folder),
            renewal: renewal,
            machine: machine
        )
        do {
            try await scope.restart()
            try await body(scope)
            await scope.close()
        } catch {
            await scope.close()
            throw error
        }
    }
}

/// Starts a server whose answers to one path, in order, are these; the last one repeats.
func script(_ answers: [@Sendable (RecordedRequest) -> Reply]) throws -> ScriptedServer {
    try ScriptedServer { request, number in answers[min(number, answers.count - 1)](request) }
}

extension ScriptedServer {
    /// The first bytes that were asked for, nil for "all", in order.
    var ranges: [Int64?] { self.requests.map(\.rangeStart) }
}
