/// The commands of this release, in the order in which help lists them.
enum CommandName: String, CaseIterable, Sendable {
    case get, put, add, run, daemon, list, show, log, watch, wait
    case pause, resume, cancel, retry, remove, set, limit
    case resumeData = "resume-data"
    case verify, config, doctor, service, completions, version, help

    /// Those that steer jobs.
    static let steering: [CommandName] = [.pause, .resume, .cancel, .retry, .remove]

    /// What follows the name, as in the manual's synopsis.
    var operands: String {
        switch self {
        case .get, .add: "URL..."
        case .put: "FILE... URL"
        case .run, .daemon, .list, .config, .version: ""
        case .limit: "[RATE]"
        case .show, .log: "JOB"
        case .watch: "[JOB...]"
        case .resumeData: "export JOB|import FILE"
        case .verify: "JOB|FILE"
        case .doctor: ""
        case .wait: "JOB...|--group NAME"
        case .set: "JOB..."
        case .pause, .resume, .cancel, .retry, .remove: "JOB...|--group NAME|--state STATE|--all"
        case .service: "install|uninstall|status|print"
        case .completions: "bash|zsh|fish"
        case .help: "[COMMAND]"
        }
    }

    /// One line for the list of commands.
    var summary: String {
        switch self {
        case .get: "Download files and stay until they are there"
        case .put: "Upload files and stay until the server has them"
        case .add: "Queue downloads or uploads and return at once"
        case .run: "Keep the queue going until stopped"
        case .daemon: "Become the service that works on the queue"
        case .list: "List jobs, newest last"
        case .show: "Show all that is known about a job"
        case .log: "Show a job's history"
        case .watch: "Watch the queue at work, and steer it with keys"
        case .wait: "Wait until jobs have ended"
        case .pause: "Stop jobs until they are resumed"
        case .resume: "Go on with paused jobs"
        case .cancel: "Give jobs up and remove their partial files"
        case .retry: "Queue failed jobs again"
        case .remove: "Forget jobs that have ended"
        case .resumeData: "Write or take up what goes on with a stopped transfer"
        case .verify: "Check a finished file again"
        case .doctor: "Look for what is wrong, and repair it"
        case .set: "Change jobs"
        case .limit: "Show or set live limits"
        case .config: "Show the settings and where each comes from"
        case .service: "Install the service with systemd, or ask for it"
        case .completions: "Print what makes a shell complete commands"
        case .version: "Print the version"
        case .help: "Explain a command"
        }
    }

    /// The manual's text, one paragraph an element.
    var description: [String] {
        switch self {
        case .get:
            [
                "Queues a download for each URL, shows progress on standard error, and stays until each has "
                    + "ended. The final path of each file is printed on standard output, one a line.",
                "Ctrl-C leaves the jobs in the queue; the same command again goes on with them, and what was "
                    + "fetched already is not fetched again. Where a daemon runs, it goes on by itself.",
            ]
        case .put:
            [
                "Queues an upload of each FILE to URL, shows progress on standard error, and stays until each has "
                    + "ended. Where the server keeps each file is printed on standard output, one URL a line.",
                "A URL that ends in a slash gets the file's name at its end; several files need such a URL. With "
                    + "--form or --form-file a form is sent, and with --data-file the body of one request; there is "
                    + "no other FILE then. A FILE is a regular file that stays as it is until it is sent; one that "
                    + "changes fails the job.",
                "With - as FILE standard input is copied into the queue first, which needs as much space there, and "
                    + "sent from the copy.",
                "Ctrl-C leaves the jobs in the queue; the same command again goes on with them. Where a daemon "
                    + "runs, it goes on by itself.",
            ]
        case .add:
            [
                "Queues a download for each URL and prints the numbers of the jobs, one a line. When a number "
                    + "has been printed, that job survives a power cut.",
                "With --upload, --form, --form-file or --data-file it queues what 'ferry put' sends.",
                "Without a daemon nothing runs the jobs until some command does, such as 'ferry run'; this is "
                    + "said on standard error.",
            ]
        case .run:
            [
                "Keeps the service working on the whole queue, and shows progress, until it is stopped or, with "
                    + "--until-empty, until nothing is queued, running or waiting except for a schedule."
            ]
        case .daemon:
            [
                "Becomes ferryd, the service, which works on the queue until it is stopped. ferryd is looked "
                    + "for beside ferry and in ../libexec/ferry."
            ]
        case .list:
            [
                "Prints one line a job, newest last, and the number of jobs in each state: jobs that are not "
                    + "final, and those that ended within the last 24 hours."
            ]
        case .show:
            ["Prints state, reason, advice, validator, segments and times of one job."]
        case .log:
            [
                "Prints every attempt of a job with its requests, and what happened to the job, in order of time."
            ]
        case .watch:
            [
                "Shows the queue, or these jobs, on the whole terminal: totals and a graph of the rate, then each "
                    + "job with its bar, rate and time left, or with what it waits for and until when; groups "
                    + "under headings of their own. Keys choose a job and pause, resume, retry or cancel it; ? "
                    + "lists them. It only looks: no job runs because of it, and the queue goes on when it ends.",
                "Where standard output is no terminal, or one below 40 columns or 6 lines, it prints plain lines "
                    + "until it is stopped; with --json an object a line: events, progress, and each job that has "
                    + "ended.",
            ]
        case .wait:
            [
                "Waits until each job has ended; the exit status tells how. It carries the jobs out where no "
                    + "daemon does. A cancelled job counts as failed. With --group it waits for the jobs that "
                    + "'ferry list' shows of that group at that time."
            ]
        case .pause:
            [
                "Stops jobs until 'ferry resume'. What was fetched is kept. A job that is paused already is left so."
            ]
        case .resume:
            ["Queues paused jobs again. A job that waits is due now."]
        case .cancel:
            ["Gives jobs up for good and removes their partial files at once."]
        case .retry:
            ["Queues failed jobs again, with what was fetched already. A job that waits is due now."]
        case .remove:
            ["Forgets jobs that have ended. Completed files stay where they are."]
        case .resumeData:
            [
                "With export, writes a document (JSON) that holds all that is needed to go on with a transfer that "
                    + "is not over, here or in another queue: the whole URL without user name and password, what "
                    + "proves the remote object to be the same, and hashes of what was fetched; of an upload, where "
                    + "it is on the server, and hashes of the file. Header fields are not in it. It goes to standard output or, with -o, to a file that only its owner can read.",
                "With import, queues the transfer of such a document (- is standard input) and prints the number "
                    + "of the job. The partial file of a download is looked for in the folder of -d or else of the document, "
                    + "beside the document, and where it was, and read back: what the hashes prove is not fetched "
                    + "again. A partial in another folder is moved.",
                "The file of an upload is looked for in the folder of -d, or else where it was and beside the "
                    + "document; one that is not the same byte for byte is refused. The server is asked for how much "
                    + "it has. An upload by PUT or POST starts from 0, and one of a form or of standard input has no "
                    + "resume data, for what is sent goes with the job.",
            ]
        case .verify:
            [
                "Computes the digest of a completed job's file, or of any file, and compares it. An operand that "
                    + "is a number is a job; write ./7 for a file of that name."
            ]
        case .doctor:
            [
                "Looks at the queue's database and files, the service and the machine, and prints one line for "
                    + "each finding: ok, note or problem, and what helps. It works without a service and with a "
                    + "damaged database.",
                "With --repair it puts right what can be put right without guessing: counters, permissions, "
                    + "indexes, offsets beyond the end of a partial, names and secrets of jobs that are over, "
                    + "left files of uploads. Partial files that may be of use are listed and never removed. No "
                    + "service may work on the queue meanwhile. The exit status is 0 if all is well, 1 if "
                    + "problems remain, 12 if the database is damaged.",
            ]
        case .set:
            [
                "Changes jobs that are not final; what is so already is left so. A failed job is queued again. A "
                    + "running job goes on with a new priority, group, deadline or number of attempts; for anything "
                    + "else it stops and begins its next attempt with the change, which is no try.",
                "A new URL is asked before the command answers, and refused if the file there does not prove to "
                    + "be the same: it must have the same validator or size, and its bytes must be those that were "
                    + "fetched last. Header fields stay with the server that they were given for.",
            ]
        case .limit:
            [
                "Shows the limits that hold, or sets them. They hold at once and are kept until they are set to "
                    + "'default', which is what the configuration says.",
                "Under a lower limit the newest jobs of the lowest priority go back to the queue, which is no "
                    + "try. Those that could not go on later where they stopped end in their own time.",
                "RATE is bytes a second, such as 500K, 10M or 1.5MB, of all transfers together, with --host of those "
                    + "of that host; it holds for both directions together, and --down and --up for one. 'none' or 0 "
                    + "is no limit. A transfer keeps to every limit that fits it, that of its job included, and jobs "
                    + "get equal shares. What is set here comes before the calendar of the configuration, and this "
                    + "before its other keys.",
            ]
        case .service:
            [
                "install makes a unit of systemd for the ferryd that belongs to this ferry, enables and starts it, "
                    + "and puts manual pages and completions where they are found; it says each thing that it does. "
                    + "Run again, it brings all that up to date and allows further folders.",
                "Without --system it is a unit of the user's own systemd for the user's own queue; with --linger it "
                    + "starts with the machine and stays without a session.",
                "With --system, as root, it is the machine's queue, and user and group ferry are made for it. Files "
                    + "belong to user ferry and go only into folders that --allow-dir has named; root and members of "
                    + "group ferry reach it with 'ferry --system'.",
                "uninstall removes what install has made, and keeps the queue. status tells whether a service runs, "
                    + "and never starts one. print prints the unit and changes nothing.",
            ]
        case .completions:
            [
                "Prints a script that makes the shell complete commands, options, their values and the numbers of "
                    + "jobs. 'ferry service install' puts these in their places; by hand it is 'source <(ferry "
                    + "completions bash)' or 'ferry completions fish | source', and for zsh a file _ferry in a folder "
                    + "of fpath."
            ]
        case .config:
            [
                "Prints every setting, its value, and where it comes from: built in, a file, or a variable. Where "
                    + "the running service has another value, this is said. No service is started. What can be set "
                    + "is described in ferry-config(5)."
            ]
        case .version:
            ["Prints the version of ferry. No service is started."]
        case .help:
            ["Lists the commands, or explains one."]
        }
    }
}
