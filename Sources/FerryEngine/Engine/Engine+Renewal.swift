import FerryCore
import FerryFiles
import FerryStore

extension Engine {
    /// Programs that are asked for new links at once.
    private static let renewalsAtOnce = 4

    /// Asks the programs of jobs whose link has expired, as far as anybody wants those jobs.
    func renewLinks() async {
        guard !self.isStopping else { return }
        guard let jobs = try? await self.services.store.read({ try $0.expiredLinks() }) else {
            // The database refuses, and no timer of theirs would wake those jobs.
            let time = self.services.time
            Task { [weak self] in
                try? await time.sleep(.seconds(5))  // nobody cancels it
                await self?.renewLinks()
            }
            return
        }
        guard !self.isStopping else { return }
        for job in jobs
        where self.renewals[job.id] == nil && self.held[job.id] == nil && self.isWanted(job.id) {
            guard self.renewals.count < Self.renewalsAtOnce else { return }
            self.renewals[job.id] = Task { await self.renew(job.id) }
        }
    }

    /// Stops programs, whose jobs go on waiting for a link.
    func stopRenewals(where isMeant: (JobID) -> Bool) async {
        let stopped = self.renewals.filter { isMeant($0.key) }
        for renewal in stopped.values { renewal.cancel() }
        for renewal in stopped.values { await renewal.value }
    }

    private func renew(_ id: JobID) async {
        do {
            self.tell(try await self.newLink(for: id))
        } catch {
            // The database refuses; only a stop cuts it short.
            try? await self.services.time.sleep(.seconds(5))
        }
        self.renewals[id] = nil
        await self.renewLinks()
        await self.schedule()
    }

    /// Runs a job's program, and takes the link that it gives or gives up.
    private func newLink(for id: JobID) async throws -> [JobChange] {
        let row = try await self.services.store.read { reader in
            (
                try reader.job(id), try reader.request(id),
                try reader.file(id).map { RemoteObject(json: $0.remote) }
            )
        }
        guard let job = row.0, let request = row.1, job.state == .waiting, job.waitReason == .auth else {
            return []
        }
        guard let program = request.renew else {
            return try await self.giveUpLink(of: id, "there is no program that has a new link")
        }
        switch await self.renewal.ask(program, about: job, row.2) {
        case .stopped: return []
        case .failed(let clause): return try await self.giveUpLink(of: id, clause)
        case .url(let url):
            guard url != request.url else {
                return try await self.giveUpLink(of: id, "\(program) printed the same link again")
            }
            self.hold([id])
            defer { self.release([id]) }
            return try await self.adopt(url, by: program, job, request)
        }
    }

    /// Takes a new link for a job if it leads to the same object, as `set --url` does.
    private func adopt(_ url: String, by program: String, _ job: JobRecord, _ request: JobRequest)
        async throws
        -> [JobChange]
    {
        let changes = JobChanges(url: url)
        let configuration = self.services.configuration
        let now = self.services.time.now()
        let proof: URLProof.Proof
        do {
            let new = try Self.changed(request, changes, configuration, at: now).request
            proof = try await URLProof(
                services: self.services,
                job: job,
                request: new,
                isSameOrigin: Self.hasSameOrigin(request.url, url)
            ).run()
        } catch {
            let clause =
                "the link that \(program) gave cannot be used: "
                + Self.sentence(error, host: Self.host(of: url) ?? job.host)
            guard let failure = error as? TransferFailure else {
                return try await self.giveUpLink(of: job.id, clause)
            }
            return try await self.postponeLink(of: job, request, failure, clause)
        }
        return try await self.services.store.write { transaction in
            var told: [JobChange] = []
            var cleanups: Set<Int64> = []
            let answer = try Self.apply(
                changes,
                to: job.id,
                nil,
                SetPlan(proof: proof),
                configuration,
                in: transaction,
                at: now,
                &told,
                &cleanups
            )
            guard let error = answer.error else { return told }
            return try Self.giveUpLink(of: job.id, error, in: transaction, at: now)
        }
    }

    /// Lets a job wait whose new link could not be looked at; if waiting cannot help, it has failed.
    private func postponeLink(
        of job: JobRecord,
        _ request: JobRequest,
        _ failure: TransferFailure,
        _ clause: String
    ) async throws -> [JobChange] {
        let now = self.services.time.now()
        let (decision, state) = RetryPlan.decide(
            failure.cause,
            policy: self.services.configuration.retryPolicy(for: request),
            state: job.retryState,
            now: now,
            random: { Double.random(in: 0..<1) }
        )
        switch decision {
        case .fail: return try await self.giveUpLink(of: job.id, clause)
        case .retry(after: let delay, counted: _), .wait(_, after: let delay):
            return try await self.services.store.write { transaction in
                let result = try JobLedger.apply(
                    .renewLater(now + delay),
                    to: job.id,
                    in: transaction,
                    at: now
                ) { row in
                    row.message = clause
                    row.keep(state)
                    row.renewals = max(0, row.renewals - 1)  // it was not the link's fault
                }
                return result.change.map { [$0] } ?? []
            }
        }
    }

    private func giveUpLink(of id: JobID, _ clause: String) async throws -> [JobChange] {
        let now = self.services.time.now()
        return try await self.services.store.write { try Self.giveUpLink(of: id, clause, in: $0, at: now) }
    }

    private static func giveUpLink(
        of id: JobID,
        _ clause: String,
        in transaction: Transaction,
        at now: Timestamp
    )
        throws -> [JobChange]
    {
        let result = try JobLedger.apply(.renewalFailed, to: id, in: transaction, at: now) { row in
            row.message = FileName.display("the link has expired, and \(clause)")
        }
        return result.change.map { [$0] } ?? []
    }

    /// Refuses a program where none may be run.
    static func check(renew request: JobRequest, _ configuration: EngineConfiguration) throws {
        guard let program = request.renew else { return }
        guard request.kind == .download else { throw FerryError.usage("--renew is for downloads") }
        guard configuration.allowedFolders == nil else {
            throw FerryError.usage("--renew: this queue runs no programs; use a queue of your own for that")
        }
        guard program.hasPrefix("/"), !program.utf8.contains(0) else {
            throw FerryError.usage("--renew: the program's path has to be absolute")
        }
    }
}
