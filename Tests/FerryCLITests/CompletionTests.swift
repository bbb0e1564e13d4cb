import FerryCore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryCLI

@Suite(.timeLimit(.minutes(5))) struct CompletionTests {
    @Test(arguments: [
        (CommandName.get, []), (.show, [Completion.jobs([])]), (.resume, [.jobs(["paused"])]),
        (.service, [.words(["install", "uninstall", "status", "print"])]),
        (.completions, [.words(["bash", "zsh", "fish"])]), (.help, [.commands]), (.list, []),
    ])
    func `operands are read from the synopsis`(command: CommandName, operands: [Completion]) {
        #expect(Completion.operands(of: command) == operands)
    }

    @Test(arguments: Shell.allCases)
    func `a script names every command and every option`(shell: Shell) {
        for command in CommandName.allCases { #expect(shell.script.contains(command.rawValue)) }
        for option in OptionTable.all where !option.hidden { #expect(shell.script.contains(option.long)) }
        #expect(!shell.script.contains("--man"))
    }

    @Test(arguments: Shell.allCases.filter { isThere($0) })
    func `the shell takes its script`(shell: Shell) async throws {
        try await withTemporaryFolder { folder in
            let path = try folder.write("script", shell.script)
            let result = try await ToolRunner.program(shell.rawValue).run(["-n", path])
            #expect(result.status == 0 && result.stderr.isEmpty, "\(result.stderr)")
        }
    }

    /// What TAB offers behind some words; the last one is being written.
    static let offers: [(words: [String], offers: [String])] = [
        (["sh"], ["show"]),
        (["res"], ["resume", "resume-data"]),
        (["add", "--if-exists", "o"], ["overwrite"]),
        (["list", "--state", "queued,f"], ["queued,failed"]),
        (["list", "--state-d"], ["--state-dir"]),
        (["show", ""], ["12", "7"]),
        (["resume", ""], ["7"]),
        (["show", "--system", ""], ["99"]),
        (["show", "--state-dir", "/q", ""], ["5"]),
        (["service", "un"], ["uninstall"]),
        (["service", "install", "--al"], ["--allow-dir"]),
        (["add", "--cacert", "fi"], ["file"]),
        (["completions", "z"], ["zsh"]),
        (["help", "rem"], ["remove"]),
        (["get", ""], []),
    ]

    @Test(.enabled(if: isThere(.bash)), arguments: offers)
    func `bash offers what fits`(words: [String], offers: [String]) async throws {
        let script = """
            source "$script"
            COMP_WORDS=(ferry "$@"); COMP_CWORD=$#; COMPREPLY=()
            _ferry ferry "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            [ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
            """
        #expect(try await Self.offered(.bash, ["--norc", "-c", script, "bash"] + words) == offers)
    }

    @Test(.enabled(if: isThere(.bash)))
    func `bash offers values behind an equals sign, which it takes as a word`() async throws {
        let script = """
            source "$script"
            COMP_WORDS=(ferry add --if-exists = o); COMP_CWORD=4; COMPREPLY=(); _ferry ferry o =
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        #expect(try await Self.offered(.bash, ["--norc", "-c", script]) == ["overwrite"])
    }

    @Test(.enabled(if: isThere(.fish)), arguments: offers)
    func `fish offers what fits`(words: [String], offers: [String]) async throws {
        let script = "source $script; complete -C \"ferry $argv\""
        let offered = try await Self.offered(.fish, ["--no-config", "-c", script] + words)
        #expect(offered.sorted() == offers.sorted())
    }

    /// Runs a shell where `ferry list` gives two jobs, another one in the machine's queue.
    private static func offered(_ shell: Shell, _ arguments: [String]) async throws -> [String] {
        try await withTemporaryFolder { folder in
            let list = """
                #!/bin/sh
                case "$*" in
                    *--system*) echo ' 99  queued  0 %  big' ;;
                    *'--state-dir /q'*) echo '  5  queued  0 %  big' ;;
                    *'--state paused'*) printf 'JOB  STATE  NAME\\n  7  paused  x\\n1 paused, 1 queued\\n' ;;
                    *) printf 'JOB  STATE  NAME\\n 12  queued  y\\n  7  paused  x\\n1 paused, 1 queued\\n' ;;
                esac
                """
            try folder.makeFolder("bin")
            let tool = try folder.write("bin/ferry", list)
            try #require(chmod(tool, 0o755) == 0)
            try folder.write("file", "")
            var runner = try ToolRunner.program(shell.rawValue).with(folder.environment).with([
                "PATH": folder.file("bin") + ":/usr/bin:/bin",
                "script": try folder.write("script", shell.script),
            ])
            runner.workingFolder = folder.path
            let result = try await runner.run(arguments)
            #expect(result.status == 0 && result.stderr.isEmpty, "\(result.stderr)")
            return result.stdout.split(separator: "\n").map { line in
                line.split(separator: "\t").first.map(String.init) ?? ""
            }
        }
    }

    private static func isThere(_ shell: Shell) -> Bool {
        ["/usr/bin", "/bin"].contains { access("\($0)/\(shell.rawValue)", X_OK) == 0 }
    }
}
