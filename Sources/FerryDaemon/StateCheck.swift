import FerryControl
import FerryCore
import FerryFiles
import FerryStore
import Glibc

/// Looks at everything that a queue keeps on disk, and puts right what can be put right without guessing.
///
/// Blocks for as long as the disk needs. Without `repair` it changes nothing. Beside a running service it leaves
/// alone what that is working on.
struct StateCheck {
    /// The queue.
    let location: QueueLocation
    /// The jobs that run in the service that asks; nil without a service.
    var running: Set<JobID>?
    /// Put right what is safe to put right; only without a service.
    var repair = false
    /// Move a damaged database aside and begin a new one.
    var startOver = false
    /// The time.
    let now: Timestamp

    var findings: [Finding] = []
    private(set) var isDamaged = false

    init(_ location: QueueLocation, running: Set<JobID>? = nil, now: Timestamp) {
        self.location = location
        self.running = running
        self.now = now
    }

    var isLive: Bool { self.running != nil }
    var folder: String { self.location.stateDirectory }

    /// Looks at everything.
    mutating func run() {
        self.findings += MachineCheck(asking: self.folder, now: self.now).findings
        do {
            try self.checkPermissions()
            try self.checkBoard()
            try self.checkDatabase()
        } catch let error as StoreError where error.isDamage {
            self.damaged(error.detail)
        } catch {
            let error = error.asFinding
            self.isDamaged = self.isDamaged || error.exitStatus == .database
            self.add("database", .problem, error.message.firstLine, advice: error.message.hints)
        }
    }

    // MARK: Findings

    mutating func add(_ check: String, _ level: Finding.Level, _ message: String, advice: String? = nil) {
        self.findings.append(Finding(check, level, message, advice: advice))
    }

    /// Adds a problem, put right by `action` where that is wanted.
    mutating func add(
        _ check: String,
        _ message: String,
        repaired: String,
        by action: () throws -> Void
    ) throws {
        guard self.repair else {
            self.add(check, .problem, message, advice: "`ferry doctor --repair` puts that right")
            return
        }
        try action()
        self.findings.append(Finding(check, .ok, repaired, repaired: true))
    }

    private mutating func damaged(_ detail: String) {
        self.isDamaged = true
        self.add(
            "database",
            .problem,
            "the job database \(self.folder)/jobs.db is damaged: \(detail)",
            advice:
                "`ferry doctor --repair --start-over` keeps it aside and begins a new queue with the jobs that can "
                + "still be read; the others are lost"
        )
    }

    // MARK: The database

    private mutating func checkDatabase() throws {
        var condition = try StoreAudit.condition(directory: self.folder)
        if self.startOver, try self.mustStartOver(condition) {
            try self.beginAnew()
            condition = try StoreAudit.condition(directory: self.folder)
        }
        switch condition {
        case .missing, .new:
            self.add("database", .ok, "there is no job database yet")
            return
        case .foreign:
            self.isDamaged = true
            self.add(
                "database",
                .problem,
                "\(self.folder)/jobs.db belongs to another program",
                advice: "move it away, or name another folder with --state-dir"
            )
            return
        case .newer(let version):
            self.isDamaged = true
            self.add(
                "database",
                .problem,
                "the job database is of version \(version), written by a newer Ferry",
                advice: "use that Ferry"
            )
            return
        case .damaged(let detail):
            self.damaged(detail)
            return
        case .ours(let version, let current):
            if version < current {
                self.add("schema", .note, "version \(version); the next service brings it to \(current)")
            }
        }
        let audit = try StoreAudit(directory: self.folder)
        guard try self.checkIntegrity(audit) else { return }
        try self.checkRows(audit)
        try self.checkPartials(audit)
        try self.checkStrays(audit)
        try self.checkSpools(audit)
    }

    /// Whether the database is damaged beyond its indexes.
    private func mustStartOver(_ condition: StoreAudit.Condition) throws -> Bool {
        switch condition {
        case .damaged: return true
        case .missing, .new, .foreign, .newer: return false
        case .ours:
            let lines = try StoreAudit(directory: self.folder).integrity(quick: false)
            return !StoreAudit.isOnlyOfIndexes(lines)
        }
    }

    private mutating func beginAnew() throws {
        let result = try StoreSalvage(directory: self.folder, now: self.now).run()
        self.findings.append(
            Finding(
                "database",
                .ok,
                "the damaged database was kept as \(result.keptAs); "
                    + (result.jobs == 0
                        ? "none of its jobs could be read"
                        : "the new one has the \(result.jobs) of its jobs that could be read, of which "
                            + "\(result.offsets) kept what they had fetched"),
                repaired: true
            )
        )
    }

    /// Whether the file can be relied on.
    private mutating func checkIntegrity(_ audit: StoreAudit) throws -> Bool {
        let lines = try audit.integrity(quick: self.isLive)
        if lines.isEmpty {
            let name = self.isLive ? "quick check" : "integrity check"
            self.add("database", .ok, "\(name) passed")
        } else if StoreAudit.isOnlyOfIndexes(lines) {
            let folder = self.folder
            try self.add(
                "database",
                "an index does not fit its table: \(lines[0])",
                repaired: "indexes were made anew from their tables",
                by: { try StoreRepair(directory: folder).rebuildIndexes() }
            )
        } else {
            self.damaged(lines.prefix(3).joined(separator: "; "))
            return false
        }
        for line in try audit.strangers() {
            self.add(
                "rows",
                .problem,
                "the database holds \(line)",
                advice: "they do no harm; tell how that came about"
            )
        }
        return true
    }

    private mutating func checkRows(_ audit: StoreAudit) throws {
        let folder = self.folder
        let counters = try audit.wrongCounters()
        if counters.isEmpty {
            self.add("counters", .ok, "they fit the rows")
        } else {
            try self.add(
                "counters",
                "they do not fit the rows: \(Self.some(counters))",
                repaired: "the rows were counted anew",
                by: { try StoreRepair(directory: folder).recount() }
            )
        }
        for (job, problem) in try audit.impossibleJobs() {
            self.add(
                "jobs",
                .problem,
                "job \(job) \(problem)",
                advice: "`ferry cancel \(job)`, or `ferry remove \(job)` if it is over, and add it again"
            )
        }
        if !self.isLive {
            for job in try audit.runningJobs() {
                self.add(
                    "jobs",
                    .note,
                    "job \(job.id) was running when its service ended; the next one goes on with it"
                )
            }
        }
        let secrets = try audit.leftSecrets()
        if !secrets.isEmpty {
            try self.add(
                "secrets",
                "secrets of jobs that are over were not erased: \(Self.some(secrets))",
                repaired: "secrets of jobs that are over were erased",
                by: { try StoreRepair(directory: folder).eraseSecrets(of: secrets) }
            )
        }
        let reserved = try audit.leftReservations()
        if !reserved.isEmpty {
            try self.add(
                "names",
                "jobs that are over still reserve names: \(Self.some(reserved))",
                repaired: "names of jobs that are over were given up",
                by: { try StoreRepair(directory: folder).release(reserved) }
            )
        }
        let stale = try audit.staleCleanups()
        if !stale.isEmpty {
            try self.add(
                "clean-ups",
                "\(stale.count) wait for jobs that are over or gone",
                repaired: "\(stale.count) that waited for jobs that are over or gone were dropped",
                by: { try StoreRepair(directory: folder).forget(stale) }
            )
        }
        if let newest = try audit.newestEvent(), newest - self.now > .seconds(300) {
            self.add(
                "clock",
                .problem,
                "the newest entry of the log is of \(newest), which is still to come: the clock was set back",
                advice: "set the clock right; until then jobs may wait too long"
            )
        }
    }

    /// A few of many things, for a message.
    static func some(_ items: [some CustomStringConvertible]) -> String {
        let shown = items.prefix(5).map(\.description).joined(separator: ", ")
        return items.count > 5 ? "\(shown) and \(items.count - 5) more" : shown
    }
}

extension Error {
    /// The error as one of Ferry's own.
    fileprivate var asFinding: FerryError {
        switch self {
        case let error as FerryError: error
        case let error as StoreError: error.ferryError
        case let error as SystemError:
            FerryError(.localIO, error.description, exitStatus: .failed)
        default: FerryError(.localIO, "\(self)", exitStatus: .failed)
        }
    }
}

extension String {
    /// The sentence of an error's message.
    fileprivate var firstLine: String { self.split(separator: "\n").first.map(String.init) ?? self }

    /// The lines after it.
    fileprivate var hints: String? {
        let lines = self.split(separator: "\n").dropFirst()
        return lines.isEmpty ? nil : lines.joined(separator: " ")
    }
}
