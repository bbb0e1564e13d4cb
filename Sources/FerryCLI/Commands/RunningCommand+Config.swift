import FerryControl
import FerryCore
import Glibc

extension RunningCommand {
    /// `ferry config`: the service's program reads the configuration, so that there is one reader of it.
    ///
    /// - Returns: Why it could not be run; else it does not return.
    func showConfiguration(_ location: QueueLocation) -> FerryError {
        self.replaceByService(
            ["--print-config"] + (self.console.json ? ["--json"] : [])
                + Self.arguments(for: location)
        )
    }

    /// What makes `ferryd` serve a queue.
    static func arguments(for location: QueueLocation) -> [String] {
        location.isSystem
            ? ["--system"] : ["--state-dir", location.stateDirectory, "--socket", location.socketPath]
    }

    /// Replaces this process by the service's program.
    ///
    /// - Returns: Why that was not possible; else it does not return.
    func replaceByService(_ arguments: [String]) -> FerryError {
        let candidates = ServiceLauncher.standard.candidates
        guard let program = candidates.first(where: { access($0, X_OK) == 0 }) else {
            return FerryError(
                .noService,
                "the service's program is missing; looked for \(candidates.joined(separator: " and "))",
                exitStatus: .noService
            )
        }
        var pointers: [UnsafeMutablePointer<CChar>?] = (["ferryd"] + arguments).map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        pointers.append(nil)
        _ = signal(SIGPIPE, SIG_DFL)
        execv(program, pointers)
        let problem = String(cString: strerror(errno))
        return FerryError(.noService, "cannot run \(program): \(problem)", exitStatus: .noService)
    }
}
