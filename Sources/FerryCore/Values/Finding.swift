/// One result of a check: how things are, and what helps.
public struct Finding: Codable, Sendable, Equatable {
    /// How bad it is.
    public enum Level: String, Codable, Sendable, CaseIterable {
        /// As it should be.
        case ok
        /// Worth knowing; nothing has to be done.
        case note
        /// Wrong.
        case problem
    }

    /// What was looked at, in one word; stable, so that programs can branch on it.
    public var check: String
    /// How bad it is.
    public var level: Level
    /// One sentence.
    public var message: String
    /// What helps; nil where nothing is needed.
    public var advice: String?
    /// Whether it was wrong and has been put right just now; the level is then `ok`.
    public var repaired: Bool

    /// Makes a finding.
    public init(
        _ check: String,
        _ level: Level,
        _ message: String,
        advice: String? = nil,
        repaired: Bool = false
    ) {
        self.check = check
        self.level = level
        self.message = message
        self.advice = advice
        self.repaired = repaired
    }

    /// Writes every field, null where there is no advice.
    public func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(self.check, forKey: .check)
        try fields.encode(self.level, forKey: .level)
        try fields.encode(self.message, forKey: .message)
        try fields.encode(self.advice, forKey: .advice)
        try fields.encode(self.repaired, forKey: .repaired)
    }

    /// The same finding after the repair.
    public func whenRepaired(_ message: String) -> Finding {
        Finding(self.check, .ok, message, repaired: true)
    }

    /// `problem: disk: …; advice`, as a line for people.
    public var line: String {
        let word = self.repaired ? "repaired" : self.level.rawValue
        return "\(word): \(self.check): \(self.message)" + (self.advice.map { "; \($0)" } ?? "")
    }
}

/// All that a check has found, with the exit status that follows.
public struct CheckReport: Codable, Sendable, Equatable {
    /// Always `check` from `ferryd`, `doctor` from `ferry`.
    public var type: String
    /// The folder that was looked at.
    public var stateDir: String
    /// The results, in the order of the checks.
    public var findings: [Finding]
    /// How many problems remain.
    public var problems: Int
    /// Whether the database cannot be used as it is.
    public var damaged: Bool

    /// Makes a report.
    public init(type: String, stateDir: String, findings: [Finding], damaged: Bool) {
        self.type = type
        self.stateDir = stateDir
        self.findings = findings
        self.problems = findings.count { $0.level == .problem }
        self.damaged = damaged
    }

    /// 0 fine, 1 problems remain, 12 the database is damaged.
    public var exitStatus: ExitStatus {
        self.damaged ? .database : self.problems > 0 ? .failed : .success
    }
}
