import FerryCore
import FerryFiles
import FerryStore
import FoundationEssentials
import Glibc

/// Things still to do after the fact, recorded in the transaction that makes them due, so that a crash
/// cannot forget them.
enum Cleanup {
    /// Remove a partial of a generation that was replaced, or of a job that was forgotten.
    static let unlink = "unlink"
    /// Remove a job's partials, then say that it is cancelled.
    static let cancel = "cancel"

    /// What identifies a partial, so that no other file is ever removed.
    private struct Target: Codable {
        let directory: String
        let name: String
        let device: Int64?
        let inode: Int64?
    }

    /// The text that the database keeps for a partial.
    static func detail(_ file: FileRecord) throws -> String {
        let target = Target(
            directory: file.directory,
            name: file.partialName,
            device: file.device,
            inode: file.inode
        )
        return String(decoding: try JSONEncoder().encode(target), as: UTF8.self)
    }

    /// Lets older generations go once the new one has as much as they had; until then they are kept.
    static func retireOvertaken(
        by generation: Int,
        durable: Int64,
        of id: JobID,
        in transaction: Transaction,
        at now: Timestamp
    ) throws {
        guard generation > 1 else { return }
        for file in try transaction.files(id) where file.generation < generation {
            let held = try transaction.segments(id, generation: file.generation).map(\.durable).max() ?? 0
            guard durable >= held else { continue }
            try self.retire(file, in: transaction, at: now)
        }
    }

    /// Records that a generation's partial has to go, and forgets its rows.
    static func retire(_ file: FileRecord, in transaction: Transaction, at now: Timestamp) throws {
        _ = try transaction.add(cleanup: self.unlink, job: file.job, detail: try self.detail(file), at: now)
        try transaction.removeSegments(file.job, generation: file.generation)
        try transaction.removeFile(file.job, generation: file.generation)
    }

    /// Removes the file that an `unlink` names, and the record.
    static func carryOut(_ cleanup: CleanupRecord, _ services: TransferServices) async throws {
        let calls = services.calls
        let detail = cleanup.detail
        try await services.disk.run { try self.remove(detail, calls: calls) }
        let id = cleanup.id
        try await services.store.write { try $0.removeCleanup(id) }
    }

    /// Removes a partial if it is still the recorded file; one whose inode was never committed must be empty.
    static func remove(_ detail: String, calls: FileCalls) throws {
        let target = try JSONDecoder().decode(Target.self, from: Data(detail.utf8))
        let folder: Folder
        do throws(SystemError) {
            folder = try Folder(target.directory, calls: calls)
        } catch {
            guard error.errno == ENOENT || error.errno == ENOTDIR else { throw error }
            return  // the folder is gone, and the partial with it
        }
        guard let found = try folder.identity(of: target.name), found.isRegular else { return }
        let isOurs =
            target.inode == nil
            ? found.size == 0 : found.isSameFile(inode: target.inode)
        guard isOurs else { return }
        try folder.remove(target.name)
        try folder.sync()
    }
}
