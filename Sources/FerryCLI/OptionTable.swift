/// An option's identity; what code asks for.
enum OptionID: String, CaseIterable, Sendable {
    case output, directory, ifExists, header, allowHTTP, caFile, attempts, deadline, stallTimeout
    case redact, resumeData, repair, startOver
    case checksum, sizeLimit, compressed, remoteTime, group, priority, notBefore, limitRate, url
    case window, after, renew
    case untilEmpty, keepPartial, timeout, state, ofGroup, host, limit, old, all, running, ofHost, down, up
    case user, allowDirectory, linger
    case upload, form, formFile, dataFile, method, transport, idempotencyKey, response
    case json, quiet, verbose, color, stateDirectory, system, help, version, manual
}

/// What an option's value must be; the parser checks it.
enum ValueKind: Equatable, Sendable {
    /// No value.
    case none
    /// Any text that is not empty.
    case text
    /// A file's path.
    case file
    /// A folder's path.
    case folder
    /// A whole number from 0.
    case number
    /// One of these words.
    case word([String])
    /// One or more of these words, separated by commas.
    case words([String])
    /// A span of time such as `90s`, `10m`, `8h`, `2d`.
    case duration
    /// A header field, `Name: value`.
    case header
    /// A digest, `ALGORITHM:HEX`.
    case checksum
    /// A number of bytes such as `10M`.
    case size
    /// Bytes a second such as `10M`, or `none`.
    case rate
    /// The same, or `default`.
    case liveRate
    /// The name of a group.
    case group
    /// A number from -100 to 100.
    case priority
    /// A point in time, `HH:MM`, `+8h`, a date or RFC 3339.
    case time
    /// Hours of the day, `22:00-06:00`, or `none`.
    case window
    /// The number of a job, or `none`.
    case job
    /// A host, `name` or `name:port`.
    case host
    /// A number from 1 to 1000, or `default`.
    case limit
}

/// One option: the single source for parser, help, manual and list files.
struct CommandOption: Sendable {
    /// Its identity.
    let id: OptionID
    /// The long name, without dashes.
    let long: String
    /// The short name.
    let short: Character?
    /// What help calls the value; nil for a flag.
    let valueName: String?
    /// What the value must be.
    let kind: ValueKind
    /// The key in a list's NDJSON lines; nil where an option is no matter of a job.
    let key: String?
    /// aria2's name for it in list files, where it differs or not.
    let aria2: String?
    /// May be given more than once; else the last one counts.
    let repeats: Bool
    /// Left out of help and manual.
    let hidden: Bool
    /// One sentence.
    let help: String
    /// The commands that take it.
    let commands: [CommandName]

    init(
        _ id: OptionID,
        _ long: String,
        short: Character? = nil,
        value: String? = nil,
        kind: ValueKind = .none,
        key: String? = nil,
        aria2: String? = nil,
        repeats: Bool = false,
        hidden: Bool = false,
        commands: [CommandName],
        help: String
    ) {
        self.id = id
        self.long = long
        self.short = short
        self.valueName = value
        self.kind = kind
        self.key = key
        self.aria2 = aria2
        self.repeats = repeats
        self.hidden = hidden
        self.help = help
        self.commands = commands
    }

    /// `-o, --output FILE`.
    var usage: String {
        let short = self.short.map { "-\($0), " } ?? "    "
        return "\(short)--\(self.long)" + (self.valueName.map { " \($0)" } ?? "")
    }
}

/// All options of all commands.
enum OptionTable {
    private static let transfers: [CommandName] = [.get, .put, .add]
    private static let downloads: [CommandName] = [.get, .add]
    private static let changeable = Self.transfers + [.set]
    private static let clients = CommandName.allCases.filter {
        ![.daemon, .completions, .version, .help].contains($0)
    }
    private static let stateWords = [
        "queued", "running", "waiting", "paused", "failed", "completed", "cancelled",
    ]

    /// The table, in the order of help.
    static let all: [CommandOption] =
        Self.transfer + Self.upload + Self.selection + Self.care + Self.service + Self.common

    private static let transfer: [CommandOption] = [
        CommandOption(
            .output,
            "output",
            short: "o",
            value: "FILE",
            kind: .file,
            key: "output",
            aria2: "out",
            commands: Self.downloads + [.set],
            help: "Write to FILE; its folder must exist."
        ),
        CommandOption(
            .directory,
            "dir",
            short: "d",
            value: "DIR",
            kind: .folder,
            key: "dir",
            aria2: "dir",
            commands: Self.downloads,
            help: "Write into DIR, which is created if it is missing."
        ),
        CommandOption(
            .ifExists,
            "if-exists",
            value: "WHAT",
            kind: .word(["fail", "rename", "overwrite", "skip", "update"]),
            key: "if_exists",
            commands: Self.downloads,
            help:
                "If the name is taken: fail (the default with -o), rename (the default without), overwrite, "
                + "skip, or update (only if the server has a newer version)."
        ),
        CommandOption(
            .header,
            "header",
            short: "H",
            value: "'NAME: VALUE'",
            kind: .header,
            key: "header",
            aria2: "header",
            repeats: true,
            commands: Self.changeable,
            help: "Send this header field; may be given more than once."
        ),
        CommandOption(
            .allowHTTP,
            "allow-http",
            key: "allow_http",
            commands: Self.changeable + [.resumeData],
            help: "Allow plain http, which anybody on the way can read and change."
        ),
        CommandOption(
            .caFile,
            "cacert",
            value: "FILE",
            kind: .file,
            key: "cacert",
            aria2: "ca-certificate",
            commands: Self.transfers + [.resumeData],
            help: "Trust the certificate authorities in FILE (PEM) in place of the system's."
        ),
        CommandOption(
            .attempts,
            "attempts",
            value: "N",
            kind: .number,
            key: "attempts",
            aria2: "max-tries",
            commands: Self.changeable,
            help: "Give up after N tries in all; 0 means no limit."
        ),
        CommandOption(
            .deadline,
            "deadline",
            value: "DURATION",
            kind: .duration,
            key: "deadline",
            commands: Self.changeable,
            help:
                "Give up when the job is not done DURATION after it was added, or with ferry set from now on; 0 "
                + "means no limit. A paused job does not run out; if its time has passed meanwhile, ferry resume "
                + "gives it all of it again, as ferry retry does."
        ),
        CommandOption(
            .stallTimeout,
            "stall-timeout",
            value: "DURATION",
            kind: .duration,
            key: "stall_timeout",
            aria2: "timeout",
            commands: Self.transfers,
            help:
                "Try again if not a byte comes or goes for DURATION, or fewer than 10 a second for five times as "
                + "long; 60s if it is not given, 0 means no limit. The answer to an upload may take five times as "
                + "long."
        ),
        CommandOption(
            .checksum,
            "checksum",
            value: "ALGO:HEX",
            kind: .checksum,
            key: "checksum",
            aria2: "checksum",
            commands: Self.downloads,
            help:
                "Save the file only if it has this digest; ALGO is sha256, sha512, sha1 or md5, another of the "
                + "SHA-2 family, or crc32c, crc32 or crc64nvme, which object stores name and which find only "
                + "accidents."
        ),
        CommandOption(
            .sizeLimit,
            "size-limit",
            value: "SIZE",
            kind: .size,
            key: "size_limit",
            commands: Self.downloads,
            help:
                "Fail if the file is larger than SIZE (such as 500M or 2G), at the latest while it is written."
        ),
        CommandOption(
            .compressed,
            "compressed",
            key: "compressed",
            commands: Self.downloads,
            help: "Ask for a compressed body and save it unpacked; such a download is never resumed."
        ),
        CommandOption(
            .remoteTime,
            "remote-time",
            key: "remote_time",
            aria2: "remote-time",
            commands: Self.downloads,
            help: "Give the file the date that the server names."
        ),
        CommandOption(
            .group,
            "group",
            value: "NAME",
            kind: .group,
            key: "group",
            commands: Self.changeable,
            help: "Put the job into the group NAME, to watch and steer it together with others."
        ),
        CommandOption(
            .priority,
            "priority",
            value: "N",
            kind: .priority,
            key: "priority",
            commands: Self.changeable,
            help: "Run before jobs of a lower N, which is from -100 to 100; without it N is 0."
        ),
        CommandOption(
            .notBefore,
            "not-before",
            value: "TIME",
            kind: .time,
            key: "not_before",
            commands: Self.changeable,
            help:
                "Wait until TIME: HH:MM or a date in local time, +DURATION such as +8h, or RFC 3339. A time that "
                + "has passed is no wait."
        ),
        CommandOption(
            .window,
            "window",
            value: "HH:MM-HH:MM",
            kind: .window,
            key: "window",
            commands: Self.changeable,
            help:
                "Run only between these hours of the caller's local time, such as 22:00-06:00; outside them the job "
                + "waits, and what it has is kept. none is no window."
        ),
        CommandOption(
            .after,
            "after",
            value: "JOB",
            kind: .job,
            key: "after",
            repeats: true,
            commands: Self.changeable,
            help:
                "Wait until JOB is completed, and fail if that fails; may be given more than once. none is no job."
        ),
        CommandOption(
            .renew,
            "renew",
            value: "PROGRAM",
            kind: .text,
            key: "renew",
            commands: Self.downloads + [.set],
            help:
                "When the link has expired (403 or 410), run PROGRAM, which gets the job as JSON and prints a new "
                + "URL as its only line; the download goes on if the file there is the same. none is no program."
        ),
        CommandOption(
            .limitRate,
            "limit-rate",
            short: "l",
            value: "RATE",
            kind: .rate,
            key: "limit_rate",
            aria2: "max-download-limit",
            commands: Self.changeable,
            help: "Transfer at most RATE bytes a second, such as 500K or 10M; 0 or none means no limit."
        ),
    ]

    private static let selection: [CommandOption] = [
        CommandOption(
            .url,
            "url",
            value: "URL",
            kind: .text,
            commands: [.set],
            help: "Fetch the rest from URL, if the file there proves to be the same."
        ),
        CommandOption(
            .untilEmpty,
            "until-empty",
            commands: [.run],
            help: "End when nothing is queued, running or waiting, except for a schedule."
        ),
        CommandOption(
            .keepPartial,
            "keep-partial",
            commands: [.cancel],
            help: "Leave the partial file where it is, and what a server has of an unfinished upload."
        ),
        CommandOption(
            .timeout,
            "timeout",
            value: "T",
            kind: .duration,
            commands: [.wait],
            help: "Stop waiting after T (such as 90s, 10m, 8h, 2d), with exit status 4."
        ),
        CommandOption(
            .state,
            "state",
            value: "STATE",
            kind: .words(Self.stateWords),
            repeats: true,
            commands: [.list] + CommandName.steering,
            help:
                "Only jobs that are queued, running, waiting, paused, failed, completed or cancelled; several "
                + "words are separated by commas."
        ),
        CommandOption(
            .ofGroup,
            "group",
            value: "NAME",
            kind: .group,
            repeats: true,
            commands: [.list, .watch, .wait] + CommandName.steering,
            help:
                "Only jobs of the group NAME; may be given more than once, and together with --state, where there "
                + "is one."
        ),
        CommandOption(
            .host,
            "host",
            value: "HOST",
            kind: .host,
            commands: [.list],
            help: "Only jobs of this host, on any port unless HOST is NAME:PORT."
        ),
        CommandOption(
            .ofHost,
            "host",
            value: "HOST",
            kind: .host,
            commands: [.limit],
            help: "The limits of this host, on each of its ports unless HOST is NAME:PORT."
        ),
        CommandOption(
            .running,
            "running",
            value: "N",
            kind: .limit,
            commands: [.limit],
            help:
                "Run N jobs at once (with --host: of that host), from 1 to 1000, or as many as the configuration "
                + "says (default)."
        ),
        CommandOption(
            .down,
            "down",
            value: "RATE",
            kind: .liveRate,
            commands: [.limit],
            help: "Receive at most RATE bytes a second, or none for no limit, or default."
        ),
        CommandOption(
            .up,
            "up",
            value: "RATE",
            kind: .liveRate,
            commands: [.limit],
            help: "Send at most RATE bytes a second, or none for no limit, or default."
        ),
        CommandOption(
            .limit,
            "limit",
            value: "N",
            kind: .number,
            commands: [.list],
            help: "Only the newest N jobs."
        ),
        CommandOption(
            .old,
            "all",
            commands: [.list],
            help: "Also jobs that ended more than 24 hours ago."
        ),
        CommandOption(
            .all,
            "all",
            commands: CommandName.steering,
            help: "All jobs whose state allows it."
        ),
    ]

    /// Those of `resume-data`, `verify` and `doctor`.
    private static let care: [CommandOption] = [
        CommandOption(
            .resumeData,
            "resume-data",
            value: "FILE",
            kind: .file,
            commands: [.cancel],
            help:
                "Write the job's resume data to FILE first, and leave the partial file where it is, and what a server "
                + "has of an upload; takes one job."
        ),
        CommandOption(
            .output,
            "output",
            short: "o",
            value: "FILE",
            kind: .file,
            commands: [.resumeData],
            help: "With export: write to FILE, with mode 0600, in place of standard output."
        ),
        CommandOption(
            .directory,
            "dir",
            short: "d",
            value: "DIR",
            kind: .folder,
            commands: [.resumeData],
            help:
                "With import: look for the partial in DIR, and let the file go there; of an upload, send the file of "
                + "that name in DIR."
        ),
        CommandOption(
            .redact,
            "redact",
            commands: [.resumeData],
            help:
                "With export: leave out the query of the URL, which may be a secret, and where an upload is on the "
                + "server."
        ),
        CommandOption(
            .header,
            "header",
            short: "H",
            value: "'NAME: VALUE'",
            kind: .header,
            repeats: true,
            commands: [.resumeData],
            help: "With import: send this header field; may be given more than once."
        ),
        CommandOption(
            .checksum,
            "checksum",
            value: "ALGO:HEX",
            kind: .checksum,
            commands: [.verify],
            help: "The digest that the file should have."
        ),
        CommandOption(
            .repair,
            "repair",
            commands: [.doctor],
            help: "Put right what can be put right without guessing."
        ),
        CommandOption(
            .startOver,
            "start-over",
            commands: [.doctor],
            help:
                "With --repair: keep a damaged database aside and begin a new one with the jobs that can still be "
                + "read; the others are lost."
        ),
    ]

    /// Those of `service`.
    private static let service: [CommandOption] = [
        CommandOption(
            .user,
            "user",
            commands: [.service],
            help: "The service of the user's own queue; the default."
        ),
        CommandOption(
            .allowDirectory,
            "allow-dir",
            value: "DIR",
            kind: .folder,
            repeats: true,
            commands: [.service],
            help:
                "Let the machine's queue write in DIR and what lies below it, which is created if it is missing; "
                + "may be given more than once."
        ),
        CommandOption(
            .linger,
            "linger",
            commands: [.service],
            help: "Let the user's services start with the machine and stay without a session."
        ),
    ]

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
