public import FerryCore

/// The file of a download: one record a generation of its partial.
public struct FileRecord: Sendable, Equatable {
    /// The job.
    public var job: JobID
    /// Counts up with each new partial; an old and a new one can coexist.
    public var generation: Int
    /// The folder, absolute.
    public var directory: String
    /// The final name inside ``directory``.
    public var name: String
    /// The name until the file is whole.
    public var partialName: String
    /// The partial's device (st_dev); nil until it exists, and exactly while ``inode`` is.
    public var device: Int64?
    /// The partial's inode.
    public var inode: Int64?
    /// The partial's st_ctim in nanoseconds when its last attempt ended with everything durable; nil while one
    /// runs, and after a crash.
    public var settledNs: Int64?
    /// JSON: validator, length, type and digests of the remote object, and the hash of the durable bytes.
    public var remote: String
    /// The URL that answered, redacted.
    public var finalURL: String?

    /// Makes a record.
    public init(
        job: JobID,
        generation: Int,
        directory: String,
        name: String,
        partialName: String,
        device: Int64? = nil,
        inode: Int64? = nil,
        settledNs: Int64? = nil,
        remote: String = "{}",
        finalURL: String? = nil
    ) {
        self.job = job
        self.generation = generation
        self.directory = directory
        self.name = name
        self.partialName = partialName
        self.device = device
        self.inode = inode
        self.settledNs = settledNs
        self.remote = remote
        self.finalURL = finalURL
    }
}

extension FileRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = """
        job, generation, directory, name, partial_name, device, inode, settled_ns, remote, final_url
        """

    init(row: inout Row) {
        self.init(
            job: row.job(),
            generation: row.int(),
            directory: row.text(),
            name: row.text(),
            partialName: row.text(),
            device: row.optionalInteger(),
            inode: row.optionalInteger(),
            settledNs: row.optionalInteger(),
            remote: row.text(),
            finalURL: row.optionalText()
        )
    }
}

/// A piece of a partial; the offsets count from the file's first byte.
public struct SegmentRecord: Sendable, Equatable {
    /// The job.
    public var job: JobID
    /// The partial's generation; its ``FileRecord`` must be there.
    public var generation: Int
    /// The first byte.
    public var start: Int64
    /// One past the last byte; nil if the end is unknown.
    public var end: Int64?
    /// One past the last byte that survives a power cut; from ``start`` to ``end``.
    public var durable: Int64

    /// Makes a record.
    public init(
        job: JobID,
        generation: Int,
        start: Int64,
        end: Int64?,
        durable: Int64
    ) {
        self.job = job
        self.generation = generation
        self.start = start
        self.end = end
        self.durable = durable
    }
}

extension SegmentRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = "job, generation, start, stop, durable"

    init(row: inout Row) {
        self.init(
            job: row.job(),
            generation: row.int(),
            start: row.integer(),
            end: row.optionalInteger(),
            durable: row.integer()
        )
    }
}
