import FerryCore

/// What `ferry service` is asked to do.
struct ServiceOrder: Equatable, Sendable {
    /// The words that may follow.
    enum Action: String, CaseIterable, Sendable {
        case install, uninstall, status, print
    }

    /// What to do.
    var action: Action
    /// `--system`: the machine's service.
    var isSystem: Bool
    /// `--allow-dir`, absolute.
    var folders: [String]
    /// `--linger`.
    var linger: Bool

    /// Reads operands and options.
    ///
    /// - Throws: A usage error of one sentence.
    init(_ arguments: Arguments, in surroundings: Surroundings) throws(FerryError) {
        let words = Action.allCases.map(\.rawValue)
        guard let word = arguments.operands.first else {
            throw .usage("ferry service needs one of \(words.joined(separator: ", "))")
        }
        guard let action = Action(rawValue: word) else {
            let hint = Suggestion.nearest(to: word, in: words).map { "did you mean '\($0)'?" }
            throw .usage(
                "ferry service: '\(word.shown)' is unknown; \(hint ?? "it must be one of \(words.joined(separator: ", "))")"
            )
        }
        guard arguments.operands.count == 1 else {
            throw .usage("ferry service \(word) takes no operand such as '\(arguments.operands[1].shown)'")
        }
        self.action = action
        self.isSystem = arguments.has(.system)
        self.linger = arguments.has(.linger)
        guard !self.isSystem || !arguments.has(.user) else {
            throw .usage("--user and --system exclude each other")
        }
        guard !self.linger || (action == .install && !self.isSystem) else {
            throw .usage("--linger is for 'ferry service install --user'")
        }
        guard !arguments.has(.json) || action == .status else {
            throw .usage("--json is for 'ferry service status'")
        }
        let folders = arguments.values(.allowDirectory)
        guard folders.isEmpty || (self.isSystem && [.install, .print].contains(action)) else {
            throw .usage(
                "--allow-dir is for 'ferry service install --system'; a user's own queue writes where the user may"
            )
        }
        for folder in folders where folder.utf8.contains(where: { $0 < 32 || $0 == 127 }) {
            throw .usage("--allow-dir: '\(folder.shown)' holds a control character")
        }
        self.folders = folders.map { surroundings.absolute($0) }
    }
}
