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
    /// `--json`: the report of a check as JSON.
    var wantsJSON = false
    /// `--digest ALGO` and the file whose digest is to be printed.
    var digest: Digest?
    /// `--version`.
    var wantsVersion = false
    /// `--help`.
    var wantsHelp = false

    /// What `--digest` names.
    struct Digest: Sendable, Equatable {
        let algorithm: DigestAlgorithm
        let path: String
    }

    /// The text of `ferryd --help`.
    static let help = """
        usage: ferryd [--state-dir DIR] [--socket PATH]

        The service of ferry: owns a queue of downloads and carries it out.
        Without options it serves the caller's own queue and stays until it is stopped.

          --state-dir DIR   the folder with the queue's state
          --socket PATH     the control socket, if not in its usual place
          --on-demand       run only the jobs of connected commands, end with the last one
          --status-fd N     write one line of JSON to this descriptor when ready, or why not
          --check           look for what is wrong with a queue that no service works on
          --repair          the same, and put right what can be put right without guessing
          --start-over      with --repair: keep a damaged database aside and begin a new one
                            with the jobs that can still be read; the others are lost
          --json            print the report of a check as JSON
          --digest ALGO FILE   print the digest of a file
          --version         print the version
          --help            print this

        """

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
            case "--json": options.wantsJSON = true
            case "--digest":
                let name = try value()
                guard let algorithm = DigestAlgorithm(userName: name), let path = rest.popFirst() else {
                    throw FerryError.usage("--digest needs an algorithm such as sha256, and a file")
                }
                options.digest = Digest(algorithm: algorithm, path: path)
            case "--version": options.wantsVersion = true
            case "--help", "-h": options.wantsHelp = true
            case "--state-dir": options.stateDirectory = try value()
            case "--socket": options.socketPath = try value()
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
        return options
    }
}
