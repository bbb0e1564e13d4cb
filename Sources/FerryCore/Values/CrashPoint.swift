/// The gaps between two effects at which a crash test can kill the service.
///
/// `FERRY_CRASH_POINT=name` in the service's environment kills it with SIGKILL the first time that gap is
/// reached, `name:3` the third time. What must hold after each is in the design page.
public enum CrashPoint: String, Sendable, CaseIterable {
    /// The job is committed; its number has not left the service.
    case jobCommitted = "job-committed"
    /// The claim is committed; nothing was sent.
    case claimed
    /// Final name, partial's name and validator are committed; the partial does not exist.
    case partialPlanned = "partial-planned"
    /// The partial exists; its inode is not committed.
    case partialCreated = "partial-created"
    /// The partial's inode is committed; no byte was written.
    case partialCommitted = "partial-committed"
    /// Bytes are written; nothing was synced.
    case written
    /// Bytes are synced; the offset is not committed.
    case synced
    /// The offset is committed.
    case checkpointed
    /// All bytes are written; the last sync has not run.
    case bodyEnded = "body-ended"
    /// The whole file is synced; phase `finishing` is not committed.
    case fileSynced = "file-synced"
    /// Phase `finishing` is committed; the file still has the partial's name.
    case finishing
    /// The file has its final name; the folder is not synced.
    case renamed
    /// The folder is synced; `completed` is not committed.
    case folderSynced = "folder-synced"
    /// `completed` is committed; nobody was told.
    case completed
    /// The wish to cancel is committed; the job's partial still exists.
    case cancelCommitted = "cancel-committed"
    /// The partial is removed; the job does not say `cancelled` yet.
    case cancelUnlinked = "cancel-unlinked"
    /// A form's body is built; nobody knows of it yet.
    case uploadSpooled = "upload-spooled"
    /// The upload's own URL is committed; no data has left.
    case uploadURLCommitted = "upload-url-committed"
    /// The server has told how much it has; the offset is not committed.
    case uploadOffsetKnown = "upload-offset-known"
    /// That offset is committed.
    case uploadOffsetCommitted = "upload-offset-committed"
    /// A body is about to leave as a whole; that is committed, where it must not be repeated.
    case uploadSent = "upload-sent"
    /// The server has confirmed the upload; `completed` is not committed.
    case uploadAnswered = "upload-answered"
    /// A job says `cancelled`; its upload is still on the server, and what remains of it is recorded.
    case uploadAbandoned = "upload-abandoned"

    /// Whether only uploads come there.
    public var isOfUploads: Bool { self.rawValue.hasPrefix("upload-") }
}
