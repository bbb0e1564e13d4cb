import FerryControl
import FerryCore

/// A command's connection to the service; where the service dies, the next one is started.
final class Session {
    /// The queue.
    let location: QueueLocation
    /// The command, as error messages name it.
    let command: String
    /// The present connection.
    private(set) var client: ServiceClient
    /// Grows with each reconnection: what a service was told does not hold for the next one.
    private(set) var connection = 0

    /// Connects, and starts a service on demand where none runs.
    init(_ location: QueueLocation, command: CommandName) throws(FerryError) {
        self.location = location
        self.command = "ferry \(command.rawValue)"
        self.client = try ServiceClient.connect(location, start: .ifNeeded(command: self.command))
    }

    /// Whether a service works that stays when this command has gone.
    var hasDaemon: Bool { self.client.hello.onDemand == false }

    /// Sends a request and waits for its answer; asks the next service if this one goes meanwhile.
    ///
    /// Every request of a command may be sent twice: the same job again gives the same number, and what is so
    /// already counts as done. The next service knows nothing of what this connection stood for; see
    /// ``connection``.
    func call(_ request: ControlRequest) throws(FerryError) -> ControlResponse {
        var tries = 0
        while true {
            do throws(FerryError) {
                return try self.client.call(request)
            } catch {
                tries += 1
                guard tries < 4, self.isGone(after: error) else { throw error }
                try self.reconnect()
            }
        }
    }

    /// Whether an error means that the service has gone or goes.
    func isGone(after error: FerryError) -> Bool {
        if error.code == .stopping { return true }
        guard error.code == .noService else { return false }
        return (try? self.client.receive())?.last == .closed
    }

    /// Leaves the present service and connects to the next one.
    func reconnect() throws(FerryError) {
        self.client.close()
        self.connection += 1
        self.client = try ServiceClient.connect(self.location, start: .ifNeeded(command: self.command))
    }

    /// The error for an answer to another question.
    static func unexpected() -> FerryError {
        FerryError(
            .version,
            "the service gave an answer that does not belong to the question; use the ferryd that belongs to ferry",
            exitStatus: .versionMismatch
        )
    }
}
