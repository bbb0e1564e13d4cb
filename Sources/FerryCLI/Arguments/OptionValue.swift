import FerryControl
import FerryCore

/// Checks and reads the values of options.
enum OptionValue {
    /// Checks a value against its kind.
    ///
    /// - Throws: A usage error that names the option; never the value of a header, which may be a secret.
    static func check(_ value: String, of option: CommandOption, as name: String) throws(FerryError) {
        guard !value.utf8.contains(0) else { throw .usage("\(name): the value holds a NUL character") }
        switch option.kind {
        case .none:
            break
        case .text, .file, .folder:
            guard !value.isEmpty else { throw .usage("\(name) needs a value that is not empty") }
        case .number:
            guard Self.number(value) != nil else {
                throw .usage("\(name): '\(value.shown)' is no whole number from 0")
            }
        case .word(let words):
            guard words.contains(value) else { throw Self.noWord(value, words, name) }
        case .words(let words):
            for word in value.split(separator: ",", omittingEmptySubsequences: false) {
                guard words.contains(String(word)) else { throw Self.noWord(String(word), words, name) }
            }
        case .duration:
            guard DurationText.parse(value) != nil else {
                throw .usage("\(name): '\(value.shown)' is no span of time such as 90s, 10m, 8h or 2d")
            }
        case .header:
            _ = try Self.header(value, as: name)
        case .checksum:
            guard Checksum(text: value) != nil else {
                throw .usage("\(name): '\(value.shown)' is no digest; write it as sha256:HEX")
            }
        case .size:
            guard let size = ByteCount(text: value), size.bytes > 0 else {
                throw .usage("\(name): '\(value.shown)' is no size such as 10M or 2G")
            }
        case .rate:
            guard RateText.parse(value) != nil else {
                throw .usage("\(name): '\(value.shown)' is no \(RateText.wanted)")
            }
        case .liveRate:
            _ = try Self.liveRate(value, as: name)
        case .group:
            if let problem = GroupName.problem(value) {
                throw .usage("\(name): the name of a group \(problem)")
            }
        case .priority:
            guard Self.priority(value) != nil else {
                throw .usage("\(name): '\(value.shown)' is no number from -100 to 100")
            }
        case .time:
            guard LocalTime.parse(value) != nil else {
                throw .usage(
                    "\(name): '\(value.shown)' is no time such as 22:00, +8h, 2026-12-24 or 2026-12-24T22:00:00Z"
                )
            }
        case .window:
            guard value == ScheduleOptions.none || ScheduleOptions.window(value) != nil else {
                throw .usage(
                    "\(name): '\(value.shown)' is no window such as 22:00-06:00, with two different ends"
                )
            }
        case .job:
            guard value == ScheduleOptions.none || JobID(value) != nil else {
                throw .usage("\(name): '\(value.shown)' is no number of a job; 'ferry list' shows them")
            }
        case .host:
            guard HostPattern(value) != nil else {
                throw .usage("\(name): '\(value.shown)' is no host such as example.org or example.org:8443")
            }
        case .limit:
            guard Self.limit(value) != nil else {
                throw .usage("\(name): '\(value.shown)' is no number from 1 to 1000 and not 'default'")
            }
        }
    }

    /// Reads a whole number from 0.
    static func number(_ text: String) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int(text)
    }

    /// Reads a DURATION; what is not there or none gives nil.
    static func milliseconds(_ text: String?) -> Int64? {
        guard let (seconds, attoseconds) = text.flatMap(DurationText.parse)?.components else { return nil }
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }

    /// Reads a whole number from -100 to 100, a plus sign allowed.
    static func priority(_ text: String) -> Int? {
        let digits = text.hasPrefix("-") || text.hasPrefix("+") ? text.dropFirst() : text[...]
        guard let value = Self.number(String(digits)), value <= 100 else { return nil }
        return text.hasPrefix("-") ? -value : value
    }

    /// Reads a limit for running jobs.
    static func limit(_ text: String) -> LimitChange.Value? {
        if text == "default" { return .configured }
        return Self.number(text).flatMap { (1...1_000).contains($0) ? .set($0) : nil }
    }

    /// Reads a rate, which is 0 for no limit.
    static func rate(_ text: String) -> Int64? { RateText.parse(text).map { $0.bytes ?? 0 } }

    /// Reads a limit on bytes a second.
    static func liveRate(_ text: String, as name: String) throws(FerryError) -> LimitChange.Rate {
        if text == "default" { return .configured }
        guard let choice = RateText.parse(text) else {
            throw .usage("\(name): '\(text.shown)' is no \(RateText.wanted) or 'default'")
        }
        return choice.bytes.map { .set($0) } ?? .unlimited
    }

    /// Reads `Name: value`; the name is a token, the value has no control characters (RFC 9110 §5.1, §5.5).
    static func header(_ text: String, as name: String) throws(FerryError) -> RequestHeader {
        guard !text.utf8.contains(where: { $0 == 10 || $0 == 13 }) else {
            throw .usage("\(name): a header field must not hold a line break")
        }
        guard let colon = text.utf8.firstIndex(of: 58) else {
            throw .usage("\(name): a header field looks like 'Name: value', and this one has no colon")
        }
        let field = String(text[..<colon])
        guard HTTPToken.isValid(field) else {
            throw .usage("\(name): the name before the colon is no name of a header field")
        }
        var value = text[text.index(after: colon)...]
        while let first = value.first, first == " " || first == "\t" { value.removeFirst() }
        while let last = value.last, last == " " || last == "\t" { value.removeLast() }
        guard !value.utf8.contains(where: { ($0 < 32 && $0 != 9) || $0 == 127 }) else {
            throw .usage("\(name): the value of \(field) holds a control character")
        }
        return RequestHeader(name: field, value: String(value))
    }

    private static func noWord(_ value: String, _ words: [String], _ name: String) -> FerryError {
        if let nearest = Suggestion.nearest(to: value, in: words) {
            return .usage("\(name): '\(value.shown)' is unknown; did you mean '\(nearest)'?")
        }
        let list = words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
        return .usage("\(name): '\(value.shown)' is unknown; it must be \(list)")
    }
}

extension String {
    /// The text without control and bidirectional characters, as it may reach a terminal.
    var shown: String { FileName.display(self) }

    /// The same, with its line breaks.
    var shownLines: String { self.split(separator: "\n").map { String($0).shown }.joined(separator: "\n") }
}
