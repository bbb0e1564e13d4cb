/// Reads what strace saw of a service, and tells where data could have been lost in a power cut.
///
/// Needs the output of `strace -f -y` with the calls in ``calls``. The rules:
///
/// - R1: what gets its final name was synced after its last write.
/// - R2: a new name (created, renamed, a made folder) is synced with its folder before the next commit.
/// - R3: at a commit nothing is unsynced. A body that flows on may break it and be right, hence ``dirtyCommits``.
/// - R4: a sync that fails is told, so that a test can look at what the service made of it.
struct SyncTrace {
    /// The system calls that are looked at.
    static let calls =
        "open,openat,openat2,creat,write,writev,pwrite64,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync,"
        + "rename,renameat,renameat2,link,linkat,mkdir,mkdirat"

    /// What broke a rule, with the line of the trace.
    private(set) var violations: [String] = []
    /// Syncs of partials and finished files.
    private(set) var dataSyncs = 0
    /// Syncs of the database's log: commits.
    private(set) var commits = 0
    /// Commits while a partial had unsynced writes.
    private(set) var dirtyCommits: [String] = []
    /// Partials that got their final name.
    private(set) var renames = 0

    /// The first line that wrote to a file and is not followed by a sync.
    private var unsynced: [String: Int] = [:]
    /// What happened in a folder and is not followed by a sync of it.
    private var names: [String: String] = [:]
    private var data: Set<String> = []
    private var unfinished: [Substring: Substring] = [:]

    /// Reads a whole trace.
    init(_ text: String) {
        for (index, line) in text.split(separator: "\n").enumerated() {
            guard let space = line.firstIndex(of: " ") else { continue }
            let thread = line[..<space]
            var call = line[space...].drop { $0 == " " }
            if call.hasSuffix("<unfinished ...>") {
                self.unfinished[thread] = call.dropLast("<unfinished ...>".count)
                continue
            }
            if call.hasPrefix("<... "), let end = call.firstRange(of: " resumed>") {
                call = (self.unfinished.removeValue(forKey: thread) ?? "") + call[end.upperBound...]
            }
            if let event = Event(call) { self.take(event, line: index + 1) }
        }
        for (folder, why) in self.names {
            self.violations.append("R2 end: \(folder) never synced after \(why)")
        }
    }

    private mutating func take(_ event: Event, line: Int) {
        switch event.name {
        case "fsync", "fdatasync":
            guard let path = event.file else { return }
            self.sync(path, event, line: line)
        case _ where !event.succeeded:
            return
        case "write", "writev", "pwrite64", "pwritev", "pwritev2", "ftruncate", "fallocate":
            if let path = event.file, self.data.contains(path), self.unsynced[path] == nil {
                self.unsynced[path] = line
            }
        case "open", "openat", "openat2", "creat":
            guard let path = event.opened, Self.isPartial(path) else { return }
            self.data.insert(path)
            if event.text.contains("O_CREAT") { self.note(path, "creating", line: line) }
        case "mkdir", "mkdirat":
            if let path = event.paths.first { self.note(path, "making", line: line) }
        case "rename", "renameat", "renameat2", "link", "linkat":
            guard event.paths.count == 2, Self.isPartial(event.paths[0]) else { return }
            self.rename(event.paths[0], to: event.paths[1], line: line)
        default:
            return
        }
    }

    private mutating func sync(_ path: String, _ event: Event, line: Int) {
        guard event.succeeded else {
            self.violations.append("R4 line \(line): \(event.name) of \(path) failed")
            return
        }
        self.unsynced[path] = nil
        self.names[path] = nil
        if self.data.contains(path) { self.dataSyncs += 1 }
        guard path.hasSuffix(".db-wal") else { return }
        self.commits += 1
        for (file, since) in self.unsynced {
            self.dirtyCommits.append(
                "R3 line \(line): a commit while \(file) has writes unsynced since \(since)"
            )
        }
        for (folder, why) in self.names {
            self.violations.append("R2 line \(line): a commit before \(folder) was synced after \(why)")
        }
        self.names = [:]
    }

    private mutating func rename(_ from: String, to: String, line: Int) {
        self.renames += 1
        if let since = self.unsynced.removeValue(forKey: from) {
            self.violations.append(
                "R1 line \(line): \(from) gets its name with writes unsynced since \(since)"
            )
        }
        self.data.insert(to)
        self.note(to, "renaming", line: line)
    }

    private mutating func note(_ path: String, _ what: String, line: Int) {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        self.names[String(path[..<slash])] = "\(what) \(path) in line \(line)"
    }

    private static func isPartial(_ path: String) -> Bool {
        path.contains(".ferry-part")
    }
}

extension SyncTrace {
    /// One system call that has returned.
    private struct Event {
        let name: Substring
        let text: Substring
        let succeeded: Bool
        /// The path of the descriptor that is the first argument.
        let file: String?
        /// The path of the descriptor that it returned.
        let opened: String?
        /// The paths it names, made absolute.
        let paths: [String]

        init?(_ text: Substring) {
            guard let match = text.firstMatch(of: /^(\w+)\((.*)\)\s+= (-?\d+)(?:<([^>]*)>)?/) else {
                return nil
            }
            self.name = match.1
            self.text = text
            self.succeeded = !match.3.hasPrefix("-")
            self.file = match.2.firstMatch(of: /^\d+<([^>]*)>/).map { String($0.1) }
            self.opened = match.4.map(String.init)
            self.paths = match.2.matches(of: /(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"/).map {
                path in
                path.2.hasPrefix("/") ? String(path.2) : "\(path.1 ?? "")/\(path.2)"
            }
        }
    }
}
