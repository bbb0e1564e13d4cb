import FerryCore

/// A shell that `ferry completions` writes for.
enum Shell: String, CaseIterable, Sendable {
    case bash, zsh, fish

    /// Reads the operand of `ferry completions`.
    init(_ arguments: Arguments) throws(FerryError) {
        let words = Shell.allCases.map(\.rawValue)
        guard arguments.operands.count == 1, let word = arguments.operands.first else {
            throw .usage("ferry completions needs the name of a shell: \(words.joined(separator: ", "))")
        }
        guard let shell = Shell(rawValue: word) else {
            throw .usage(
                "ferry completions: '\(word.shown)' is unknown; it must be \(words.joined(separator: ", "))"
            )
        }
        self = shell
    }

    /// The script, made from the tables.
    var script: String {
        switch self {
        case .bash: BashCompletion.script
        case .zsh: ZshCompletion.script
        case .fish: FishCompletion.script
        }
    }
}

/// What may stand at a place of a command line.
enum Completion: Equatable, Sendable {
    /// Nothing that could be offered.
    case nothing
    /// One of these words.
    case words([String])
    /// Words with commas between them.
    case list([String])
    /// A file.
    case files
    /// A folder.
    case folders
    /// The number of a job in one of these states; all of them if there is none.
    case jobs([String])
    /// The name of a command.
    case commands

    /// What the value of an option may be; nil for an option without one.
    static func value(of option: CommandOption) -> Completion? {
        switch option.kind {
        case .none: nil
        case .file: .files
        case .folder: .folders
        case .word(let words): .words(words)
        case .words(let words): .list(words)
        default: option.valueName == "JOB" ? .jobs([]) : .nothing
        }
    }

    /// What the operands of a command may be, read from its synopsis.
    static func operands(of command: CommandName) -> [Completion] {
        var words: [String] = []
        var result: [Completion] = []
        let parts = command.operands.split { " |[].".contains($0) }.map(String.init)
        for (index, part) in parts.enumerated() {
            let belongsToOption = index > 0 && parts[index - 1].hasPrefix("-")
            switch part {
            case "JOB": result.append(.jobs(self.states(for: command)))
            case "FILE", "LIST": result.append(.files)
            case "DIR" where !belongsToOption: result.append(.folders)
            case "COMMAND": result.append(.commands)
            default:
                if !belongsToOption, part.allSatisfy({ $0.isLowercase || $0 == "-" }), !part.hasPrefix("-") {
                    words.append(part)
                }
            }
        }
        let distinct = result.enumerated().filter { !result[..<$0.offset].contains($0.element) }
        return (words.isEmpty ? [] : [.words(words)]) + distinct.map(\.element)
    }

    /// The states of the jobs that a command is about, where it is not about all.
    private static func states(for command: CommandName) -> [String] {
        switch command {
        case .resume: ["paused"]
        case .retry: ["failed", "waiting"]
        case .remove: ["completed", "failed", "cancelled"]
        case .pause: ["queued", "running", "waiting"]
        case .cancel: ["queued", "running", "waiting", "paused", "failed"]
        case .wait: ["queued", "running", "waiting"]
        default: []
        }
    }
}
