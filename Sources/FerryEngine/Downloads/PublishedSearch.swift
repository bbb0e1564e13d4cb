import FerryCore
import FerryFiles
import FerryStore

/// Looks for a file that has got its final name although its job is not completed.
///
/// Either the service ended between the two, or the folder could not be synced after the rename.
struct PublishedSearch: Sendable {
    let services: TransferServices
    let job: JobRecord

    /// The file under its final name: the partial's inode and whole size; that name is durable then.
    ///
    /// - Parameter fingerprint: Of the job's URL; nil where it is not known.
    /// - Returns: Nil if it is not there.
    /// - Throws: `SystemError` if the folder cannot be used, or not be synced now either.
    func run(fingerprint: String? = nil) async throws -> PublishedFile? {
        let (id, total) = (self.job.id, self.job.bytesTotal)
        guard total != nil, let record = try await self.services.store.read({ try $0.file(id) }),
            record.inode != nil
        else { return nil }
        let calls = self.services.calls
        return try await self.services.disk.run {
            let folder = try Folder(record.directory, calls: calls)
            guard let identity = try folder.identity(of: record.name), identity.isRegular,
                identity.isSameFile(inode: record.inode),
                identity.size == total
            else { return nil }
            // Where a file cannot be renamed without replacing, it has both names for a moment.
            if let left = try folder.identity(of: record.partialName),
                left.isSameFile(inode: record.inode)
            {
                try folder.remove(record.partialName)
            }
            try folder.sync()
            return PublishedFile(
                path: folder.path(of: record.name),
                identity: identity,
                remote: RemoteObject(json: record.remote),
                fingerprint: fingerprint
            )
        }
    }
}
