/// The commands of this release, in the order in which help lists them.
enum CommandName: String, CaseIterable, Sendable {
    case get, add, run, daemon, list, show, log, wait, pause, resume, cancel, retry, remove, config
    case service, completions, version, help

    /// Those that steer jobs.
    static let steering: [CommandName] = [.pause, .resume, .cancel, .retry, .remove]

    /// What follows the name, as in the manual's synopsis.
    var operands: String {
        switch self {
        case .get, .add: "URL..."
        case .run, .daemon, .list, .config, .version: ""
        case .show, .log: "JOB"
        case .wait: "JOB..."
        case .pause, .resume, .cancel, .retry, .remove: "JOB...|--state STATE|--all"
        case .service: "install|uninstall|status|print"
        case .completions: "bash|zsh|fish"
        case .help: "[COMMAND]"
        }
    }

    /// One line for the list of commands.
    var summary: String {
        switch self {
        case .get: "Download files and stay until they are there"
        case .add: "Queue downloads and return at once"
        case .run: "Keep the queue going until stopped"
        case .daemon: "Become the service that works on the queue"
        case .list: "List jobs, newest last"
        case .show: "Show all that is known about a job"
        case .log: "Show a job's history"
        case .wait: "Wait until jobs have ended"
        case .pause: "Stop jobs until they are resumed"
        case .resume: "Go on with paused jobs"
        case .cancel: "Give jobs up and remove their partial files"
        case .retry: "Queue failed jobs again"
        case .remove: "Forget jobs that have ended"
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
        case .add:
            [
                "Queues a download for each URL and prints the numbers of the jobs, one a line. When a number "
                    + "has been printed, that job survives a power cut.",
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
        case .wait:
            [
                "Waits until each job has ended; the exit status tells how. It carries the jobs out where no "
                    + "daemon does. A cancelled job counts as failed."
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
