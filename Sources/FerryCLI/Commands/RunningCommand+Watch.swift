import CFerryLinux
import FerryControl
import FerryCore
import Glibc

extension RunningCommand {
    /// `ferry watch`: a screen on a terminal, lines elsewhere.
    func watch(_ jobs: [JobID], groups: [String]) throws(FerryError) -> ExitStatus {
        let session = try self.session()
        guard let screen = try self.screen(jobs, groups, session) else {
            let query = WatchQuery(
                jobs: jobs,
                groups: groups,
                limit: jobs.isEmpty ? 100 : jobs.count,
                events: true
            )
            return try self.watchLines(query, session)
        }
        var running = screen
        try running.run()
        return .success
    }

    /// A screen, where there is a terminal that one fits on.
    private func screen(
        _ jobs: [JobID],
        _ groups: [String],
        _ session: Session
    ) throws(FerryError) -> WatchScreen? {
        let kind = self.console.environment["TERM"] ?? ""
        let size = WatchSize(
            columns: self.console.outColumns,
            rows: Int(ferry_terminal_rows(self.console.out.descriptor))
        )
        guard !self.console.json, self.console.out.isTerminal, size.isEnough, !["", "dumb"].contains(kind)
        else {
            return nil
        }
        // Asked before the screen is taken, so that what is wrong is told on the usual one.
        var state = WatchState(jobs: jobs, groups: groups, now: .now)
        state.take(try Self.look(state.query, session))
        guard let terminal = Terminal(output: self.console.out) else { return nil }
        return WatchScreen(state, session: session, console: self.console, terminal: terminal)
    }

    private func watchLines(_ query: WatchQuery, _ session: Session) throws(FerryError) -> ExitStatus {
        var follower = Follower(
            .queue,
            session: session,
            console: self.console,
            printsAnswers: false,
            looking: query
        )
        if case .signal(let signal) = try follower.run() {
            self.console.out.flush()
            ferry_die_by_signal(signal)
            Glibc.exit(128 + signal)  // the way a shell writes it; reached only if the signal did not end us
        }
        return .success
    }

    /// The part of the queue that a query asks for; jobs named by number have to exist.
    static func look(_ query: WatchQuery, _ session: Session) throws(FerryError) -> WatchedDocument {
        guard case .watched(let answer) = try session.call(.watch(query)) else { throw Session.unexpected() }
        let known = Set(answer.jobs.map(\.id))
        if let missing = query.jobs.first(where: { !known.contains($0) }) {
            throw FerryError(.unknownJob, "there is no job \(missing)", exitStatus: .failed)
        }
        return answer
    }
}
