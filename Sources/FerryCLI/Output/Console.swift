import CFerryLinux
import FerryControl
import FerryCore
import Glibc

/// Standard output and standard error of a command, and how much is said on them.
final class Console {
    /// The answer.
    let out: Output
    /// Everything else.
    let err: Output
    /// `--json`.
    let json: Bool
    /// `-q`.
    let quiet: Bool
    /// `-v`.
    let verbose: Bool
    /// Colours of standard output.
    let outStyle: Style
    /// The caller's environment.
    let environment: [String: String]

    /// Reads the options that all commands share.
    init(
        _ arguments: Arguments,
        environment: [String: String],
        out: Output = Output(descriptor: 1),
        err: Output = Output(descriptor: 2)
    ) {
        self.out = out
        self.err = err
        self.json = arguments.has(.json)
        self.quiet = arguments.has(.quiet)
        self.verbose = arguments.has(.verbose)
        self.environment = environment
        let when = arguments.value(.color).flatMap(Style.When.init) ?? .auto
        self.outStyle = Style(when: when, isTerminal: self.out.isTerminal, environment: environment)
    }

    /// A note on standard error, unless `-q`.
    func note(_ text: String) {
        guard !self.quiet else { return }
        self.err.line("ferry: \(text)")
        self.err.flush()
    }

    /// An error on standard error.
    func error(_ text: String) {
        self.out.flush()
        self.err.line("ferry: \(text)")
        self.err.flush()
    }

    /// One JSON document on standard output, as a line.
    func print(json value: some Encodable) throws(FerryError) {
        do {
            self.out.line(try ControlJSON.encode(value))
        } catch {
            throw FerryError(.localIO, "the answer cannot be written as JSON: \(error)", exitStatus: .failed)
        }
    }

    /// The columns of standard output's terminal, 0 where it is none.
    var outColumns: Int { Int(ferry_terminal_columns(self.out.descriptor)) }

    /// The columns of standard error's terminal, 0 where it is none.
    var errorColumns: Int { Int(ferry_terminal_columns(self.err.descriptor)) }

    /// The rows of standard error's terminal, 0 where it is none.
    var errorRows: Int { Int(ferry_terminal_rows(self.err.descriptor)) }

    /// Writes what is held and ends the process.
    ///
    /// A reader of standard output that has gone ends the command by SIGPIPE, without a word.
    func exit(_ status: ExitStatus) -> Never {
        self.out.flush()
        if self.out.problem == EPIPE { ferry_die_by_signal(SIGPIPE) }
        if self.out.problem != 0 {
            let problem = String(cString: strerror(self.out.problem))
            self.err.line("ferry: cannot write to standard output: \(problem)")
            self.err.flush()
            Glibc.exit(status == .success ? ExitStatus.failed.rawValue : status.rawValue)
        }
        self.err.flush()
        Glibc.exit(status.rawValue)
    }
}
