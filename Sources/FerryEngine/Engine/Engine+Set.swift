public import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore

extension Engine {
    /// What was found out about a change of one job before it is committed.
    struct SetPlan: Sendable {
        var proof: URLProof.Proof?
        var move: PartialMove?
    }

    /// Changes jobs that are not final; when it returns, the changes are committed.
    ///
    /// A new URL is asked first, and refused unless the object there proves to be the same (see ``URLProof``).
    /// A running job takes up a priority, a group, a rate and a number of attempts as it is; for anything else its
    /// attempt ends, at no cost, and the next one begins with the change. A failed job is queued again. What is
    /// so already is a success.
    ///
    /// - Returns: An answer a job, in their order; a job that was refused is as it was.
    /// - Throws: ``FerryError`` `.usage` for values that no job can have.
    public func set(_ changes: JobChanges, _ ids: [JobID]) async throws -> [Steered] {
        try Self.check(priority: changes.priority, group: changes.group)
        await self.followClock()
        self.hold(ids)
        defer {
            self.release(ids)
            // A place may have come free for one that was held, or one that matters more now may be given one.
            Task { await self.schedule() }
        }
        var steered: [Steered] = []
        for start in stride(from: 0, to: ids.count, by: Self.steeringBatch) {
            let batch = Array(ids[start..<min(start + Self.steeringBatch, ids.count)])
            steered += try await self.set(changes, batch: batch)
        }
        return steered
    }

    private func set(_ changes: JobChanges, batch ids: [JobID]) async throws -> [Steered] {
        let now = self.services.time.now()
        let configuration = self.services.configuration
        var plans: [JobID: SetPlan] = [:]
        var refusals: [JobID: String] = [:]
        var restarting: [JobID] = []
        var moving: [JobID] = []
        for id in ids {
            let row = try await self.services.store.read { reader in
                (try reader.job(id), try reader.request(id))
            }
            guard let job = row.0, let old = row.1, !job.state.isFinal else { continue }
            if job.kind == .upload, changes.url != nil || changes.output != nil {
                refusals[id] = "URL and file of an upload stay as they are; cancel it and put it anew"
                continue
            }
            let new = try Self.changed(old, changes, configuration, at: now).request
            do {
                if new.url != old.url {
                    plans[id, default: SetPlan()].proof = try await URLProof(
                        services: self.services,
                        job: job,
                        request: new,
                        isSameOrigin: Self.hasSameOrigin(old.url, new.url),
                        isForPerson: true
                    ).run()
                }
                if new.output != old.output {
                    try self.checkIsNotState(DownloadTransfer.split(new.output ?? "").directory)
                    try await PartialMove.check(new, job: id, services: self.services)
                    moving.append(id)
                }
            } catch {
                refusals[id] = Self.sentence(error, host: Self.host(of: new.url) ?? job.host)
                continue
            }
            let mustRestart =
                new.url != old.url || new.headers != old.headers || new.output != old.output
                || changes.notBefore.map { $0 > now } ?? false
                || changes.window?.value.map { !$0.isOpen(at: now) } ?? false
                || changes.after.map { !$0.isEmpty } ?? false
            if mustRestart { restarting.append(id) }
        }
        await self.stopTransfers(of: restarting.filter { refusals[$0] == nil }, for: .interrupted)
        for id in moving where refusals[id] == nil {
            do {
                plans[id, default: SetPlan()].move = try await PartialMove.prepare(
                    to: changes.output ?? "",
                    job: id,
                    services: self.services
                )
            } catch {
                refusals[id] = error.asFerryError.message
            }
        }
        let (steered, told, cleanups) = try await self.services.store.write { [plans, refusals] transaction in
            var steered: [Steered] = []
            var told: [JobChange] = []
            var cleanups: Set<Int64> = []
            for id in ids {
                let answer = try Self.apply(
                    changes,
                    to: id,
                    refusals[id],
                    plans[id] ?? SetPlan(),
                    configuration,
                    in: transaction,
                    at: now,
                    &told,
                    &cleanups
                )
                steered.append(answer)
            }
            let records = cleanups.isEmpty ? [] : try transaction.cleanups()
            return (steered, told, records.filter { cleanups.contains($0.id) })
        }
        for cleanup in cleanups { try await Cleanup.carryOut(cleanup, self.services) }
        for answer in steered where answer.error != nil {
            await plans[answer.id]?.move?.undo(services: self.services)
        }
        if let rate = changes.limitRateBytes {
            for answer in steered where answer.error == nil { self.setRate(rate, of: answer.id) }
        }
        if let priority = changes.priority {
            for answer in steered where answer.error == nil { self.running[answer.id]?.priority = priority }
        }
        self.tell(told)
        if changes.after != nil { await self.attachDependencies(of: ids) }
        return steered
    }

    /// Commits the changes of one job, or tells why they cannot be.
    static func apply(
        _ changes: JobChanges,
        to id: JobID,
        _ refusal: String?,
        _ plan: SetPlan,
        _ configuration: EngineConfiguration,
        in transaction: Transaction,
        at now: Timestamp,
        _ told: inout [JobChange],
        _ cleanups: inout Set<Int64>
    ) throws -> Steered {
        guard var job = try transaction.job(id), let old = try transaction.request(id) else {
            return .unknown(id)
        }
        func refused(_ why: String) -> Steered { Steered(id: id, state: job.state, error: why) }
        guard !job.state.isFinal else {
            return refused("job \(id) is \(job.state.rawValue); nothing of it can be changed any more")
        }
        if let refusal { return refused("job \(id) is left as it was: \(refusal)") }
        let (new, address) = try self.changed(old, changes, configuration, at: now)
        let names = JobChanges.differences(old, new)
        if new.url != old.url, try plan.proof?.holds(for: job, transaction.file(id)) != true {
            return refused("job \(id) has gone on meanwhile; give the new URL once more")
        }
        if new.output != old.output {
            guard let move = plan.move, try move.commit(transaction, &job, &cleanups, at: now) else {
                return refused("job \(id) is left as it was: another job is going to write that file")
            }
        }
        if new.url != old.url, let proof = plan.proof, let address {
            job.url = address.redactedURL
            job.host = address.host
            if proof.wasCompared, var file = try transaction.file(id) {
                file.set(proof.remote, prefix: file.prefix)
                file.finalURL = proof.finalURL
                try transaction.save(file)
                job.bytesTotal = proof.remote.totalBytes
            }
        }
        if new != old {
            try transaction.replace(
                request: new,
                redactedURL: job.url,
                urlFingerprint: new.url == old.url ? nil : address?.urlFingerprint,
                of: id
            )
        }
        job.priority = new.priority
        job.group = new.group
        if let time = changes.notBefore { job.notBefore = time > now ? time : nil }
        if let window = changes.window {
            job.window = window.value
            job.windowFrom = nil
        }
        if let others = changes.after {
            try self.check(after: others, of: id, in: transaction)
            try JobSchedule.set(after: others, of: &job, in: transaction)
        }
        try transaction.save(job)
        if !names.isEmpty {
            let event = try transaction.append(
                event: "set",
                job: id,
                state: job.state,
                reason: nil,
                message: names.joined(separator: ", "),
                at: now
            )
            let remote = try transaction.file(id).map { RemoteObject(json: $0.remote) }
            told.append(JobChange(event: event, job: job, remote: remote, deadline: new.deadlineAt))
        }
        let mends =
            new.url != old.url || new.headers != old.headers || new.output != old.output
            || new.renew != old.renew
        for event in self.moves(of: job, changes.notBefore, mends: mends, at: now) {
            let result = try JobLedger.apply(event, to: id, in: transaction, at: now)
            if case .moved(let change) = result { told.append(change) }
        }
        if changes.window != nil || changes.after != nil,
            let change = try JobSchedule.reconsider(id, in: transaction, at: now)
        {
            told.append(change)
        }
        return Steered(id: id, state: try transaction.job(id)?.state, error: nil)
    }

    /// What follows for the state of a job that was changed: a failed one is tried again, one that is to begin
    /// later waits, and one whose trouble the change may have ended is due.
    static func moves(of job: JobRecord, _ notBefore: Timestamp?, mends: Bool, at now: Timestamp)
        -> [JobEvent]
    {
        let retry: [JobEvent] = job.state == .failed ? [.retry] : []
        if let notBefore {
            let waitsLonger =
                job.state == .waiting && job.waitReason != .schedule
                && job.nextTry.map { $0 >= notBefore } ?? true
            if notBefore > now { return waitsLonger ? [] : retry + [.schedule(notBefore)] }
            if job.waitReason == .schedule { return [.due] }
        }
        return mends && job.state == .waiting && job.waitReason != .schedule ? [.due] : retry
    }

    /// The request with its changes and, if there is a new URL, what the store has to know of that.
    ///
    /// Credentials stay with the origin that they were given for.
    static func changed(
        _ old: JobRequest,
        _ changes: JobChanges,
        _ configuration: EngineConfiguration,
        at now: Timestamp
    ) throws -> (request: JobRequest, address: NewJob?) {
        var new = changes.applied(to: old)
        if changes.deadlineMs != nil { new.beginDeadline(at: now) }
        if changes.renew != nil { try self.check(renew: new, configuration) }
        guard let url = changes.url else { return (new, nil) }
        let deadlineAtMs = new.deadlineAtMs
        let given = Set(changes.headers.map { $0.name.lowercased() })
        let replacesUser = (try? URLParser.parse(url))?.address.hasUserInfo == true
        let isSameOrigin = self.hasSameOrigin(old.url, url)
        new.headers = new.headers.filter { header in
            let name = header.name.lowercased()
            if given.contains(name) { return true }
            if !isSameOrigin { return RedirectPlan.mayCross(header: name) }
            return !(replacesUser && name == "authorization")
        }
        let checked = try self.check(new, configuration, at: now)
        var request = checked.request
        request.deadlineAtMs = deadlineAtMs  // a check is for new jobs, and begins it anew
        return (request, checked.new)
    }

    static func hasSameOrigin(_ left: String, _ right: String) -> Bool {
        guard let left = try? URLParser.parse(left), let right = try? URLParser.parse(right) else {
            return false
        }
        return left.address.origin == right.address.origin
    }

    static func host(of url: String) -> String? {
        (try? URLParser.parse(url))?.address.origin.hostAndPort
    }

    /// What speaks against a change, as the end of a sentence.
    static func sentence(_ error: any Error, host: String) -> String {
        guard let failure = error as? TransferFailure else { return error.asFerryError.message }
        return failure.message ?? RetryPlan.message(failure.cause, host: host)
    }
}
