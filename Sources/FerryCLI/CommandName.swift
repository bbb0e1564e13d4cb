/// The commands of this release, in the order in which help lists them.
enum CommandName: String, CaseIterable, Sendable {
    case get, put, add, run, daemon, list, show, log, wait, pause, resume, cancel, retry, remove, version,
        help

    /// Those that steer jobs.
    static let steering: [CommandName] = [.pause, .resume, .cancel, .retry, .remove]

    /// What follows the name, as in the manual's synopsis.
    var operands: String {
        switch self {
        case .get, .add: "URL..."
        case .put: "FILE... URL"
        case .run, .daemon, .list, .version: ""
        case .show, .log: "JOB"
        case .wait: "JOB..."
        case .pause, .resume, .cancel, .retry, .remove: "JOB...|--state STATE|--all"
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
        case .wait: "Wait until jobs have ended"
        case .pause: "Stop jobs until they are resumed"
        case .resume: "Go on with paused jobs"
        case .cancel: "Give jobs up and remove their partial files"
        case .retry: "Queue failed jobs again"
        case .remove: "Forget jobs that have ended"
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
        case .version:
            ["Prints the version of ferry. No service is started."]
        case .help:
            ["Lists the commands, or explains one."]
        }
    }
}
