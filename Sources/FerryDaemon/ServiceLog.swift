import FerryCore
import FerryEngine
import Glibc
import Synchronization

/// The service's log: one line an event, `key=value`, no secrets.
///
/// A daemon writes to standard error, for journald with its level in front (sd-daemon(3)), which `systemd` takes
/// for the line's own; a service on demand writes to `ferryd.log` in the state folder.
final class ServiceLog: Sendable {
    /// Syslog's levels that are used.
    enum Level: Int, Sendable {
        case error = 3
        case warning = 4
        case info = 6

        var word: String {
            switch self {
            case .error: "error"
            case .warning: "warning"
            case .info: "info"
            }
        }
    }

    /// A log file that has grown past this is put aside at the next start, in bytes.
    static let limit = 1_048_576

    private let descriptor: Int32
    private let isJournal: Bool

    /// Logs to standard error.
    init(journal: Bool) {
        self.descriptor = 2
        self.isJournal = journal
    }

    /// Logs to a file; a file that cannot be opened loses the log, not the service.
    init(file: String) {
        var info = stat()
        if stat(file, &info) == 0, info.st_size > Self.limit { rename(file, file + ".1") }
        let descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        self.descriptor = descriptor >= 0 ? descriptor : 2
        self.isJournal = false
    }

    /// Writes one line.
    func write(_ level: Level, _ fields: KeyValuePairs<String, String?>) {
        var line =
            self.isJournal ? "<\(level.rawValue)>" : "time=\(EngineTime.real.now()) level=\(level.word) "
        line += fields.compactMap { key, value in value.map { "\(key)=\(Self.quote($0))" } }.joined(
            separator: " "
        )
        line += "\n"
        var bytes = Array(line.utf8)
        bytes.withUnsafeMutableBytes { bytes in
            // A log that is full stays silent.
            _ = Glibc.write(self.descriptor, bytes.baseAddress, bytes.count)
        }
    }

    /// A value with spaces or control characters in quotes.
    static func quote(_ value: String) -> String {
        let text = FileName.display(value)
        guard text.isEmpty || text.contains(where: { " \"=\\".contains($0) }) else { return text }
        return "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}
