import FerryCore
import FerryFiles
import FerryStore
import Glibc

/// A new destination for a job, and its partial's way there.
///
/// In the same folder the partial keeps its name until the end. Another folder of the same file system gets a
/// second name for it first; then the new place is committed together with the wish to remove the old name. So a
/// crash leaves a superfluous name at worst, and never a job without its bytes.
struct PartialMove: Sendable {
    /// The new folder.
    let directory: String
    /// The new name.
    let name: String
    /// The partial's record before; nil if there is no partial.
    let old: FileRecord?
    /// The partial's name in the new folder; nil if it stays where it is.
    private(set) var partialName: String?
    /// Whether the partial came with its old folder, which was moved to the new place: it has one name then.
    var isMoved = false

    /// Looks whether the new place can be had, before anything is stopped for it.
    ///
    /// - Throws: ``FerryError`` with what is in the way.
    static func check(_ request: JobRequest, job: JobID, services: TransferServices) async throws {
        let (directory, name) = DownloadTransfer.split(request.output ?? "")
        let calls = services.calls
        let found = try await services.disk.run {
            try Folder(directory, calls: calls).identity(of: name)
        }
        let path = "\(directory == "/" ? "" : directory)/\(name)"
        if let found, !(found.isRegular && (request.ifExists == .overwrite || request.ifExists == .update)) {
            throw FerryError(.exists, "\(path) exists", exitStatus: .failed)
        }
        let owner = try await services.store.read { try $0.reservation(directory: directory, name: name) }
        if let owner, owner != job {
            throw FerryError(.exists, "job \(owner) is going to write \(path)", exitStatus: .failed)
        }
    }

    /// Gives the partial its second name, if it needs one; the job must not run.
    ///
    /// - Throws: ``FerryError`` or `SystemError` where it cannot move there.
    static func prepare(to output: String, job: JobID, services: TransferServices) async throws -> PartialMove
    {
        let (directory, name) = DownloadTransfer.split(output)
        let old = try await services.store.read { try $0.file(job) }
        guard let old, old.inode != nil, old.directory != directory else {
            return PartialMove(directory: directory, name: name, old: old, partialName: nil)
        }
        let partialName = FileName.partial(name: name, job: job, generation: old.generation)
        let calls = services.calls
        let isMoved = try await services.disk.run { () -> Bool in
            let folder = try Folder(directory, calls: calls)
            if try folder.identity(of: old.partialName)?.isSameFile(inode: old.inode) == true {
                return true
            }
            let source: Folder
            do throws(SystemError) {
                source = try Folder(old.directory, calls: calls)
            } catch {
                guard error.errno == ENOENT || error.errno == ENOTDIR else { throw error }
                return false  // it is gone, and the partial with it
            }
            // One that is not there, or not ours, is the next attempt's matter.
            guard try source.identity(of: old.partialName)?.isSameFile(inode: old.inode) == true else {
                return false
            }
            do throws(SystemError) {
                try source.link(old.partialName, to: folder, as: partialName)
            } catch {
                guard error.errno == EXDEV || error.errno == EPERM else { throw error }
                throw FerryError(
                    .localIO,
                    "what was fetched is in \(old.directory) and cannot move to the file system of \(directory)",
                    exitStatus: .failed
                )
            }
            try folder.sync()
            return false
        }
        var move = PartialMove(directory: directory, name: name, old: old, partialName: partialName)
        if isMoved { (move.partialName, move.isMoved) = (old.partialName, true) }
        return move
    }

    /// Makes the new place the job's, in the transaction that changes its request.
    ///
    /// - Returns: False if another job has the name.
    func commit(
        _ transaction: Transaction,
        _ job: inout JobRecord,
        _ cleanups: inout Set<Int64>,
        at now: Timestamp
    ) throws -> Bool {
        let owner = try transaction.reservation(directory: self.directory, name: self.name)
        guard owner == nil || owner == job.id else { return false }
        try transaction.release(job.id)
        _ = try transaction.reserve(directory: self.directory, name: self.name, for: job.id)
        guard var record = self.old else { return true }
        if let partialName, !self.isMoved {
            let detail = try Cleanup.detail(record)
            cleanups.insert(
                try transaction.add(cleanup: Cleanup.unlink, job: job.id, detail: detail, at: now)
            )
            record.partialName = partialName
        }
        record.directory = self.directory
        record.name = self.name
        try transaction.save(record)
        job.path = self.directory == "/" ? "/\(self.name)" : "\(self.directory)/\(self.name)"
        return true
    }

    /// Takes the second name away again.
    func undo(services: TransferServices) async {
        guard let partialName, let old, !self.isMoved else { return }
        let directory = self.directory
        let calls = services.calls
        // A name that stays does no harm; `ferry doctor` finds it.
        try? await services.disk.run {
            let folder = try Folder(directory, calls: calls)
            guard try folder.identity(of: partialName)?.isSameFile(inode: old.inode) == true else { return }
            try folder.remove(partialName)
        }
    }
}
