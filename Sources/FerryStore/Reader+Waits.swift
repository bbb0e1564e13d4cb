public import FerryCore

extension Reader {
    /// The jobs that wait for one reason, in the order in which they should go on: highest priority first, then
    /// oldest.
    public final func waitingJobs(for reason: WaitReason) throws -> [JobRecord] {
        try self.connection.rows(
            """
            SELECT \(JobRecord.columns) FROM job WHERE state = 'waiting' AND wait_reason = ?
            ORDER BY priority DESC, id
            """,
            [reason],
            JobRecord.init(row:)
        )
    }
}
