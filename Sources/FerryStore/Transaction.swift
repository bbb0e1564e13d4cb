public import FerryCore

/// What can be done to the job database; all of one closure is kept, or none of it.
///
/// Valid only inside the closure of ``JobStore/write(_:)``. It reads what was written before in the closure.
public final class Transaction: Reader {
    /// Inserts a job and gives its number; the number holds once `write` has returned.
    ///
    /// It is queued, or waits if its request says that it must not begin before a later time.
    public func insert(_ job: NewJob) throws -> JobID {
        let request = job.request
        let (stored, secrets) = try request.parted(redactedURL: job.redactedURL)
        let later = request.notBefore.flatMap { $0 > job.createdAt ? $0 : nil }
        try self.connection.run(
            """
            INSERT INTO job (session, kind, state, wait_reason, priority, host, group_name, url, not_before,
                next_try, attempts, transient_tries, doubtful_tries, forgiven_attempts, restarts, mismatches,
                best_bytes, bytes_durable, created_at, run_window)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, ?, ?)
            """,
            job.session,
            request.kind,
            later == nil ? JobState.queued : .waiting,
            later.map { _ in WaitReason.schedule },
            request.priority,
            job.host,
            request.group,
            job.redactedURL,
            later,
            later,
            job.createdAt,
            request.window?.description
        )
        let id = JobID(rawValue: self.connection.lastInsertedID)
        try self.connection.run(
            """
            INSERT INTO job_request (job, request, profile, url_fingerprint, directory, output)
            VALUES (?, ?, ?, ?, ?, ?)
            """,
            id,
            stored,
            job.profile,
            job.urlFingerprint,
            request.directory,
            request.output
        )
        try self.insert(secrets, of: id)
        return id
    }

    /// Replaces the request of a job that is not final, with its secrets; the job's own row is left alone.
    ///
    /// `redactedURL` is its URL as it may be shown, and `urlFingerprint` the digest of a new URL; nil keeps the
    /// old one.
    public func replace(
        request: JobRequest,
        redactedURL: String,
        urlFingerprint: String?,
        of id: JobID
    ) throws {
        let (stored, secrets) = try request.parted(redactedURL: redactedURL)
        try self.connection.run(
            """
            UPDATE job_request SET request = ?, url_fingerprint = coalesce(?, url_fingerprint), directory = ?,
                output = ?
            WHERE job = ?
            """,
            stored,
            urlFingerprint,
            request.directory,
            request.output,
            id
        )
        for kind in RequestSecret.kinds {
            try self.connection.run("DELETE FROM secret WHERE job = ? AND kind = ?", id, kind)
        }
        try self.insert(secrets, of: id)
    }

    private func insert(_ secrets: [RequestSecret], of id: JobID) throws {
        for secret in secrets {
            try self.connection.run("INSERT INTO secret VALUES (?, ?, ?)", id, secret.kind, secret.value)
        }
    }

    /// Stores all columns of a job that exists.
    ///
    /// Columns that an index holds are left alone where they are the same, so that a progress update touches
    /// one page.
    ///
    /// - Throws: `FerryError` `.unknownJob`; ``StoreError`` where the record breaks the schema's rules.
    public func save(_ job: JobRecord) throws {
        guard let old = try self.job(job.id) else { throw Transaction.unknown(job.id) }
        guard old != job else { return }
        if job.hasSameIndexedColumns(as: old) {
            try self.connection.run(JobRecord.updatePlain, values: job.plainValues + [job.id])
        } else {
            try self.connection.run(
                JobRecord.updateAll,
                values: job.plainValues + job.indexedValues + [job.id]
            )
        }
    }

    /// Forgets an ended job with all that belongs to it: request, secrets, files, reservations, attempts, events.
    ///
    /// Its clean-ups and published file stay. Its events go too, so that a forgotten job leaves no trace; an
    /// event of kind `removed` that is appended afterwards stays until ``trim(endedBefore:limit:)``.
    ///
    /// - Throws: `FerryError` `.unknownJob`, or `.wrongState` for a job that has not ended.
    public func remove(_ id: JobID) throws {
        guard let job = try self.job(id) else { throw Transaction.unknown(id) }
        guard job.state.isEnded else {
            throw FerryError(
                .wrongState,
                "job \(id) is \(job.state.rawValue); only an ended job can be removed",
                exitStatus: .failed
            )
        }
        try self.delete(id)
    }

    /// Erases what must be shown nowhere; `secure_delete` overwrites it in the file.
    ///
    /// Older copies in the write-ahead log go with its next reset, at the latest when the store is closed.
    public func eraseSecrets(_ id: JobID) throws {
        try self.connection.run("DELETE FROM secret WHERE job = ?", id)
    }

    /// Forgets completed and cancelled jobs that ended before a time, oldest first, at most `limit`.
    ///
    /// Failed jobs stay: what they fetched is still there. Events without a job go by the same time and limit.
    ///
    /// - Returns: How many jobs went; less than `limit` means that none is left.
    public func trim(endedBefore time: Timestamp, limit: Int) throws -> Int {
        let old = try self.connection.rows(
            """
            SELECT id FROM job WHERE state IN ('completed', 'cancelled') AND finished_at < ?
            ORDER BY finished_at LIMIT ?
            """,
            [time, limit]
        ) { $0.job() }
        for id in old { try self.delete(id) }
        try self.connection.run(
            """
            DELETE FROM event WHERE seq IN (
                SELECT seq FROM event WHERE (job IS NULL OR kind = 'removed') AND time < ?
                ORDER BY time LIMIT ?)
            """,
            time,
            limit
        )
        return old.count
    }

    private func delete(_ id: JobID) throws {
        try self.connection.run("DELETE FROM event WHERE job = ?", id)
        try self.connection.run("DELETE FROM job WHERE id = ?", id)
    }

    private static func unknown(_ id: JobID) -> FerryError {
        FerryError(.unknownJob, "there is no job \(id)", exitStatus: .failed)
    }
}
