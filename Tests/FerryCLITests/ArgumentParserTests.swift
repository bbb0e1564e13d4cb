import FerryCore
import Testing

@testable import FerryCLI

@Suite struct ArgumentParserTests {
    static let good: [([String], Arguments)] = [
        (["list"], Arguments(command: .list)),
        (["get", "u"], Arguments(command: .get, operands: ["u"])),
        (["get", "-o", "f", "u"], Arguments(command: .get, options: [.output: ["f"]], operands: ["u"])),
        (["get", "-of", "u"], Arguments(command: .get, options: [.output: ["f"]], operands: ["u"])),
        (["get", "u", "--output=f"], Arguments(command: .get, options: [.output: ["f"]], operands: ["u"])),
        (
            ["get", "--output", "f=g", "u"],
            Arguments(command: .get, options: [.output: ["f=g"]], operands: ["u"])
        ),
        (["get", "--output=f=g"], Arguments(command: .get, options: [.output: ["f=g"]])),
        (
            ["get", "-qv", "u"],
            Arguments(command: .get, options: [.quiet: [""], .verbose: [""]], operands: ["u"])
        ),
        (
            ["get", "-qofile", "u"],
            Arguments(command: .get, options: [.quiet: [""], .output: ["file"]], operands: ["u"])
        ),
        (["get", "--", "-u", "--x"], Arguments(command: .get, operands: ["-u", "--x"])),
        (["get", "-"], Arguments(command: .get, operands: ["-"])),
        (
            ["get", "--output", "--", "u"],
            Arguments(command: .get, options: [.output: ["--"]], operands: ["u"])
        ),
        (
            ["add", "-H", "A: 1", "-H", "B: 2", "u"],
            Arguments(command: .add, options: [.header: ["A: 1", "B: 2"]], operands: ["u"])
        ),
        (
            ["--state-dir", "/q", "list", "--all"],
            Arguments(command: .list, options: [.stateDirectory: ["/q"], .old: [""]])
        ),
        (["pause", "--all"], Arguments(command: .pause, options: [.all: [""]])),
        (
            ["list", "--state", "paused,failed"],
            Arguments(command: .list, options: [.state: ["paused,failed"]])
        ),
        (
            ["wait", "--timeout", "90s", "3"],
            Arguments(command: .wait, options: [.timeout: ["90s"]], operands: ["3"])
        ),
        (["--help"], Arguments(command: .help)),
        (["-h"], Arguments(command: .help)),
        (["get", "--help"], Arguments(command: .help, operands: ["get"])),
        (["--version"], Arguments(command: .version, options: [.version: [""]])),
        (
            ["--version", "--json"],
            Arguments(command: .version, options: [.version: [""], .json: [""]])
        ),
    ]

    @Test(arguments: good)
    func `a good command line is taken apart`(words: [String], expected: Arguments) throws {
        #expect(try ArgumentParser.parse(words) == expected)
    }

    static let bad: [([String], String)] = [
        ([], "no command was given; 'ferry --help' lists them"),
        (["gte"], "unknown command 'gte'; did you mean 'get'?"),
        (["frobnicate"], "unknown command 'frobnicate'; 'ferry --help' lists them"),
        (["https://example.org/"], "'https://example.org/' is no command; to download it: ferry get URL"),
        (["get", "--outptu", "f"], "unknown option '--outptu'; did you mean '--output'?"),
        (["get", "--zzz"], "unknown option '--zzz'; 'ferry help get' lists them"),
        (["get", "-z"], "unknown option '-z'; 'ferry help get' lists them"),
        (["get", "-qz"], "unknown option '-z'; 'ferry help get' lists them"),
        (["list", "--until-empty"], "ferry list has no option --until-empty; ferry run has"),
        (["list", "-o", "f"], "ferry list has no option -o; ferry get has"),
        (["--output", "f", "get"], "--output must follow the command"),
        (["--json", "daemon"], "ferry daemon has no option --json"),
        (["get", "-o"], "-o needs a value, FILE"),
        (["get", "--dir"], "--dir needs a value, DIR"),
        (["get", "--dir="], "--dir needs a value that is not empty"),
        (["get", "--json=1"], "--json takes no value"),
        (["get", "--attempts", "-1"], "--attempts: '-1' is no whole number from 0"),
        (["get", "--attempts", "many"], "--attempts: 'many' is no whole number from 0"),
        (
            ["get", "--attempts=99999999999999999999"],
            "--attempts: '99999999999999999999' is no whole number from 0"
        ),
        (
            ["put", "--stall-timeout", "soon"],
            "--stall-timeout: 'soon' is no span of time such as 90s, 10m, 8h or 2d"
        ),
        (["set", "--stall-timeout", "5s"], "ferry set has no option --stall-timeout; ferry get has"),
        (["get", "--if-exists", "renam"], "--if-exists: 'renam' is unknown; did you mean 'rename'?"),
        (
            ["get", "--if-exists", "x"],
            "--if-exists: 'x' is unknown; it must be fail, rename, overwrite, skip or update"
        ),
        (["list", "--state", "pausde"], "--state: 'pausde' is unknown; did you mean 'paused'?"),
        (
            ["wait", "--timeout", "soon", "1"],
            "--timeout: 'soon' is no span of time such as 90s, 10m, 8h or 2d"
        ),
        (["get", "--color", "x"], "--color: 'x' is unknown; it must be auto, always or never"),
        (["get", "-H", "X"], "-H: a header field looks like 'Name: value', and this one has no colon"),
        (["get", "-H", "X: secret\r\nY: 1"], "-H: a header field must not hold a line break"),
        (["get", "-H", ": secret"], "-H: the name before the colon is no name of a header field"),
        (["get", "-H", "a b: secret"], "-H: the name before the colon is no name of a header field"),
        (["get", "-H", "X: secret\u{1}"], "-H: the value of X holds a control character"),
        (["get", "-o", "a\u{0}b"], "-o: the value holds a NUL character"),
    ]

    @Test(arguments: bad)
    func `a bad command line is one clear sentence and status 2`(words: [String], message: String) {
        let error = #expect(throws: FerryError.self) { try ArgumentParser.parse(words) }
        #expect(error == .usage(message))
    }

    @Test func `no error repeats a header's value`() {
        for (words, message) in Self.bad where words.joined().contains("secret") {
            #expect(!message.contains("secret"))
        }
    }

    @Test func `every option is reachable in the commands that claim it`() throws {
        for option in OptionTable.all where option.id != .help {
            for command in option.commands {
                let value = Self.sampleValue(option.kind)
                var forms = [["--\(option.long)"] + value]
                if let short = option.short {
                    forms.append(["-\(short)"] + value)
                    if let value = value.first { forms.append(["-\(short)\(value)"]) }
                }
                if let value = value.first { forms.append(["--\(option.long)=\(value)"]) }
                for form in forms {
                    let arguments = try ArgumentParser.parse([command.rawValue] + form)
                    #expect(arguments.values(option.id) == [value.first ?? ""], "\(command) \(form)")
                }
            }
        }
    }

    private static func sampleValue(_ kind: ValueKind) -> [String] {
        switch kind {
        case .none: []
        case .text: ["text"]
        case .file, .folder: ["/path"]
        case .number: ["7"]
        case .word(let words), .words(let words): [words.last ?? ""]
        case .duration: ["90s"]
        case .header: ["Name: value"]
        case .checksum: ["md5:d41d8cd98f00b204e9800998ecf8427e"]
        case .size: ["10M"]
        case .rate: ["none"]
        case .liveRate: ["500K"]
        case .group: ["nightly"]
        case .priority: ["-5"]
        case .time: ["+8h"]
        case .window: ["22:00-06:00"]
        case .job: ["12"]
        case .host: ["example.org:8443"]
        case .limit: ["default"]
        }
    }

    @Test func `the option table is consistent`() {
        for command in CommandName.allCases {
            let options = OptionTable.all.filter { $0.commands.contains(command) }
            #expect(Set(options.map(\.long)).count == options.count, "long names of \(command)")
            let short = options.compactMap(\.short)
            #expect(Set(short).count == short.count, "short names of \(command)")
        }
        for option in OptionTable.all {
            #expect((option.kind == .none) == (option.valueName == nil), "\(option.long)")
            #expect(option.help.hasSuffix("."), "\(option.long)")
            #expect(!option.commands.isEmpty, "\(option.long)")
        }
        #expect(Set(OptionTable.all.map(\.id)) == Set(OptionID.allCases))
        #expect(
            OptionTable.all.compactMap(\.aria2) == [
                "out", "dir", "header", "ca-certificate", "max-tries", "timeout", "checksum", "remote-time",
                "max-download-limit",
            ]
        )
    }

    @Test(arguments: [("get", "gte", 1), ("", "abc", 3), ("same", "same", 0), ("resume", "resmue", 1)])
    func `the distance counts a swap as one change`(left: String, right: String, expected: Int) {
        #expect(Suggestion.distance(left, right) == expected)
    }
}
