extension OptionTable {
    private static let stateWords = [
        "queued", "running", "waiting", "paused", "failed", "completed", "cancelled",
    ]

    /// Those of the commands that look at the queue and steer it.
    static let selection: [CommandOption] = [
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
    static let care: [CommandOption] = [
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

    static let service: [CommandOption] = [
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
}
