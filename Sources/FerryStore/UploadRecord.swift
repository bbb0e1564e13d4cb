public import FerryCore

/// What an upload has besides its job: where it goes, how far the server is, and what is sent.
public struct UploadRecord: Sendable, Equatable {
    /// The job.
    public var job: JobID
    /// How it is carried; `auto` until the server was asked.
    public var transport: UploadProtocol
    /// The upload's own URL that the server has made; it gives access and is kept as a secret.
    ///
    /// Once the job is final only the redacted URL is left.
    public var url: String?
    /// Bytes that the server has acknowledged.
    public var offset: Int64
    /// JSON: the identities of the files of a form.
    public var parts: String?
    /// The file that is sent, as it was when the job was accepted; nil for a form.
    public var source: SourceIdentity?
    /// A file of the queue's own that holds the body, to be removed when the job is final.
    public var spool: String?
    /// JSON: what else the protocol remembers.
    public var state: String?
    /// JSON: what the server has answered.
    public var answer: String?

    /// Makes a record; the defaults are those of a new job.
    public init(
        job: JobID,
        transport: UploadProtocol,
        url: String? = nil,
        offset: Int64 = 0,
        parts: String? = nil,
        source: SourceIdentity? = nil,
        spool: String? = nil,
        state: String? = nil,
        answer: String? = nil
    ) {
        self.job = job
        self.transport = transport
        self.url = url
        self.offset = offset
        self.parts = parts
        self.source = source
        self.spool = spool
        self.state = state
        self.answer = answer
    }
}

extension UploadRecord {
    /// The kind of the secret that holds the whole URL.
    static let urlSecret = "upload-url"

    /// The columns in the order in which ``init(row:)`` reads them.
    private static let columns = """
        upload.job, upload.protocol, coalesce(secret.value, upload.url), upload.upload_offset, upload.parts, \
        upload.source_path, upload.source_device, upload.source_inode, upload.source_size, \
        upload.source_mtime_ns, upload.spool, upload.state, upload.answer
        """

    static let query = """
        SELECT \(columns) FROM upload
        LEFT JOIN secret ON secret.job = upload.job AND secret.kind = '\(urlSecret)'
        """

    init(row: inout Row) throws {
        self.init(
            job: row.job(),
            transport: try row.word(UploadProtocol.self),
            url: row.optionalText(),
            offset: row.integer(),
            parts: row.optionalText(),
            source: Self.source(row: &row),
            spool: row.optionalText(),
            state: row.optionalText(),
            answer: row.optionalText()
        )
    }

    private static func source(row: inout Row) -> SourceIdentity? {
        let path = row.optionalText()
        let numbers = (0..<4).map { _ in row.optionalInteger() }
        guard let path, let device = numbers[0], let inode = numbers[1], let size = numbers[2],
            let modified = numbers[3]
        else { return nil }
        return SourceIdentity(
            path: path,
            device: device,
            inode: inode,
            size: size,
            modifiedNanoseconds: modified
        )
    }
}

extension Reader {
    /// What an upload has besides its job; nil for a download.
    public final func upload(_ id: JobID) throws -> UploadRecord? {
        try self.connection.first(
            UploadRecord.query + " WHERE upload.job = ?",
            [id],
            UploadRecord.init(row:)
        )
    }

    /// The job that works with an upload on a server, by the upload's own URL.
    public final func owner(ofUpload url: String) throws -> JobID? {
        try self.connection.first(
            "SELECT job FROM secret WHERE kind = ? AND value = ?",
            [UploadRecord.urlSecret, url]
        ) { $0.job() }
    }

    /// The jobs that have a spool file, with its path, by their number.
    public final func spools() throws -> [(job: JobID, path: String)] {
        try self.connection.rows(
            "SELECT job, spool FROM upload WHERE spool IS NOT NULL ORDER BY job",
            []
        ) { (job: $0.job(), path: $0.text()) }
    }
}

extension Transaction {
    /// Stores an upload, its whole URL among the secrets; one of the same job is replaced.
    public func save(_ upload: UploadRecord) throws {
        try self.connection.run(
            "INSERT OR REPLACE INTO upload VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            upload.job,
            upload.transport,
            upload.url.map { URLRedaction.redact($0) },
            upload.offset,
            upload.parts,
            upload.source?.path,
            upload.source?.device,
            upload.source?.inode,
            upload.source?.size,
            upload.source?.modifiedNanoseconds,
            upload.spool,
            upload.state,
            upload.answer
        )
        try self.connection.run(
            "DELETE FROM secret WHERE job = ? AND kind = ?",
            upload.job,
            UploadRecord.urlSecret
        )
        guard let url = upload.url else { return }
        try self.connection.run(
            "INSERT INTO secret VALUES (?, ?, ?)",
            upload.job,
            UploadRecord.urlSecret,
            url
        )
    }
}
