import Dispatch
import FerryControl
import FerryCore
import FerryTestSupport
import Glibc
import Synchronization

@testable import FerryCLI

/// A service that answers from a script, on a real socket; no job ever runs.
final class FakeService: ControlHandler {
    /// Makes the answer to a request.
    typealias Answer = @Sendable (ControlRequest, ClientID, FakeService) throws -> ControlResponse

    private let answer: Answer
    private let log = Mutex<[ControlRequest]>([])
    private let server = Mutex<ControlServer?>(nil)

    /// Listens at `socket` until ``stop()``.
    init(socket: String, folder: TemporaryFolder, onDemand: Bool = true, answer: @escaping Answer) throws {
        self.answer = answer
        let server = try ControlServer(
            location: try QueueLocation(stateDirectory: folder.stateFolder, socketPath: socket),
            hello: Hello(
                protocolVersion: controlProtocolVersion,
                version: ferryVersion,
                pid: getpid(),
                onDemand: onDemand,
                stateDir: folder.stateFolder
            ),
            handler: self
        )
        self.server.withLock { $0 = server }
        server.start()
    }

    /// What was asked, in order.
    var requests: [ControlRequest] { self.log.withLock { $0 } }

    /// Sends notifications to a client.
    func notify(_ client: ClientID, _ notifications: [ControlNotification]) {
        let server = self.server.withLock { $0 }
        for notification in notifications { server?.notify(client, notification) }
    }

    /// Closes all connections.
    func stop() {
        self.server.withLock { $0 }?.stop()
    }

    func handle(_ request: ControlRequest, from client: ClientID) async throws(FerryError) -> ControlResponse
    {
        self.log.withLock { $0.append(request) }
        do {
            return try self.answer(request, client, self)
        } catch let error as FerryError {
            throw error
        } catch {
            throw FerryError(.unknownJob, "\(error)", exitStatus: .failed)
        }
    }

    func clientJoined(_ client: ClientID) async {}

    func clientLeft(_ client: ClientID) async {}
}

/// What a command printed and how it ended.
struct CommandResult: Equatable, Sendable {
    /// The status.
    var status: FerryCore.ExitStatus
    /// Standard output.
    var out: String
    /// Standard error.
    var err: String
}

/// Runs a command in this process, on a thread of its own, against the queue of a folder.
func run(_ words: [String], in folder: TemporaryFolder, input: Int32 = 0) async throws -> CommandResult {
    let outPath = try folder.write("stdout", "")
    let errPath = try folder.write("stderr", "")
    let status = await withCheckedContinuation { continuation in
        // A queue of its own, since a blocked thread of the shared pool would be missing to the service's tasks.
        DispatchQueue(label: "command").async { @Sendable in
            continuation.resume(returning: runHere(words, folder, input, out: outPath, err: errPath))
        }
    }
    return CommandResult(status: status, out: try folder.text("stdout"), err: try folder.text("stderr"))
}

/// The same on this thread.
private func runHere(
    _ words: [String],
    _ folder: TemporaryFolder,
    _ input: Int32,
    out: String,
    err: String
) -> FerryCore.ExitStatus {
    let outFile = open(out, O_WRONLY | O_APPEND)
    let errFile = open(err, O_WRONLY | O_APPEND)
    defer {
        close(outFile)
        close(errFile)
    }
    let output = Output(descriptor: outFile)
    let errors = Output(descriptor: errFile)
    var status = FerryCore.ExitStatus.usage
    do throws(FerryError) {
        let arguments = try ArgumentParser.parse(words)
        let console = Console(arguments, environment: folder.environment, out: output, err: errors)
        let caller = Surroundings(
            currentDirectory: folder.path,
            environment: folder.environment,
            umask: 0o022,
            input: input
        )
        status = try RunningCommand(arguments, surroundings: caller, console: console).run()
    } catch {
        errors.line("ferry: \(FerryCommand.text(error))")
        status = error.exitStatus
    }
    output.flush()
    errors.flush()
    return status
}
