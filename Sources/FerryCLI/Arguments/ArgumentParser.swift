import FerryCore

/// A command line taken apart: each option is known to its command and its value is of the right kind.
struct Arguments: Equatable, Sendable {
    /// The command.
    var command: CommandName
    /// The values of each option given, in order; a flag has the value "".
    var options: [OptionID: [String]] = [:]
    /// What is no option.
    var operands: [String] = []
    /// The values of `--form` and `--form-file` once more: the order among both is that of the form's parts.
    var form: [FormOption] = []

    /// Whether a flag or option was given.
    func has(_ id: OptionID) -> Bool { self.options[id] != nil }

    /// The value that counts: the last one.
    func value(_ id: OptionID) -> String? { self.options[id]?.last }

    /// All values, in order.
    func values(_ id: OptionID) -> [String] { self.options[id] ?? [] }
}

/// Takes a command line apart by the option table, as getopt_long(3) would, without abbreviations.
struct ArgumentParser {
    private var rest: ArraySlice<String>
    private var command: CommandName?
    private var given: [(option: CommandOption, value: String)] = []
    private var operands: [String] = []

    /// Parses what follows the program's name.
    ///
    /// - Throws: A usage error of one sentence.
    static func parse(_ words: [String]) throws(FerryError) -> Arguments {
        var parser = ArgumentParser(rest: words[...])
        return try parser.run()
    }

    private init(rest: ArraySlice<String>) {
        self.rest = rest
    }

    private mutating func run() throws(FerryError) -> Arguments {
        var optionsEnded = false
        while let word = self.rest.popFirst() {
            if optionsEnded || !word.hasPrefix("-") || word == "-" {
                try self.operand(word)
            } else if word == "--" {
                optionsEnded = true
            } else if word.hasPrefix("--") {
                try self.long(word)
            } else {
                try self.short(word)
            }
        }
        return try self.finish()
    }

    private mutating func operand(_ word: String) throws(FerryError) {
        guard self.command == nil else {
            self.operands.append(word)
            return
        }
        guard let command = CommandName(rawValue: word) else {
            if word.contains("://") {
                throw .usage("'\(word.shown)' is no command; to download it: ferry get URL")
            }
            let words = CommandName.allCases.map(\.rawValue)
            let hint = Suggestion.nearest(to: word, in: words).map { "did you mean '\($0)'?" }
            throw .usage("unknown command '\(word.shown)'; \(hint ?? "'ferry --help' lists them")")
        }
        self.command = command
    }

    private mutating func long(_ word: String) throws(FerryError) {
        let body = word.dropFirst(2)
        let equals = body.firstIndex(of: "=")
        let name = String(body[..<(equals ?? body.endIndex)])
        let attached = equals.map { String(body[body.index(after: $0)...]) }
        guard let option = OptionTable.long(name, for: self.command) else {
            throw self.unknown("--\(name)") { $0.long == name }
        }
        if option.kind == .none {
            guard attached == nil else { throw .usage("--\(name) takes no value") }
            self.given.append((option, ""))
        } else {
            try self.take(option, as: "--\(name)", attached: attached)
        }
    }

    private mutating func short(_ word: String) throws(FerryError) {
        var flags = word.dropFirst()
        while let flag = flags.popFirst() {
            guard let option = OptionTable.short(flag, for: self.command) else {
                throw self.unknown("-\(flag)") { $0.short == flag }
            }
            guard option.kind == .none else {
                try self.take(option, as: "-\(flag)", attached: flags.isEmpty ? nil : String(flags))
                return
            }
            self.given.append((option, ""))
        }
    }

    private mutating func take(
        _ option: CommandOption,
        as name: String,
        attached: String?
    ) throws(FerryError) {
        guard let value = attached ?? self.rest.popFirst() else {
            throw .usage("\(name) needs a value, \(option.valueName ?? "VALUE")")
        }
        try OptionValue.check(value, of: option, as: name)
        self.given.append((option, value))
    }

    private func unknown(_ name: String, _ matches: (CommandOption) -> Bool) -> FerryError {
        if let command = self.command,
            let owner = OptionTable.all.first(where: { matches($0) && !$0.hidden })?.commands.first
        {
            return .usage("ferry \(command.rawValue) has no option \(name); ferry \(owner.rawValue) has")
        }
        if self.command == nil, OptionTable.all.contains(where: { matches($0) && !$0.hidden }) {
            return .usage("\(name) must follow the command")
        }
        let visible = OptionTable.all.filter { option in
            !option.hidden && (self.command.map { option.commands.contains($0) } ?? true)
        }
        let nearest =
            name.hasPrefix("--") ? Suggestion.nearest(to: name, in: visible.map { "--\($0.long)" }) : nil
        let help = self.command.map { "'ferry help \($0.rawValue)' lists them" } ?? "see 'ferry --help'"
        return .usage("unknown option '\(name.shown)'; \(nearest.map { "did you mean '\($0)'?" } ?? help)")
    }

    private func finish() throws(FerryError) -> Arguments {
        guard let command = self.command else {
            if self.given.contains(where: { $0.option.id == .help }) { return Arguments(command: .help) }
            if self.given.contains(where: { $0.option.id == .version }) {
                return try self.collect(.version)
            }
            throw .usage("no command was given; 'ferry --help' lists them")
        }
        if self.given.contains(where: { $0.option.id == .help }) {
            return Arguments(command: .help, operands: [command.rawValue])
        }
        return try self.collect(command)
    }

    private func collect(_ command: CommandName) throws(FerryError) -> Arguments {
        var result = Arguments(command: command, operands: self.operands)
        for (option, value) in self.given {
            guard option.commands.contains(command) else {
                throw .usage("ferry \(command.rawValue) has no option --\(option.long)")
            }
            result.options[option.id, default: []].append(value)
            if [.form, .formFile].contains(option.id) {
                result.form.append(FormOption(id: option.id, value: value))
            }
        }
        return result
    }
}
