/// All options of all commands.
enum OptionTable {
    static let transfers: [CommandName] = [.get, .put, .add]
    static let downloads: [CommandName] = [.get, .add]
    static let changeable = Self.transfers + [.set]
    private static let clients = CommandName.allCases.filter {
        ![.daemon, .completions, .version, .help].contains($0)
    }

    /// The table, in the order of help.
    static let all: [CommandOption] =
        Self.transfer + Self.upload + Self.selection + Self.care + Self.service + Self.common

    private static let common: [CommandOption] = [
        CommandOption(
            .json,
            "json",
            commands: [
                .get, .put, .add, .run, .list, .show, .log, .watch, .wait, .limit, .resumeData, .verify,
                .config,
                .doctor, .service, .version,
            ],
            help: "Print JSON: one document for a query, one object a line for a stream."
        ),
        CommandOption(
            .quiet,
            "quiet",
            short: "q",
            commands: Self.clients,
            help: "Show no progress and no notes; errors are still printed."
        ),
        CommandOption(
            .verbose,
            "verbose",
            short: "v",
            commands: Self.clients,
            help: "Say more on standard error."
        ),
        CommandOption(
            .color,
            "color",
            value: "WHEN",
            kind: .word(["auto", "always", "never"]),
            commands: Self.clients,
            help: "Use colour always, never, or on a terminal (auto, the default)."
        ),
        CommandOption(
            .stateDirectory,
            "state-dir",
            value: "DIR",
            kind: .folder,
            commands: Self.clients + [.daemon],
            help: "Use the queue in DIR in place of the user's own."
        ),
        CommandOption(
            .system,
            "system",
            commands: Self.clients + [.daemon],
            help: "Use the machine's queue in place of the user's own."
        ),
        CommandOption(
            .help,
            "help",
            short: "h",
            commands: CommandName.allCases,
            help: "Explain the command."
        ),
        CommandOption(
            .version,
            "version",
            hidden: true,
            commands: [.version],
            help: "Print the version."
        ),
        CommandOption(
            .manual,
            "man",
            hidden: true,
            commands: [.help],
            help: "Print the manual page's source."
        ),
    ]

    /// The options that a command takes and help shows.
    static func visible(for command: CommandName) -> [CommandOption] {
        Self.all.filter { $0.commands.contains(command) && !$0.hidden }
    }

    /// An option by its long name; nil for the command means "before any command".
    static func long(_ name: String, for command: CommandName?) -> CommandOption? {
        Self.all.first { $0.long == name && Self.takes($0, command) }
    }

    /// An option by its short name; nil for the command means "before any command".
    static func short(_ name: Character, for command: CommandName?) -> CommandOption? {
        Self.all.first { $0.short == name && Self.takes($0, command) }
    }

    /// Whether an option may stand there; before the command only what concerns no single command may.
    private static func takes(_ option: CommandOption, _ command: CommandName?) -> Bool {
        guard let command else {
            return [.json, .quiet, .verbose, .color, .stateDirectory, .system, .help, .version].contains(
                option.id
            )
        }
        return option.commands.contains(command)
    }
}
