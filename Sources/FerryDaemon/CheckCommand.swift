import FerryControl
import FerryCore
import FerryEngine
import FerryFiles
import Glibc

/// `ferryd --check` and `ferryd --repair`: look at a queue that no service works on.
enum CheckCommand {
    /// Looks, and gives the report's text.
    ///
    /// - Throws: ``FerryError`` `.busy` if a service owns the queue.
    static func run(
        _ location: QueueLocation,
        _ options: ServiceOptions
    ) throws(FerryError) -> (text: String, status: ExitStatus) {
        var check = StateCheck(location, now: EngineTime.real.now())
        check.repair = options.wantsRepair
        check.startOver = options.startsOver
        var info = stat()
        guard stat(location.stateDirectory, &info) == 0 || errno != ENOENT else {
            check.add("folder", .ok, "there is no queue in \(location.stateDirectory) yet")
            return try Self.report(check, options)
        }
        let folder = try StateFolder(locking: location.stateDirectory)
        check.checkSocket()
        check.run()
        withExtendedLifetime(folder) {}  // the lock is held to the end
        return try Self.report(check, options)
    }

    private static func report(
        _ check: StateCheck,
        _ options: ServiceOptions
    ) throws(FerryError) -> (text: String, status: ExitStatus) {
        let report = CheckReport(
            type: "check",
            stateDir: check.location.stateDirectory,
            findings: check.findings,
            damaged: check.isDamaged
        )
        guard options.json else {
            let lines = report.findings.map { FileName.display($0.line) + "\n" }
            return (lines.joined(), report.exitStatus)
        }
        do {
            return (String(decoding: try ControlJSON.encode(report), as: UTF8.self) + "\n", report.exitStatus)
        } catch {
            throw FerryError(.localIO, "the report cannot be written: \(error)", exitStatus: .failed)
        }
    }
}

/// `ferryd --digest`: computes the digest of a file, for commands that link no library for it.
enum DigestCommand {
    /// Computes the digest of a whole file and gives it as `ALGORITHM:HEX`.
    static func run(_ algorithm: DigestAlgorithm, path: String) throws(FerryError) -> String {
        do {
            let file = try OpenFile(reading: path)
            let size = try file.identity().size
            let digests = try file.digest(of: [algorithm], range: 0..<size)
            return (digests[algorithm]?.text ?? "") + "\n"
        } catch {
            throw FerryError(.localIO, "\(error)", exitStatus: .failed)
        }
    }
}
