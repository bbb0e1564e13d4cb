import Dispatch
import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore

/// What a transfer works with.
struct TransferServices: Sendable {
    let store: JobStore
    let loop: NetworkLoop
    let configuration: EngineConfiguration
    let time: EngineTime
    let calls: FileCalls
    let disk: BlockingPool
    /// Memory between network and disk, for all transfers together: 16 MiB at most.
    let slabs = SlabPool(limit: 64)
    /// The writer's thread.
    let writing = DispatchQueue(label: "ferry.writer")
    /// The thread that computes digests.
    let hashing = DispatchQueue(label: "ferry.hash")
    /// Where running segments claim what they have written; nil if the file cannot be had.
    var board: ProgressBoard?
    let crash: CrashPoints
    /// The folder for bodies that are kept until their job is final; nil if there is none.
    var spool: String?
}

/// A failure of an attempt: its cause for ``RetryPlan``, and what the server said.
struct TransferFailure: Error, Sendable {
    let cause: TransferCause
    /// A more telling sentence than the one that follows from the cause.
    var message: String?

    init(_ cause: TransferCause, message: String? = nil) {
        self.cause = cause
        self.message = message
    }
}

/// How an attempt ended.
enum AttemptEnd: Sendable {
    /// The file is in place, synced, and only the commit is missing.
    case published(PublishedFile)
    /// `--if-exists skip` or `update`: the file that is there stays; the sentence says why.
    case leftAlone(path: String, message: String)
    /// The server has confirmed the upload, and only the commit is missing.
    case uploaded(UploadedFile)
    /// It failed.
    case failed(TransferFailure)
    /// It was asked to stop.
    case stopped
    /// The database refused a commit that the transfer depends on.
    case storeFailed(FerryError)
}

/// A file under its final name.
struct PublishedFile: Sendable {
    let path: String
    let identity: OpenFile.Identity
    let remote: RemoteObject
    let fingerprint: String?
}
