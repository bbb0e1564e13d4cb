public import FerryCore

extension Reader {
    /// The job that is not final and has a partial of this name in a folder.
    public final func owner(ofPartial name: String, in directory: String) throws -> JobID? {
        try self.connection.first(
            """
            SELECT job.id FROM job_file JOIN job ON job.id = job_file.job
            WHERE job_file.directory = ? AND job_file.partial_name = ?
                AND job.state NOT IN ('completed', 'cancelled')
            """,
            [directory, name]
        ) { $0.job() }
    }
}
