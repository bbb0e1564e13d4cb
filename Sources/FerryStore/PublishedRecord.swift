public import FerryCore

/// A file that was put in place; outlives its job.
public struct PublishedRecord: Sendable, Equatable {
    /// The file, absolute.
    public var path: String
    /// Its device (st_dev).
    public var device: Int64
    /// Its inode.
    public var inode: Int64
    /// Its size in bytes.
    public var size: Int64
    /// Its modification time, nanoseconds since the epoch.
    public var mtimeNs: Int64
    /// JSON of the validator.
    public var remote: String
    /// The job that fetched it; may be gone.
    public var job: JobID?
    /// A digest of the whole URL.
    public var urlFingerprint: String?

    /// Makes a record.
    public init(
        path: String,
        device: Int64,
        inode: Int64,
        size: Int64,
        mtimeNs: Int64,
        remote: String = "{}",
        job: JobID? = nil,
        urlFingerprint: String? = nil
    ) {
        self.path = path
        self.device = device
        self.inode = inode
        self.size = size
        self.mtimeNs = mtimeNs
        self.remote = remote
        self.job = job
        self.urlFingerprint = urlFingerprint
    }
}

extension PublishedRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = "path, device, inode, size, mtime_ns, remote, job, url_fingerprint"

    init(row: inout Row) {
        self.init(
            path: row.text(),
            device: row.integer(),
            inode: row.integer(),
            size: row.integer(),
            mtimeNs: row.integer(),
            remote: row.text(),
            job: row.optionalJob(),
            urlFingerprint: row.optionalText()
        )
    }
}
