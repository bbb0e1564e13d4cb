import FerryCore
import FerryFiles
import FerryStore
import Glibc

/// Commits the end of an attempt: the attempt's row, its hops, and what happens to the job.
struct AttemptLedger: Sendable {
    let services: TransferServices
    /// What the attempt has taught about the host.
    var budget = BudgetChange()

    /// Commits an end.
    ///
    /// - Returns: The changes to tell; none if the job was so already.
    func commit(_ end: AttemptEnd, of running: RunningJob) async throws -> [JobChange] {
        switch end {
        case .published(let file):
            return try await self.complete(running, outcome: "completed", message: nil) { transaction, job in
                job.path = file.path
                try transaction.save(
                    PublishedRecord(
                        path: file.path,
                        device: file.identity.device,
                        inode: file.identity.inode,
                        size: file.identity.size,
                        mtimeNs: file.identity.modifiedNanoseconds,
                        remote: file.remote.json,
                        job: job.id,
                        urlFingerprint: file.fingerprint
                    )
                )
            }
        case .leftAlone(let path, let message):
            return try await self.complete(running, outcome: "completed", message: message) { _, job in
                job.path = path
            }
        case .uploaded(let file):
            return try await self.complete(running, outcome: "completed", message: nil) { _, job in
                job.resultURL = file.resultURL
                job.bytesTotal = file.size
                job.bytesDurable = file.size
                job.lengthProved = true
            }
        case .failed(let failure):
            return try await self.fail(running, failure)
        case .stopped:
            return try await self.stop(running)
        case .storeFailed(let error):
            // Whatever it is, waiting can help, and looking again costs little: as for a full disk.
            let cause = TransferCause.local(errno: ENOSPC, path: "the job database")
            return try await self.fail(running, TransferFailure(cause, message: error.message))
        }
    }

    private func complete(
        _ running: RunningJob,
        outcome: String,
        message: String?,
        also: @escaping @Sendable (Transaction, inout JobRecord) throws -> Void
    ) async throws -> [JobChange] {
        let now = self.services.time.now()
        return try await self.services.store.write { transaction in
            try self.close(running, outcome: outcome, message: message, in: transaction, at: now)
            if var job = try transaction.job(running.id) {
                try also(transaction, &job)
                try transaction.save(job)
            }
            let result = try JobLedger.apply(.succeeded, to: running.id, in: transaction, at: now) {
                $0.message = message
            }
            return Self.changes(result)
        }
    }

    private func fail(_ running: RunningJob, _ failure: TransferFailure) async throws -> [JobChange] {
        let now = self.services.time.now()
        let configuration = self.services.configuration
        return try await self.services.store.write { transaction in
            guard let job = try transaction.job(running.id) else { return [] }
            let request = try transaction.request(running.id)
            let (decision, state) = RetryPlan.decide(
                failure.cause,
                policy: request.map { configuration.retryPolicy(for: $0) } ?? configuration.retry,
                state: job.retryState,
                now: now,
                random: { Double.random(in: 0..<1) }
            )
            let message = failure.message ?? RetryPlan.message(failure.cause, host: job.host)
            let result: LedgerResult
            switch decision {
            case .retry(after: let delay, counted: _):
                result = try JobLedger.apply(
                    .mustWait(.retry, until: self.budget.earliest(now + delay)),
                    to: job.id,
                    in: transaction,
                    at: now
                ) { row in
                    row.message = message
                    row.keep(state)
                }
            case .wait(let reason, after: let delay):
                let time = now + delay
                let until: Timestamp? =
                    switch failure.wait {
                    case .after(let wait): now + wait
                    case .room: nil
                    case nil: reason == .host ? self.budget.earliest(time) : time
                    }
                result = try JobLedger.apply(
                    .mustWait(reason, until: until),
                    to: job.id,
                    in: transaction,
                    at: now
                ) { row in
                    row.message = message
                    row.keep(state)
                }
            case .fail(.linkExpired, advice: _) where Renewal.isDue(job, request):
                result = try JobLedger.apply(
                    .mustWait(.auth, until: nil),
                    to: job.id,
                    in: transaction,
                    at: now
                ) { row in
                    row.message = "\(message); \(request?.renew ?? "") is asked for a new link"
                    row.keep(state)
                    row.renewals += 1
                    row.forgivenAttempts += 1
                }
            case .fail(let reason, advice: let advice):
                result = try JobLedger.apply(.failed(reason), to: job.id, in: transaction, at: now) { row in
                    row.message = reason == .linkExpired ? Renewal.message(message, job, request) : message
                    row.advice = advice ?? FailureAdvice.text(failure.cause, reason: reason)
                    row.keep(state)
                }
            }
            let changes = Self.changes(result)
            let outcome = changes.first?.event.reason ?? "failed"
            try self.close(running, outcome: outcome, message: message, in: transaction, at: now)
            return changes
        }
    }

    /// Applies what the stop was for; a cancelled job's partials go before it says so.
    private func stop(_ running: RunningJob) async throws -> [JobChange] {
        let now = self.services.time.now()
        let event = running.stopEvent ?? .interrupted
        guard event != .cancel else {
            try await self.services.store.write { transaction in
                try self.close(running, outcome: "cancelled", message: nil, in: transaction, at: now)
                // The job stays as it is until its partials are gone; see `Engine.cancel`.
                _ = try JobLedger.apply(.interrupted, to: running.id, in: transaction, at: now)
            }
            return []
        }
        return try await self.services.store.write { transaction in
            let outcome =
                switch event {
                case .pause: "paused"
                case .deadlinePassed: FailureReason.gaveUp.rawValue
                default: "interrupted"
                }
            let message = running.hasYielded ? "no connection yet, and jobs of other hosts waited" : nil
            try self.close(running, outcome: outcome, message: message, in: transaction, at: now)
            let words =
                event == .deadlinePassed ? try Engine.deadlineWords(running.id, transaction) : (nil, nil)
            let result = try JobLedger.apply(event, to: running.id, in: transaction, at: now) {
                $0.forgivenAttempts += 1
                ($0.message, $0.advice) = words
            }
            return Self.changes(result)
        }
    }

    private func close(
        _ running: RunningJob,
        outcome: String,
        message: String?,
        in transaction: Transaction,
        at now: Timestamp
    ) throws {
        for (host, budget) in self.budget.changed { try budget.save(as: host, in: transaction) }
        for hop in running.hops { try transaction.save(hop) }
        guard var attempt = try transaction.attempts(running.id).last(where: { $0.number == running.attempt })
        else { return }
        attempt.endedAt = now
        attempt.outcome = outcome
        attempt.message = message
        attempt.received = running.received
        try transaction.save(attempt)
    }

    private static func changes(_ result: LedgerResult) -> [JobChange] {
        if case .moved(let change) = result { [change] } else { [] }
    }
}

extension JobRecord {
    /// The counts that ``RetryPlan`` goes by.
    var retryState: RetryState {
        RetryState(
            attempts: self.attempts,
            transientTries: self.transientTries,
            doubtfulTries: self.doubtfulTries,
            progressAt: self.progressAt ?? self.createdAt,
            forgivenAttempts: self.forgivenAttempts
        )
    }

    /// Takes over the counts that ``RetryPlan`` has moved on.
    mutating func keep(_ state: RetryState) {
        self.transientTries = state.transientTries
        self.doubtfulTries = state.doubtfulTries
        self.forgivenAttempts = state.forgivenAttempts
    }
}
