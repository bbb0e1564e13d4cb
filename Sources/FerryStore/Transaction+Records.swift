public import FerryCore

extension Transaction {
    /// Stores a file; a record of the same job and generation is replaced, its segments stay.
    public func save(_ file: FileRecord) throws {
        try self.connection.run(
            """
            INSERT INTO job_file (\(FileRecord.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET directory = excluded.directory, name = excluded.name,
                partial_name = excluded.partial_name, device = excluded.device, inode = excluded.inode,
                settled_ns = excluded.settled_ns, remote = excluded.remote, final_url = excluded.final_url
            """,
            file.job,
            file.generation,
            file.directory,
            file.name,
            file.partialName,
            file.device,
            file.inode,
            file.settledNs,
            file.remote,
            file.finalURL
        )
    }

    /// Removes a file's record and its segments.
    public func removeFile(_ id: JobID, generation: Int) throws {
        try self.connection.run("DELETE FROM job_file WHERE job = ? AND generation = ?", id, generation)
    }

    /// Reserves a final name.
    ///
    /// - Returns: False if another job has it; true if it is this job's now, or was already.
    public func reserve(directory: String, name: String, for id: JobID) throws -> Bool {
        try self.connection.run(
            "INSERT INTO reservation VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            directory,
            name,
            id
        )
        return try self.reservation(directory: directory, name: name) == id
    }

    /// Gives up all names that a job has reserved.
    public func release(_ id: JobID) throws {
        try self.connection.run("DELETE FROM reservation WHERE job = ?", id)
    }

    /// Stores a segment; one of the same job, generation and start is replaced.
    public func save(_ segment: SegmentRecord) throws {
        try self.connection.run(
            """
            INSERT INTO segment (\(SegmentRecord.columns)) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET stop = excluded.stop, durable = excluded.durable
            """,
            segment.job,
            segment.generation,
            segment.start,
            segment.end,
            segment.durable
        )
    }

    /// Removes all segments of one partial.
    public func removeSegments(_ id: JobID, generation: Int) throws {
        try self.connection.run("DELETE FROM segment WHERE job = ? AND generation = ?", id, generation)
    }

    /// Stores an attempt; one of the same job and number is replaced, its hops stay.
    public func save(_ attempt: AttemptRecord) throws {
        try self.connection.run(
            """
            INSERT INTO attempt (\(AttemptRecord.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET began_at = excluded.began_at, ended_at = excluded.ended_at,
                outcome = excluded.outcome, message = excluded.message,
                first_offset = excluded.first_offset, received = excluded.received
            """,
            attempt.job,
            attempt.number,
            attempt.beganAt,
            attempt.endedAt,
            attempt.outcome,
            attempt.message,
            attempt.offset,
            attempt.received
        )
    }

    /// Stores a request of an attempt; one in the same position is replaced.
    public func save(_ hop: HopRecord) throws {
        try self.connection.run(
            "INSERT OR REPLACE INTO hop (\(HopRecord.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            hop.job,
            hop.attempt,
            hop.index,
            hop.url,
            hop.status,
            hop.address,
            hop.httpVersion,
            hop.firstByteMs,
            hop.totalMs
        )
    }

    /// Appends an event; its session is the job's.
    @discardableResult
    public func append(
        event kind: String,
        job: JobID?,
        state: JobState?,
        reason: String?,
        message: String?,
        at time: Timestamp
    ) throws -> EventRecord {
        try self.connection.run(
            """
            INSERT INTO event (time, session, job, kind, state, reason, message)
            VALUES (?, (SELECT session FROM job WHERE id = ?), ?, ?, ?, ?, ?)
            """,
            time,
            job,
            job,
            kind,
            state,
            reason,
            message
        )
        return EventRecord(
            seq: self.connection.lastInsertedID,
            time: time,
            job: job,
            kind: kind,
            state: state,
            reason: reason,
            message: message
        )
    }

    /// Records something to do after the fact, and gives its number.
    public func add(cleanup kind: String, job: JobID?, detail: String, at time: Timestamp) throws -> Int64 {
        try self.connection.run(
            "INSERT INTO cleanup (job, kind, detail, created_at) VALUES (?, ?, ?, ?)",
            job,
            kind,
            detail,
            time
        )
        return self.connection.lastInsertedID
    }

    /// Removes what has been done; a number that is gone already is no error.
    public func removeCleanup(_ id: Int64) throws {
        try self.connection.run("DELETE FROM cleanup WHERE id = ?", id)
    }

    /// Stores what is known of a host.
    public func save(_ host: HostRecord) throws {
        try self.connection.run(
            "INSERT OR REPLACE INTO host (\(HostRecord.columns)) VALUES (?, ?, ?, ?)",
            host.host,
            host.pausedUntil,
            host.backoffLevel,
            host.learned
        )
    }

    /// Stores what was put in place under a path.
    public func save(_ published: PublishedRecord) throws {
        try self.connection.run(
            "INSERT OR REPLACE INTO published (\(PublishedRecord.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            published.path,
            published.device,
            published.inode,
            published.size,
            published.mtimeNs,
            published.remote,
            published.job,
            published.urlFingerprint
        )
    }
}
