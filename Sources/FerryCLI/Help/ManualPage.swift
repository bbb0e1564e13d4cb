import FerryControl
import FerryCore

/// The source of ferry(1) in mdoc(7), made from the tables.
enum ManualPage {
    /// The whole page.
    static var text: String {
        var page = """
            .\\" Generated from the option table; do not edit.
            .Dd November 30, 2026
            .Dt FERRY 1
            .Os
            .Sh NAME
            .Nm ferry
            .Nd resumable bulk transfer manager
            .Sh SYNOPSIS

            """
        for command in CommandName.allCases {
            page += ".Nm\n.Cm \(command.rawValue)\n"
            // What nearly every command takes would only hide the rest here.
            for option in OptionTable.visible(for: command) where option.commands.count <= 7 {
                page += ".Op \(Self.flag(option))\n"
            }
            page += Self.operands(command)
        }
        page += Self.introduction
        page += ".Sh COMMANDS\n.Bl -tag -width Ds\n"
        for command in CommandName.allCases {
            page += ".It Cm \(command.rawValue)" + Self.inlineOperands(command) + "\n"
            page += command.description.map(Self.sentences).joined(separator: ".Pp\n")
        }
        page +=
            ".El\n.Sh OPTIONS\nLong options take their value as the next argument or after an equals sign.\n"
        page += "An argument\n.Ql --\nends the options.\n.Bl -tag -width Ds\n"
        for option in OptionTable.all where !option.hidden {
            page += ".It \(Self.flag(option))\n" + Self.commands(option) + Self.sentences(option.help)
        }
        page += ".El\n" + Self.states + Self.schedules + Self.json
        page += ".Pp\nFields of a job:\n" + Self.list(JSONFields.job)
        page += ".Pp\nFields of an event:\n" + Self.list(JSONFields.event)
        page += ".Pp\nFields of a line about progress:\n" + Self.list(JSONFields.progress)
        page += ".Pp\nFields of an attempt:\n" + Self.list(JSONFields.attempt)
        page += ".Pp\nFields of a finding:\n" + Self.list(JSONFields.finding)
        return page + Self.ending
    }

    private static let states = """
        .Sh JOBS
        A job is in one of seven states.
        .Bl -tag -width Ds
        .It queued
        Ready to run.
        .It running
        Works.
        .It waiting
        Cannot run now, will by itself, and says why: retry (after a failure),
        host (the server asked to come later), network, schedule, disk or auth.
        .It paused
        Stopped by a person.
        .It failed
        Waiting cannot help; everything fetched so far is kept.
        .It completed
        The file is in its place, or the server has confirmed the upload.
        .It cancelled
        Given up by a person; the partial file is removed.
        .El
        .Pp
        A job has ended when it is completed, failed or cancelled.

        """

    private static let json = """
        .Sh JSON OUTPUT
        With
        .Fl -json ,
        .Cm list
        prints one document of type \"list\" with jobs and counts,
        .Cm show
        a job,
        .Cm limit
        one of type \"limits\" with running, running_is_live (whether it was set with
        .Cm limit ) ,
        per_host, hosts (host, running and running_is_live of each) and rates (host,
        direction, bytes_per_s and source of each: live, calendar or configuration), and
        .Cm log
        one of type \"log\" with job, attempts and events.
        .Cm add
        prints a job a line;
        .Cm get ,
        .Cm put ,
        .Cm wait
        and
        .Cm run
        print events and progress, and a last line of type \"job\" for each job that
        has ended.
        .Cm doctor
        prints one document of type \"doctor\" with state_dir, findings, problems (how
        many remain) and damaged, and
        .Cm verify
        one of type \"verify\" with path, algorithm, expected, actual and matches.
        Every field is always there, null if unknown; times are in UTC as RFC 3339 has
        them.

        """

    private static func list(_ fields: [JSONFields.Field]) -> String {
        let items = fields.map { ".It \($0.name)\n" + Self.sentences($0.help) }
        return ".Bl -tag -width Ds -compact\n" + items.joined() + ".El\n"
    }

    private static let introduction = """
        .Sh DESCRIPTION
        .Nm
        keeps downloads and uploads in a queue on disk and carries them out,
        through lost links, server errors, full disks, crashes and reboots,
        until each is proved complete or has failed for a reason that it tells.
        The work is done by a service,
        .Sy ferryd ,
        which is started on demand and ends with the last command that needs it,
        unless it runs as a daemon.
        .Pp
        A file appears under its final name only when it is whole.
        Until then it is
        .Pa .NAME.JOB.ferry-part
        in the same folder.
        .Pp
        A file that is uploaded is read from its place; forms and standard input are
        built into one file in the folder of the queue first, which is sent as often as
        need be and removed when the job is final.

        """

    private static let ending = """
        .Sh ENVIRONMENT
        .Bl -tag -width Ds
        .It Ev FERRY_STATE_DIR
        Used in place of
        .Fl -state-dir .
        .It Ev XDG_STATE_HOME
        The queue is in
        .Pa $XDG_STATE_HOME/ferry ,
        else in
        .Pa ~/.local/state/ferry .
        .It Ev XDG_RUNTIME_DIR
        The service's socket is
        .Pa $XDG_RUNTIME_DIR/ferry/control.sock ,
        else it is in the folder of the queue.
        With
        .Fl -system
        both do not matter: the queue is in
        .Pa /var/lib/ferry
        and its socket is
        .Pa /run/ferry/control.sock .
        .It Ev http_proxy , https_proxy , all_proxy , no_proxy
        Proxies; read by the command and kept with the job.
        All but the first may be in capitals.
        .It Ev CURL_CA_BUNDLE , SSL_CERT_FILE
        Used in place of
        .Fl -cacert .
        .It Ev NO_COLOR
        No colour, if it is not empty.
        .El
        .Sh EXIT STATUS
        .Bl -tag -width Ds
        .It 0
        All that was asked is done, or was so already.
        .It 1
        Failed: none of it could be done, a job is unknown, the file given with
        .Fl o
        exists, or the folder cannot be used.
        .It 2
        Wrong use, or a file to send that is none; nothing was queued.
        .It 3
        Ended, but some items failed.
        .It 4
        Not finished: the time given with
        .Fl -timeout
        is over, or only paused jobs are left.
        .It 10
        No service can be reached or started.
        .It 11
        Service and command are of versions that do not understand each other.
        .It 12
        The job database is damaged or cannot be written.
        .El
        .Pp
        A signal ends
        .Nm
        by that signal, with the queue intact.
        .Sh EXAMPLES
        Download a file; the same command again goes on where it stopped:
        .Pp
        .Dl $ ferry get https://example.org/image.iso
        .Pp
        Queue two files into a folder and run the queue until it is empty:
        .Pp
        .Dl $ ferry add -d /srv/images https://example.org/a https://example.org/b
        .Dl $ ferry run --until-empty
        .Pp
        Upload a file under its own name, a form, and the output of a program:
        .Pp
        .Dl $ ferry put report.pdf https://example.org/inbox/
        .Dl $ ferry put --form title=July --form-file file=report.pdf https://example.org/form
        .Dl $ tar -cz folder | ferry put - https://example.org/inbox/folder.tar.gz
        .Pp
        What is left in the queue, for a program:
        .Pp
        .Dl $ ferry list --json
        .Pp
        A queue that starts with the machine, for one's own files and for all:
        .Pp
        .Dl $ ferry service install --linger
        .Dl # ferry service install --system --allow-dir /srv/files
        .Sh SEE ALSO
        .Xr ferry-config 5 ,
        .Xr ferryd 8

        """

    private static func flag(_ option: CommandOption) -> String {
        let short = option.short.map { "Fl \($0) | " } ?? ""
        let value = option.valueName.map { " Ar \(Self.argument($0))" } ?? ""
        return "\(short)Fl -\(option.long)\(value)"
    }

    private static func argument(_ name: String) -> String {
        let bare = name.filter { $0 != "'" }
        return bare.contains(" ") ? "\"\(bare)\"" : bare
    }

    private static func operands(_ command: CommandName) -> String {
        switch command {
        case .get, .add: ".Ar URL ...\n"
        case .put: ".Ar FILE ... URL\n"
        case .show, .log: ".Ar JOB\n"
        case .resumeData: ".Cm export Ar JOB | Cm import Ar FILE\n"
        case .verify: ".Ar JOB | FILE\n"
        case .doctor: ""
        case .set: ".Ar JOB ...\n"
        case .watch, .wait, .pause, .resume, .cancel, .retry, .remove: ".Op Ar JOB ...\n"
        case .service: ".Cm install | uninstall | status | print\n"
        case .completions: ".Cm bash | zsh | fish\n"
        case .help: ".Op Ar COMMAND\n"
        case .limit: ".Op Ar RATE\n"
        case .run, .daemon, .list, .config, .version: ""
        }
    }

    private static func inlineOperands(_ command: CommandName) -> String {
        switch command {
        case .get, .add: " Ar URL ..."
        case .put: " Ar FILE ... URL"
        case .show, .log: " Ar JOB"
        case .watch: " Op Ar JOB ... | Fl -group Ar NAME"
        case .resumeData: " Cm export Ar JOB | Cm import Ar FILE"
        case .verify: " Ar JOB | FILE"
        case .doctor: ""
        case .wait: " Ar JOB ... | Fl -group Ar NAME"
        case .set: " Ar JOB ..."
        case .pause, .resume, .cancel, .retry, .remove:
            " Ar JOB ... | Fl -group Ar NAME | Fl -state Ar STATE | Fl -all"
        case .service: " Cm install | uninstall | status | print"
        case .completions: " Cm bash | zsh | fish"
        case .help: " Op Ar COMMAND"
        case .limit: " Op Ar RATE"
        case .run, .daemon, .list, .config, .version: ""
        }
    }

    private static func commands(_ option: CommandOption) -> String {
        let names = option.commands.map(\.rawValue)
        return names.count > 7 ? "" : "(\(names.joined(separator: ", ")))\n"
    }

    /// Each sentence begins a line, as mdoc(7) wants it, and no line is longer than 80 bytes; a line that
    /// begins with a control character is shielded.
    private static func sentences(_ text: String) -> String {
        var lines: [String] = [""]
        for word in text.split(separator: " ") {
            let escaped = Self.escape(String(word))
            if lines[lines.count - 1].utf8.count + escaped.utf8.count > 77 { lines.append("") }
            let last = lines.count - 1
            lines[last] += (lines[last].isEmpty ? "" : " ") + escaped
            if word.hasSuffix("."), word.count > 2 { lines.append("") }
        }
        return lines.filter { !$0.isEmpty }.map { line in
            (line.hasPrefix(".") || line.hasPrefix("'") ? "\\&" : "") + line + "\n"
        }.joined()
    }

    private static func escape(_ word: String) -> String {
        var result = ""
        for character in word {
            switch character {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            default: result.append(character)
            }
        }
        return result
    }
}
