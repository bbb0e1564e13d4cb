import FerryCore

/// What `ferryd` was told on its command line.
struct ServiceOptions: Sendable, Equatable {
    /// `--on-demand`: runs the jobs of attached clients, and ends when the last client has gone.
    var onDemand = false
    /// `--status-fd N`: where readiness or the reason of a failed start is written, as one line of JSON.
    var statusDescriptor: Int32?
    /// `--state-dir D`.
    var stateDirectory: String?
    /// `--socket P`: another place for the control socket.
    var socketPath: String?
    /// `--check`: look at a queue that no service works on.
    var wantsCheck = false
    /// `--repair`: the same, and put right what is safe.
    var wantsRepair = false
    /// `--start-over`: with `--repair`, a damaged database is moved aside.
    var startsOver = false
    /// `--digest ALGO` and the file whose digest is to be printed.
    var digest: Digest?
    /// `--print-config`: prints the settings instead of serving.
    var printsConfiguration = false
    /// `--json`: prints the settings, or the report of a check, as JSON.
    var json = false
    /// `--system`: the machine's queue.
    var system = false
    /// `--allow-dir D`, absolute: where files may go to.
    var allowedFolders: [String] = []
    /// `--version`.
    var wantsVersion = false
    /// `--help`.
    var wantsHelp = false
    /// `--man`.
    var wantsManual = false

    /// The options as help and manual tell them.
    static let table: [(name: String, value: String?, help: String)] = [
        ("--state-dir", "DIR", "The folder with the queue's state."),
        ("--socket", "PATH", "The control socket, if not in its usual place."),
        (
            "--system", nil,
            "Serve the machine's queue, /var/lib/ferry, for root and the members of the group of this process."
        ),
        (
            "--allow-dir", "DIR",
            "Let files go only into DIR and what lies below it; may be given more than once. The machine's queue "
                + "writes nowhere without it."
        ),
        ("--on-demand", nil, "Run only the jobs of connected commands, and end with the last one."),
        ("--status-fd", "N", "Write one line of JSON to this descriptor when ready, or why not."),
        ("--check", nil, "Look for what is wrong with a queue that no service works on, then end."),
        ("--repair", nil, "The same, and put right what can be put right without guessing."),
        (
            "--start-over", nil,
            "With --repair: keep a damaged database aside and begin a new one with the jobs that can still be read; "
                + "the others are lost."
        ),
        ("--digest", "ALGO FILE", "Print the digest of a file, then end."),
        ("--print-config", nil, "Print the settings and where each comes from, then end."),
        ("--json", nil, "Print the settings or the report of a check as JSON."),
        ("--version", nil, "Print the version."),
        ("--help", nil, "Print a summary."),
    ]

    /// What `--digest` names.
    struct Digest: Sendable, Equatable {
        let algorithm: DigestAlgorithm
        let path: String
    }

    /// The text of `ferryd --help`.
    static var help: String {
        var text = """
            usage: ferryd [OPTION]...

            The service of ferry: owns a queue of downloads and carries it out.
            Without options it serves the caller's own queue and stays until it is stopped.


            """
        for option in Self.table {
            let usage = "  " + option.name + (option.value.map { " \($0)" } ?? "")
            var line = usage + String(repeating: " ", count: max(2, 20 - usage.count))
            for word in option.help.split(separator: " ") {
                if line.count + 1 + word.count > 79 {
                    text += line + "\n"
                    line = String(repeating: " ", count: 20)
                }
                line += (line.last == " " ? "" : " ") + word
            }
            text += line + "\n"
        }
        return text + "\n"
    }

    /// Where files may go to; nil is anywhere.
    var limits: [String]? { self.system || !self.allowedFolders.isEmpty ? self.allowedFolders : nil }

    /// Reads the arguments after the program's name.
    static func parse(_ arguments: [String]) throws(FerryError) -> ServiceOptions {
        var options = ServiceOptions()
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            var attached = parts.count > 1 ? String(parts[1]) : nil
            func value() throws(FerryError) -> String {
                defer { attached = nil }
                guard let value = attached ?? rest.popFirst(), !value.isEmpty else {
                    throw FerryError.usage("\(parts[0]) needs a value")
                }
                return value
            }
            switch String(parts[0]) {
            case "--on-demand": options.onDemand = true
            case "--check": options.wantsCheck = true
            case "--repair": options.wantsRepair = true
            case "--start-over": options.startsOver = true
            case "--digest":
                let name = try value()
                guard let algorithm = DigestAlgorithm(userName: name), let path = rest.popFirst() else {
                    throw FerryError.usage("--digest needs an algorithm such as sha256, and a file")
                }
                options.digest = Digest(algorithm: algorithm, path: path)
            case "--print-config": options.printsConfiguration = true
            case "--json": options.json = true
            case "--system": options.system = true
            case "--version": options.wantsVersion = true
            case "--help", "-h": options.wantsHelp = true
            case "--man": options.wantsManual = true
            case "--state-dir": options.stateDirectory = try value()
            case "--socket": options.socketPath = try value()
            case "--allow-dir":
                let folder = try value()
                guard folder.hasPrefix("/") else {
                    throw FerryError.usage("--allow-dir needs an absolute path, not \"\(folder)\"")
                }
                options.allowedFolders.append(folder)
            case "--status-fd":
                let text = try value()
                guard let number = Int32(text), number > 2 else {
                    throw FerryError.usage("--status-fd needs a descriptor above 2, not \"\(text)\"")
                }
                options.statusDescriptor = number
            default:
                throw FerryError.usage("ferryd does not know \"\(argument)\"; see ferryd --help")
            }
            if attached != nil { throw FerryError.usage("\(parts[0]) takes no value") }
        }
        if options.startsOver, !options.wantsRepair { throw FerryError.usage("--start-over needs --repair") }
        if options.json, !options.printsConfiguration, !options.wantsCheck, !options.wantsRepair {
            throw FerryError.usage("--json goes with --print-config, --check and --repair")
        }
        return options
    }
}
