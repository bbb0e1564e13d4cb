import CFerryLinux
import FerryControl
import FerryCore
import Glibc

extension RunningCommand {
    /// `ferry put`: queues, follows, prints the URL of each upload.
    func put(_ order: UploadArguments) throws(FerryError) -> ExitStatus {
        try self.checkInput(order)
        let session = try self.session()
        return try self.follow(try self.queue(order, attach: true, session: session).added, session)
    }

    /// `ferry add --upload`: prints the numbers of the jobs.
    func add(_ order: UploadArguments) throws(FerryError) -> ExitStatus {
        try self.checkInput(order)
        let (added, isRunning) = try self.queue(order, attach: false, session: try self.session())
        return try self.tell(added, isRunning: isRunning)
    }

    /// Refuses a standard input that is closed, before a socket takes its number.
    private func checkInput(_ order: UploadArguments) throws(FerryError) {
        guard order.readsInput else { return }
        var info = stat()
        guard fstat(self.surroundings.input, &info) == 0 else {
            throw .usage("ferry put -: standard input is closed")
        }
        guard info.st_mode & S_IFMT != S_IFDIR else {
            throw .usage("ferry put -: standard input is a folder")
        }
    }

    /// Sends an order to the service, after it has copied standard input where that is sent.
    private func queue(
        _ order: UploadArguments,
        attach: Bool,
        session: Session
    ) throws(FerryError) -> (added: [AddedJob], isRunning: Bool) {
        guard order.readsInput else {
            return try self.queue(order.requests, attach: attach, session: session)
        }
        let spool = try self.spool(session)
        var requests = order.requests
        for index in requests.indices { requests[index].upload?.body = .spool(path: spool.path) }
        do throws(FerryError) {
            let answer = try self.queue(requests, attach: attach, session: session)
            spool.keep()
            return answer
        } catch {
            // A service that was lost may have queued the job.
            if error.exitStatus == .noService { spool.keep() }
            throw error
        }
    }

    /// Copies standard input into the queue's spool folder.
    ///
    /// A signal removes what was copied and ends the command.
    private func spool(_ session: Session) throws(FerryError) -> InputSpool {
        if isatty(self.surroundings.input) == 1 {
            self.console.note("reading standard input; Ctrl-D ends it")
        }
        let signals = Signals()
        let spool = try InputSpool(session.location)
        do throws(InputSpool.Stop) {
            try spool.fill(from: self.surroundings.input, signals)
        } catch {
            unlink(spool.path)  // the process may end here, before the object does
            switch error {
            case .failure(let failure): throw failure
            case .signal(let signal):
                self.console.note("stopped while reading standard input; nothing was queued")
                self.console.out.flush()
                ferry_die_by_signal(signal)
                Glibc.exit(128 + signal)  // reached only if the signal did not end us
            }
        }
        return spool
    }
}
