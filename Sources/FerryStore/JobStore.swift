import CSQLite
import Dispatch
public import FerryCore
import Synchronization

/// The job database of one state folder, `jobs.db`: what is accepted survives anything.
///
/// SQLite with a write-ahead log and `synchronous = FULL`: when a write has returned, it survives a power cut
/// (sqlite.org/wal.html). One connection does all writes and checkpoints, one reads; each has a serial queue,
/// so no caller's thread blocks. Only one process may use a folder at a time, which is the caller's to ensure.
public final class JobStore: Sendable {
    private let writer: Confined<StoreWriter?>
    private let reader: Confined<Connection?>
    private let inbox = Mutex(Inbox())
    private let commits = Atomic<Int>(0)

    /// Writes that wait for the next commit.
    private struct Inbox {
        var isOpen = true
        var isDraining = false
        var pending: [PendingWrite] = []
    }

    /// Opens the database of a folder, made or brought to the present version as needed.
    ///
    /// Before an older database is changed, a copy is kept as `jobs.db.v<version>`. After an unclean end a
    /// database up to 64 MiB is checked first. Blocks.
    ///
    /// - Parameter directory: The state folder; it must exist.
    /// - Throws: `FerryError` `.database` with exit status 12 where the file is damaged, foreign, newer, or cannot
    ///   be written; it is left as it is.
    public convenience init(directory: String) throws(FerryError) {
        try self.init(file: StoreFile(directory: directory))
    }

    init(file: StoreFile) throws(FerryError) {
        let writer = StoreWriter(connection: try file.openForWriting())
        let reader = try file.openForReading()
        self.writer = Confined("ferry.store.write", writer)
        self.reader = Confined("ferry.store.read", reader)
    }

    /// Runs a closure as one transaction and returns when it is on the disk.
    ///
    /// Writes that arrive during a commit share the next one and its sync. If the closure throws, all that it
    /// did is undone, and the others of the same commit do not notice. A cancelled task's write is done all the
    /// same. Do not block in the closure.
    ///
    /// - Throws: What the closure throws; ``StoreError`` where the database fails, and then nothing is stored;
    ///   `FerryError` `.stopping` after ``close()``.
    public func write<Value: Sendable>(
        _ body: @escaping @Sendable (Transaction) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            self.submit(body) { continuation.resume(with: $0) }
        }
    }

    /// Runs a closure on one snapshot of the database; it sees all writes that have returned.
    ///
    /// Keep it short: the write-ahead log grows while a snapshot is open.
    ///
    /// - Throws: What the closure throws; ``StoreError`` where the database fails; `FerryError` `.stopping` after
    ///   ``close()``.
    public func read<Value: Sendable>(
        _ body: @escaping @Sendable (Reader) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            self.reader.async { connection in
                continuation.resume(
                    with: Result {
                        guard let connection else { throw JobStore.closed }
                        try connection.execute("BEGIN")
                        defer { try? connection.execute("ROLLBACK") }  // ends the snapshot; nothing to undo
                        return try body(Reader(connection: connection))
                    }
                )
            }
        }
    }

    /// Runs a closure on the writer's queue and returns when the reader's has answered too; proves that both live.
    public func ping(_ body: @escaping @Sendable () -> Void = {}) async {
        await withCheckedContinuation { continuation in
            self.writer.async { _ in
                body()
                self.reader.async { _ in continuation.resume() }
            }
        }
    }

    /// Ends the use of the database: finishes accepted writes, marks it clean, empties the write-ahead log.
    ///
    /// Blocks until that is done, so it must not be called from a closure of the store. A second call does
    /// nothing. Without it, the next start finds all that was written and checks the file.
    public func close() {
        self.inbox.withLock { $0.isOpen = false }
        self.reader.sync { $0 = nil }
        self.writer.sync { writer in
            // The block of `submit` may stand behind this one.
            if let open = writer { self.drain(open) }
            writer?.close()
            writer = nil
        }
    }

    /// What is wrong with the database of a folder, in SQLite's words; `["ok"]` if nothing is.
    ///
    /// Works on a damaged file, changes nothing, and blocks for as long as reading all of it takes.
    ///
    /// - Throws: `FerryError` `.database` where there is no file or it cannot be read.
    public static func check(directory: String) throws(FerryError) -> [String] {
        try StoreFile(directory: directory).check()
    }

    /// Gives a closure to the next commit; `completion` is called once, on the store's queue or at once if closed.
    func submit<Value: Sendable>(
        _ body: @escaping @Sendable (Transaction) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        let write = PendingWrite { transaction in
            let value = try body(transaction)
            return { completion(.success(value)) }
        } fail: { error in
            completion(.failure(error))
        }
        let (isOpen, isFirst) = self.inbox.withLock { inbox in
            guard inbox.isOpen else { return (false, false) }
            inbox.pending.append(write)
            defer { inbox.isDraining = true }
            return (true, !inbox.isDraining)
        }
        guard isOpen else { return write.fail(JobStore.closed) }
        guard isFirst else { return }
        self.writer.async { writer in
            if let writer { self.drain(writer) }
        }
    }

    /// How many transactions were tried.
    var commitCount: Int { self.commits.load(ordering: .relaxed) }

    private static let closed = FerryError(
        .stopping,
        "the job database is closed: the service is stopping",
        exitStatus: .noService
    )

    /// Commits what is pending until nothing is; what arrives during a commit joins the next.
    private func drain(_ writer: StoreWriter) {
        while true {
            let batch = self.inbox.withLock { inbox in
                defer { inbox.pending = [] }
                inbox.isDraining = !inbox.pending.isEmpty
                return inbox.pending
            }
            guard !batch.isEmpty else { return }
            let answers = writer.commit(batch)
            self.commits.add(1, ordering: .relaxed)
            for answer in answers { answer() }
        }
    }
}

/// A closure that waits for its transaction.
struct PendingWrite: Sendable {
    /// Runs it; gives what tells the caller of success, to be called after the commit.
    let run: @Sendable (Transaction) throws -> @Sendable () -> Void
    /// Tells the caller of failure.
    let fail: @Sendable (any Error) -> Void

    init(
        run: @escaping @Sendable (Transaction) throws -> @Sendable () -> Void,
        fail: @escaping @Sendable (any Error) -> Void
    ) {
        self.run = run
        self.fail = fail
    }
}
