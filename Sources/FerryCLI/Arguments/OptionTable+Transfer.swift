extension OptionTable {
    /// The options that transfers share; a job keeps them.
    static let transfer: [CommandOption] = [
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
}
