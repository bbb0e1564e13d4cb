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
