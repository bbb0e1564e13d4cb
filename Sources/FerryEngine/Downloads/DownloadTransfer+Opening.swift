import FerryCore
import FerryFiles
import FerryStore
import Glibc

extension DownloadTransfer {
    /// The partial is not what was written: another program has changed, cut or replaced it.
    struct PartialChanged: Error {}

    /// How much is read back at a time, so that others' syncs need not wait long.
    private static let readStep: Int64 = 16 * 1_024 * 1_024

    /// Opens the partial that the database knows of; nil if there is none, or if it is not what was left.
    ///
    /// `onlyForReading` is for a job that may run: so it is no other program that has its partial open for writing.
    func openPartial(onlyForReading: Bool = false) async throws -> PartialFile? {
        let id = self.running.id
        guard let record = try await self.services.store.read({ try $0.file(id) }) else { return nil }
        if let found = try await self.find(record, onlyForReading: onlyForReading),
            let intact = try await self.believed(found)
        {
            return intact
        }
        if self.job.bytesDurable > 0 {
            try await self.record(restarts: self.job.restarts, reason: .partialChanged)
        }
        return nil
    }

    /// Opens the partial of a row if it may be what was left: a regular file with the recorded inode that is at
    /// least as long as what was committed as durable.
    func find(_ record: FileRecord, onlyForReading: Bool = false) async throws -> PartialFile? {
        guard record.inode != nil else { return nil }
        let segments = try await self.services.store.read {
            try $0.segments(record.job, generation: record.generation)
        }
        let durable = segments.first { $0.start == 0 }?.durable ?? 0
        let prefix = durable == 0 ? PrefixHash.empty : record.prefix
        guard let prefix, prefix.end == durable else { return nil }
        let calls = self.services.calls
        let edits = onlyForReading ? nil : self.services.edits
        return try await self.services.disk.run {
            let folder = try Folder(record.directory, calls: calls)
            guard let found = try folder.identity(of: record.partialName), found.isRegular,
                found.isSameFile(inode: record.inode), found.size >= durable
            else { return nil }
            let file = try folder.open(record.partialName, onlyForReading: onlyForReading)
            return PartialFile(
                record: record,
                remote: RemoteObject(json: record.remote),
                folder: folder,
                file: file,
                edits: edits?.mark(file),
                prefix: prefix
            )
        }
    }

    /// The partial if its durable bytes are those that were written.
    ///
    /// As long as the time of change stands that its inode had when the last attempt ended, nobody has touched
    /// it, and only the last region is read. After a crash, or if the time is another one, which a mere `chmod`
    /// can cause, all is read and compared; once, for then the time is recorded anew.
    private func believed(_ partial: PartialFile) async throws -> PartialFile? {
        let file = partial.file
        let prefix = partial.prefix
        guard prefix.end > 0 else { return partial }
        let settled = partial.record.settledNs
        let (changed, endsAsLeft) = try await self.services.disk.run {
            let changed = try file.identity().changedNanoseconds
            return (changed, try changed == settled && PrefixHasher(continuing: prefix, of: file) != nil)
        }
        if endsAsLeft { return partial }
        guard try await self.holds(file, prefix) else { return nil }
        var known = partial
        known.record = partial.row(settled: changed)
        let (read, row) = (partial.record, known.record)
        try await self.services.store.write { transaction in
            // Another one may look at a job that runs meanwhile: what that has committed stands.
            let now = try transaction.files(read.job).first { $0.generation == read.generation }
            if now == read { try transaction.save(row) }
        }
        return known
    }

    /// Reads a file's beginning back and tells whether it is what was written.
    func holds(_ file: OpenFile, _ prefix: PrefixHash) async throws -> Bool {
        guard prefix.end > 0 else { return true }
        self.running.phase = .verifying
        self.running.total = self.job.bytesTotal
        let hasher = PrefixHasher()
        while hasher.hash.end < prefix.end {
            try self.running.checkStop()
            self.running.done = hasher.hash.end
            let isRead = try await self.services.disk.run {
                do throws(SystemError) {
                    try file.read(into: hasher, upTo: min(prefix.end, hasher.hash.end + Self.readStep))
                } catch {
                    // It ends before, or the disk has lost some of it.
                    guard error.errno == ENODATA || error.errno == EIO else { throw error }
                    return false
                }
                return true
            }
            guard isRead else { return false }
        }
        return hasher.hash == prefix
    }

    // MARK: Older generations

    /// The newest older partial of the very object that the server sends, if it can be gone on with.
    ///
    /// Older generations are kept until a newer one has overtaken them, for a server may come back to what it
    /// had: an upload that was taken back, or mirrors of which one lags behind.
    func olderPartial(of remote: RemoteObject) async throws -> PartialFile? {
        let id = self.running.id
        let older = try await self.services.store.read { try $0.files(id) }.dropLast()
        for record in older.reversed() {
            let stored = RemoteObject(json: record.remote)
            guard stored.isResumable, stored.compare(remote) == .same,
                let found = try await self.find(record), found.durable > 0,
                let intact = try await self.believed(found)
            else { continue }
            return intact
        }
        return nil
    }

    /// Makes an older partial the newest generation; the one that was the newest is kept until it is overtaken.
    func takeUp(_ older: PartialFile) async throws -> PartialFile {
        let id = self.running.id
        let old = older.record
        let total = older.remote.totalBytes
        let durable = older.durable
        let coding = older.remote.contentEncoding
        let record = try await self.services.store.write { transaction in
            var record = old
            record.generation = (try transaction.files(id).last?.generation ?? old.generation) + 1
            try transaction.removeSegments(id, generation: old.generation)
            try transaction.removeFile(id, generation: old.generation)
            try transaction.save(record)
            try transaction.save(
                SegmentRecord(job: id, generation: record.generation, start: 0, end: total, durable: durable)
            )
            guard var job = try transaction.job(id) else { return record }
            job.bytesTotal = total
            job.bytesDurable = durable
            job.lengthProved = nil
            job.contentEncoding = coding
            try transaction.save(job)
            return record
        }
        var partial = older
        partial.record = record
        return partial
    }
}
