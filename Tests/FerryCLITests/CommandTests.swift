import FerryControl
import FerryCore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryCLI

@Suite(.timeLimit(.minutes(5))) struct CommandTests {
    private static func added(_ jobs: [AddedJob], running: Bool = true) -> ControlResponse {
        .added(jobs, running: running)
    }

    private func unexpected(_ request: ControlRequest) -> FerryError {
        FerryError(.wrongState, "unexpected \(request)", exitStatus: .database)
    }

    /// Runs a command against a scripted service.
    private func run(
        _ words: [String],
        onDemand: Bool = true,
        answer: @escaping FakeService.Answer
    ) async throws -> (result: CommandResult, requests: [ControlRequest]) {
        try await withTemporaryFolder { folder in
            try folder.makeFolder("state/ferry")
            try folder.makeFolder("run/ferry")
            let service = try FakeService(
                socket: folder.socketPath,
                folder: folder,
                onDemand: onDemand,
                answer: answer
            )
            defer { service.stop() }
            return (try await FerryCLITests.run(words, in: folder), service.requests)
        }
    }

    @Test func `get follows its jobs to their end and prints the paths`() async throws {
        let (result, requests) = try await self.run(["get", "https://a/x", "https://a/y"]) {
            request,
            client,
            service in
            switch request {
            case .add(let requests, true):
                #expect(requests.map(\.foreground) == [true, true])
                return Self.added([
                    AddedJob(outcome: .new, job: sampleJob(1, .queued)),
                    AddedJob(outcome: .new, job: sampleJob(2, .queued), note: "a note"),
                ])
            case .attach: return .done
            case .subscribe:
                service.notify(
                    client,
                    [
                        event(sampleJob(1, .running)),
                        event(sampleJob(2, .completed) { $0.path = "/d/y" }),
                        event(sampleJob(1, .completed) { $0.path = "/d/x" }),
                    ]
                )
                return .subscribed([sampleJob(1, .queued), sampleJob(2, .queued)])
            default: throw self.unexpected(request)
            }
        }
        #expect(result.status == .success)
        #expect(result.out == "/d/y\n/d/x\n")
        #expect(
            result.err == """
                ferry: a note
                job 1: https://example.org/image.iso: started
                job 2: y: completed, 0 B
                job 1: x: completed, 0 B

                """
        )
        #expect(requests.count == 3)
    }

    @Test func `get -q says nothing of progress, and some failed is status 3`() async throws {
        let (result, _) = try await self.run(["get", "-q", "u", "v"]) { request, _, _ in
            switch request {
            case .add:
                return Self.added([
                    AddedJob(outcome: .same, job: sampleJob(1, .running)),
                    AddedJob(
                        outcome: .alreadyComplete,
                        job: sampleJob(2, .completed) { $0.path = "/d/v" },
                        note: "n"
                    ),
                ])
            case .attach: return .done
            case .subscribe: return .subscribed([sampleJob(1, .failed) { $0.reason = "not-found" }])
            default: throw self.unexpected(request)
            }
        }
        #expect(result.status == .partlyFailed)
        #expect(result.out == "/d/v\n")
        #expect(result.err == "ferry: job 1 (https://example.org/image.iso) failed: not-found\n")
    }

    @Test func `a command that was told too much at once asks how things stand`() async throws {
        let (result, requests) = try await self.run(["wait", "1", "2"]) { request, client, service in
            guard case .subscribe(let jobs, _) = request else { return .done }
            let isFirst =
                service.requests.filter { if case .subscribe = $0 { true } else { false } }.count == 1
            if isFirst {
                service.notify(client, [event(sampleJob(1, .completed)), .overrun])
                return .subscribed([sampleJob(1, .queued), sampleJob(2, .queued)])
            }
            #expect(jobs == [JobID(rawValue: 2)])
            return .subscribed([sampleJob(2, .completed)])
        }
        #expect(result.status == .success)
        #expect(requests.count == 4)
    }

    @Test func `get of what is skipped asks for nothing more`() async throws {
        let (result, requests) = try await self.run(["get", "--if-exists", "skip", "u"]) { _, _, _ in
            Self.added([AddedJob(outcome: .skipped, job: nil, note: "'x' exists; skipped")])
        }
        #expect(result == CommandResult(status: .success, out: "", err: "ferry: 'x' exists; skipped\n"))
        #expect(requests.count == 1)
    }

    @Test func `get --json prints events, and a last line for each job`() async throws {
        let (result, _) = try await self.run(["get", "--json", "u"]) { request, client, service in
            switch request {
            case .add: return Self.added([AddedJob(outcome: .new, job: sampleJob(1, .queued))])
            case .subscribe:
                service.notify(client, [event(sampleJob(1, .completed) { $0.path = "/d/x" })])
                return .subscribed([sampleJob(1, .queued)])
            default: return .done
            }
        }
        let lines = result.out.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.first?.contains("\"type\":\"event\"") == true)
        #expect(lines.last?.contains("\"type\":\"job\"") == true)
        #expect(lines.last?.contains("\"path\":\"/d/x\"") == true)
        #expect(result.err.isEmpty)
    }

    @Test func `a service that dies is followed by the next one`() async throws {
        let result = try await withTemporaryFolder { folder in
            try folder.makeFolder("state/ferry")
            try folder.makeFolder("run/ferry")
            let first = folder.file("first.sock")
            let second = folder.file("second.sock")
            try #require(symlink(first, folder.socketPath) == 0)
            let next = try FakeService(socket: second, folder: folder) { request, _, _ in
                switch request {
                case .attach(let jobs):
                    guard jobs == [JobID(rawValue: 1)] else {
                        throw FerryError(.unknownJob, "no job 2", exitStatus: .failed)
                    }
                    return .done
                case .show(let job):
                    guard job.rawValue == 1 else {
                        throw FerryError(.unknownJob, "no job 2", exitStatus: .failed)
                    }
                    return .job(sampleJob(1, .running))
                case .subscribe:
                    return .subscribed([sampleJob(1, .completed)])
                default: throw self.unexpected(request)
                }
            }
            defer { next.stop() }
            let dying = try FakeService(socket: first, folder: folder) { request, _, service in
                switch request {
                case .attach: return .done
                case .subscribe:
                    unlink(folder.socketPath)
                    symlink(second, folder.socketPath)
                    Task.detached { service.stop() }
                    return .subscribed([sampleJob(1, .running), sampleJob(2, .running)])
                default: throw self.unexpected(request)
                }
            }
            defer { dying.stop() }
            return try await FerryCLITests.run(["wait", "1", "2"], in: folder)
        }
        #expect(result.status == .partlyFailed)
        #expect(result.out.isEmpty)
        #expect(result.err.contains("ferry: the service has gone; going on with the next one\n"))
        #expect(result.err.contains("ferry: job 2 is no longer in the queue\n"))
    }

    @Test func `wait of an unknown job fails, and of a paused one is not finished`() async throws {
        let (unknown, _) = try await self.run(["wait", "9"]) { _, _, _ in
            throw FerryError(.unknownJob, "there is no job 9", exitStatus: .failed)
        }
        #expect(unknown == CommandResult(status: .failed, out: "", err: "ferry: there is no job 9\n"))
        let (paused, _) = try await self.run(["wait", "9"]) { request, _, _ in
            if case .subscribe = request { return .subscribed([sampleJob(9, .paused)]) }
            return .done
        }
        #expect(paused.status == .notFinished)
        #expect(paused.err.contains("'ferry resume 9'"))
    }

    @Test func `wait gives up after its time-out`() async throws {
        let (result, _) = try await self.run(["wait", "--timeout", "1ms", "9"]) { request, _, _ in
            if case .subscribe = request { return .subscribed([sampleJob(9, .queued)]) }
            return .done
        }
        #expect(result.status == .notFinished)
        #expect(result.err == "ferry: the time is over; not all jobs have ended\n")
    }

    @Test func `run --until-empty ends when the service counts nothing more`() async throws {
        let (result, requests) = try await self.run(["run", "--until-empty"], onDemand: false) {
            request,
            client,
            service in
            switch request {
            case .attachAll: return .done
            case .subscribe(nil, true):
                service.notify(client, [event(sampleJob(1, .completed)), event(sampleJob(2, .failed))])
                return .subscribed([sampleJob(1, .queued), sampleJob(2, .queued), sampleJob(3, .failed)])
            case .counts: return .counts(CountsDocument(states: ["failed": 2, "completed": 1, "paused": 4]))
            default: throw self.unexpected(request)
            }
        }
        #expect(result.status == .partlyFailed)
        #expect(result.err.hasPrefix("ferry: a daemon works on this queue already"))
        #expect(requests == [.subscribe(jobs: nil, progress: true), .attachAll, .counts])
    }

    @Test func `add prints numbers alone, and says if nothing runs them`() async throws {
        let (result, requests) = try await self.run(["add", "u", "v", "w"]) { request, _, _ in
            Self.added(
                [
                    AddedJob(outcome: .new, job: sampleJob(4, .queued)),
                    AddedJob(
                        outcome: .same,
                        job: sampleJob(2, .waiting),
                        note: "-H was not applied to job 2"
                    ),
                    AddedJob(outcome: .skipped, job: nil),
                ],
                running: false
            )
        }
        #expect(result.status == .success)
        #expect(result.out == "4\n2\n")
        #expect(result.err.hasPrefix("ferry: -H was not applied to job 2\nferry: nothing will run this yet"))
        guard case .add(let sent, false) = requests.first else {
            Issue.record("no add")
            return
        }
        #expect(sent.map(\.foreground) == [false, false, false])
    }

    @Test func `an order that cannot be kept is not sent`() async throws {
        let (result, requests) = try await self.run(["add", "-o", "missing/f", "u"]) { request, _, _ in
            throw self.unexpected(request)
        }
        #expect(result.status == .failed)
        #expect(result.err.contains("cannot be used: it does not exist"))
        #expect(requests.isEmpty)
    }

    @Test func `the service's refusal keeps its sentence and its status`() async throws {
        let (result, _) = try await self.run(["add", "ftp://a/x"]) { _, _, _ in
            throw FerryError.usage("ftp is no scheme that ferry knows")
        }
        #expect(
            result
                == CommandResult(status: .usage, out: "", err: "ferry: ftp is no scheme that ferry knows\n")
        )
    }

    static let steered: [([SteeredJob], FerryCore.ExitStatus, String)] = [
        ([SteeredJob(id: JobID(rawValue: 1), state: .paused)], .success, ""),
        ([], .success, ""),
        (
            [SteeredJob(id: JobID(rawValue: 1), state: nil, error: "there is no job 1")], .failed,
            "ferry: there is no job 1\n"
        ),
        (
            [
                SteeredJob(id: JobID(rawValue: 1), state: .paused),
                SteeredJob(id: JobID(rawValue: 2), state: .completed, error: "job 2 is completed"),
            ], .partlyFailed, "ferry: job 2 is completed\n"
        ),
    ]

    @Test(arguments: steered)
    func `steering is silent but for what could not be done`(
        jobs: [SteeredJob],
        status: FerryCore.ExitStatus,
        errors: String
    ) async throws {
        let (result, requests) = try await self.run(["pause", "1", "2"]) { _, _, _ in
            .steered(jobs, running: false)
        }
        #expect(result == CommandResult(status: status, out: "", err: errors))
        let selector = Selector(jobs: [JobID(rawValue: 1), JobID(rawValue: 2)])
        #expect(requests == [.steer(action: .pause, selector: selector, keepPartial: false)])
    }

    @Test func `queries print one document`() async throws {
        let (list, _) = try await self.run(["list", "--json"]) { _, _, _ in
            .jobs([sampleJob(1, .queued)], counts: CountsDocument(states: ["queued": 1]))
        }
        #expect(list.out.hasPrefix("{\"counts\":{\"states\":{\"queued\":1},\"type\":\"counts\"},\"jobs\":[{"))
        #expect(list.out.hasSuffix("\"type\":\"list\"}\n"))
        let (log, _) = try await self.run(["log", "--json", "1"]) { _, _, _ in
            .log(job: sampleJob(1, .queued), attempts: [], events: [])
        }
        #expect(log.out.contains("\"attempts\":[]") && log.out.hasSuffix("\"type\":\"log\"}\n"))
        let (show, _) = try await self.run(["show", "1"]) { _, _, _ in .job(sampleJob(1, .queued)) }
        #expect(show.out.hasPrefix("job:        1\n"))
    }

    @Test func `version and help ask no service`() async throws {
        let result = try await withTemporaryFolder { folder in
            [
                try await FerryCLITests.run(["--version"], in: folder),
                try await FerryCLITests.run(["version", "--json"], in: folder),
                try await FerryCLITests.run(["help", "get"], in: folder),
            ]
        }
        #expect(result.map(\.status) == [.success, .success, .success])
        #expect(result[0].out == "ferry \(ferryVersion)\n")
        #expect(
            result[1].out == "{\"protocol_version\":1,\"type\":\"version\",\"version\":\"\(ferryVersion)\"}\n"
        )
        #expect(result[2].out == HelpText.text(for: .get))
    }
}
