import CFerryLinux
import FerryControl
import FerryCore
import Glibc

extension RunningCommand {
    /// `ferry get`: queues, follows, prints the path of each file.
    func get(_ order: TransferOrder) throws(FerryError) -> ExitStatus {
        let (session, added) = try order.destination.withFolder { () throws(FerryError) in
            let session = try self.session()
            return (session, try self.queue(order.requests, attach: true, session: session).added)
        }
        return try self.follow(added, session)
    }

    /// Follows what was queued to its end, and prints where each of the jobs has put its file.
    func follow(_ added: [AddedJob], _ session: Session) throws(FerryError) -> ExitStatus {
        var jobs: [JobID] = []
        var done = 0
        for entry in added {
            if let note = entry.note { self.console.note(note.shownLines) }
            switch entry.outcome {
            case .skipped:
                done += 1
            case .alreadyComplete:
                done += 1
                if let job = entry.job { try self.answer(job) }
            case .new, .same, .resumed:
                guard let job = entry.job else { throw Session.unexpected() }
                if !jobs.contains(job.id) { jobs.append(job.id) }
            }
        }
        self.console.out.flush()
        guard !jobs.isEmpty else { return .success }
        var follower = Follower(.jobs(jobs), session: session, console: self.console, printsAnswers: true)
        let end = try follower.run()
        return self.conclude(end, follower.state, session: session, successes: done)
    }

    /// `ferry wait`.
    func wait(_ selector: Selector, timeout: Duration?) throws(FerryError) -> ExitStatus {
        let session = try self.session()
        var jobs = selector.jobs
        if !selector.groups.isEmpty {
            let list = ControlRequest.list(selector: selector, host: nil, limit: nil, includeOld: false)
            guard case .jobs(let found, _) = try session.call(list) else { throw Session.unexpected() }
            jobs = found.map(\.id)
            guard !jobs.isEmpty else {
                let groups = selector.groups.joined(separator: " or ")
                throw FerryError(.unknownJob, "there is no job of the group \(groups)", exitStatus: .failed)
            }
        }
        var follower = Follower(
            .jobs(jobs),
            session: session,
            console: self.console,
            printsAnswers: false,
            timeout: timeout
        )
        let end = try follower.run()
        return self.conclude(end, follower.state, session: session)
    }

    /// `ferry run`.
    func runQueue(untilEmpty: Bool) throws(FerryError) -> ExitStatus {
        let session = try self.session()
        if session.hasDaemon {
            self.console.note("a daemon works on this queue already; showing what it does")
        }
        var follower = Follower(
            .queue,
            session: session,
            console: self.console,
            printsAnswers: false,
            untilEmpty: untilEmpty
        )
        let end = try follower.run()
        return self.conclude(end, follower.state, session: session)
    }

    /// Says what is left to say and gives the status; after a signal the process ends by that signal.
    private func conclude(
        _ end: Follower.End,
        _ state: FollowState,
        session: Session,
        successes: Int = 0
    ) -> ExitStatus {
        switch end {
        case .finished:
            let status = state.exitStatus(successes: successes)
            if status == .notFinished {
                let paused = state.openJobs.map(\.description).joined(separator: " ")
                self.console.note("paused: \(paused)\n'ferry resume \(paused)' queues that again")
            }
            return status
        case .timedOut:
            self.console.note("the time is over; not all jobs have ended")
            return .notFinished
        case .signal(let signal):
            self.console.note(Self.farewell(self.name, hasDaemon: session.hasDaemon))
            self.console.out.flush()
            self.console.err.flush()
            session.client.close()
            ferry_die_by_signal(signal)
            Glibc.exit(128 + signal)  // the way a shell writes it; reached only if the signal did not end us
        }
    }

    /// How to go on after a command was left.
    static func farewell(_ command: CommandName, hasDaemon: Bool) -> String {
        if hasDaemon {
            return "left; the daemon goes on with the queue\n'ferry list' shows it"
        }
        let again =
            command == .run
            ? "'ferry run' goes on" : "the same command again goes on, and so does 'ferry run'"
        let kept = command == .put ? "the upload stays in the queue" : "what was fetched is kept"
        return "stopped; \(kept)\n\(again); 'ferry list' shows the queue"
    }

    /// A job that was complete before: its path or URL, or its document.
    private func answer(_ job: JobDocument) throws(FerryError) {
        if self.console.json {
            try self.console.print(json: job)
        } else if let answer = JobText.answer(job) {
            self.console.out.line(answer)
        }
    }
}
