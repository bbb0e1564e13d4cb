import FerryCore

extension JobRecord {
    /// Updates all columns.
    static let updateAll = JobRecord.update(JobRecord.plainColumns + JobRecord.indexedColumns)

    /// Updates the columns that no index and no counter holds.
    static let updatePlain = JobRecord.update(JobRecord.plainColumns)

    /// Whether both have the same values in the columns that an index or a counter holds.
    func hasSameIndexedColumns(as other: JobRecord) -> Bool {
        self.state == other.state && self.priority == other.priority && self.host == other.host
            && self.group == other.group && self.nextTry == other.nextTry
            && self.finishedAt == other.finishedAt && self.window == other.window
            && self.windowFrom == other.windowFrom
    }

    /// The values for ``updatePlain`` before the job's number.
    var plainValues: [any SQLBindable] {
        [
            self.session, self.kind, self.phase, self.waitReason, self.failureReason, self.message,
            self.advice, self.url, self.path, self.notBefore, self.attempts, self.transientTries,
            self.doubtfulTries, self.forgivenAttempts, self.restarts, self.mismatches, self.progressAt,
            self.bestBytes, self.bytesTotal,
            self.bytesDurable, self.createdAt, self.startedAt, self.lengthProved, self.httpVersion,
            self.contentEncoding, self.protocolName, self.resultURL, JobRecord.text(self.after),
            self.renewals,
        ]
    }

    /// The values that ``updateAll`` has after the plain ones.
    var indexedValues: [any SQLBindable] {
        [
            self.state, self.priority, self.host, self.group, self.nextTry, self.finishedAt,
            self.window?.description, self.windowFrom,
        ]
    }

    private static let plainColumns = [
        "session", "kind", "phase", "wait_reason", "failure_reason", "message", "advice", "url", "path",
        "not_before", "attempts", "transient_tries", "doubtful_tries", "forgiven_attempts", "restarts",
        "mismatches", "progress_at", "best_bytes", "bytes_total", "bytes_durable", "created_at", "started_at",
        "length_proved",
        "http_version", "content_encoding", "protocol", "result_url", "after_jobs", "renewals",
    ]

    private static let indexedColumns = [
        "state", "priority", "host", "group_name", "next_try", "finished_at", "run_window", "window_from",
    ]

    private static func update(_ columns: [String]) -> String {
        "UPDATE job SET \(columns.map { "\($0) = ?" }.joined(separator: ", ")) WHERE id = ?"
    }
}
