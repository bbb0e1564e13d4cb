import Dispatch
import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore
import Synchronization

/// What a transfer works with.
struct TransferServices: Sendable {
    let store: JobStore
    let loop: NetworkLoop
    let live: LiveConfiguration
    let time: EngineTime
    let calls: FileCalls
    let disk: BlockingPool
    /// The threads that read ahead of what is sent.
    let reading = BlockingPool(label: "ferry.reader", width: 4)
    /// Memory between network and disk, for all transfers together: 16 MiB at most.
    let slabs = SlabPool(limit: 64)
    /// The writer's thread.
    let writing = DispatchQueue(label: "ferry.writer")
    /// The thread that computes digests.
    let hashing = DispatchQueue(label: "ferry.hash")
    /// Where running segments claim what they have written; nil if the file cannot be had.
    var board: ProgressBoard?
    /// Tells of other programs that write into partials.
    let edits = EditWatch.shared
    let crash: CrashPoints
    /// The folder for bodies that are kept until their job is final; nil if there is none.
    var spool: String?
    /// What the machine's network looks like.
    var machine = Machine.real
    /// What waits for network and disk, as far as it is no job's own.
    let waits = WaitBook()
    /// Until when a stop may wait for syncs.
    let stopBudget = StopBudget()
    /// The hosts that are left alone for now.
    let pauses = HostPauses()

    /// What the configuration says now.
    var configuration: EngineConfiguration { self.live.value }

    /// Whether the service stops and has no time left for syncs.
    var isTooLateToSync: Bool { self.stopBudget.isOver(at: self.time.monotonic()) }
}

/// The time that a stop may spend on making bytes durable; what is not made durable the progress board keeps.
final class StopBudget: Sendable {
    private let end = Atomic<Int64>(.max)

    /// Sets the end, in the engine's monotonic time.
    func begin(until end: Duration) {
        self.end.store(end.milliseconds, ordering: .relaxed)
    }

    /// Whether it is used up; never before ``begin(until:)``.
    func isOver(at now: Duration) -> Bool {
        now.milliseconds >= self.end.load(ordering: .relaxed)
    }
}

/// A failure of an attempt: its cause for ``RetryPlan``, and what the server said.
struct TransferFailure: Error, Sendable {
    let cause: TransferCause
    /// A more telling sentence than the one that follows from the cause.
    var message: String?
    /// Where the request went, if it is the connection that failed.
    var target: FailedTarget?
    /// How long to wait, if it was the machine.
    var wait: MachineWait?

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
