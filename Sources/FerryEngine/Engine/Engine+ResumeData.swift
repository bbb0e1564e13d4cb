public import FerryCore
import FerryFiles
import FerryStore
import Glibc

extension Engine {
    /// What is needed to go on with a download elsewhere: up to its durable offset, and with its whole URL.
    ///
    /// The partial is read back, which takes as long as the disk needs. A running job is not disturbed.
    func resumeData(of job: JobRecord, _ request: JobRequest) async throws -> ResumeData {
        let id = job.id
        let record = try await self.services.store.read { try $0.file(id) }
        var document = ResumeData(
            createdAt: self.services.time.now(),
            url: request.url,
            directory: request.directory,
            remote: record.map { RemoteObject(json: $0.remote) } ?? RemoteObject(),
            options: ResumeData.Options(request)
        )
        guard let record else { return document }
        document.directory = record.directory
        document.finalURL = record.finalURL
        document.name = record.name
        let running = RunningJob(id: id, host: job.host, attempt: job.attempts)
        let transfer = DownloadTransfer(
            services: self.services,
            running: running,
            job: job,
            request: request
        )
        guard let partial = try await transfer.openPartial(onlyForReading: true) else { return document }
        document.partialName = partial.record.partialName
        document.remote = ResumeData.Remote(partial.remote)
        document.offsetBytes = partial.durable
        document.blockBytes = ResumeData.blockSize(for: partial.durable)
        let ranges = document.blockRanges
        document.blocks = try await Self.reading { try partial.file.hashes(of: ranges) }
        return document
    }

    /// Accepts the job that goes on with resume data; when it returns, the job survives a power cut.
    ///
    /// The offset is never trusted: the partial is looked for in the job's folder, beside the document and where
    /// it was, and read back; the longest prefix that its hashes prove counts. A partial that lies in another
    /// folder is moved into the job's. The job, its file and its offset are one transaction.
    ///
    /// - Parameters:
    ///   - document: The resume data.
    ///   - request: What is to be done, made from the document.
    ///   - beside: The folder that the document lies in.
    /// - Returns: The job; the same one if it is in the queue already.
    /// - Throws: ``FerryError`` as ``add(_:goOn:)``, or if the partial is in use.
    public func importResumeData(
        _ document: ResumeData,
        _ request: JobRequest,
        beside: String?
    ) async throws -> Added {
        let now = self.services.time.now()
        let checked = try Self.check(request, self.services.configuration, at: now)
        try self.checkPlaces([checked])
        let same = try await self.services.store.read { reader in
            try reader.sameTransfer(
                fingerprint: checked.new.urlFingerprint,
                directory: request.directory,
                output: request.output
            )
        }
        let search = PartialSearch(
            document: document,
            directory: checked.place?.directory ?? request.directory,
            beside: beside,
            calls: self.services.calls
        )
        let isNew = !same.contains { !$0.state.isFinal }
        let result = isNew ? try await Self.reading { try search.run() } : PartialSearch.Result()
        let calls = self.services.calls
        let (added, change) = try await self.services.store.write { transaction in
            let (added, change) = try Self.accept(checked, goOn: false, in: transaction, at: now, calls)
            guard added.outcome == .new, let job = added.job else { return (added, change) }
            var note = result.note
            let adoption = Adoption(document: document, checked: checked, search: search)
            if let found = result.found {
                let isAdopted = try adoption.adopt(found, for: job, in: transaction)
                if !isAdopted { note = "the file's name is taken; the download starts from 0" }
            } else {
                try adoption.keepClear(for: job, in: transaction)
            }
            let adopted = try transaction.job(job.id) ?? job
            return (Added(outcome: .new, job: adopted, note: note), change?.with(adopted))
        }
        self.services.crash.reach(.jobCommitted)
        if let change { self.tell([change]) }
        return added
    }

    /// Runs what reads much on a thread of its own, so that no sync of a transfer stands behind it.
    static func reading<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await BlockingPool(label: "ferry.resume-data", width: 1).run(body)
    }
}

extension JobChange {
    func with(_ job: JobRecord) -> JobChange {
        JobChange(event: self.event, job: job, remote: self.remote, deadline: self.deadline)
    }
}

/// Looks for the partial that resume data speak of, and proves how much of it is there.
private struct PartialSearch: Sendable {
    let document: ResumeData
    /// Where the job writes.
    let directory: String
    let beside: String?
    let calls: FileCalls

    struct Found: Sendable {
        let folder: Folder
        let file: OpenFile
        let identity: OpenFile.Identity
        let proved: Int64
    }

    struct Result: Sendable {
        var found: Found?
        /// What the user should know.
        var note: String?
    }

    private var candidates: [String] {
        var folders = [self.directory]
        for folder in [self.beside, self.document.directory] {
            if let folder, !folders.contains(folder) { folders.append(folder) }
        }
        return folders
    }

    func run() throws -> Result {
        guard let name = self.document.partialName, self.document.offsetBytes > 0 else { return Result() }
        let offset = self.document.offsetBytes
        var wrong: String?
        for path in self.candidates {
            guard let folder = try? Folder(path, calls: self.calls),
                try folder.identity(of: name)?.isRegular == true
            else { continue }
            let file = try folder.open(name)
            guard !file.isOpenElsewhere else {
                throw FerryError(
                    .busy,
                    "\(file.path) is in use by another process; pause the job that writes it first",
                    exitStatus: .failed
                )
            }
            let identity = try file.identity()
            let proved = try file.provedPrefix(self.document.blockRanges, hashes: self.document.blocks)
            guard proved > 0 else {
                wrong = wrong ?? file.path
                continue
            }
            try file.syncData()
            let note =
                proved == offset
                ? nil
                : "\(file.path) holds \(proved) of \(offset) bytes as they were; the rest is fetched again"
            return Result(
                found: Found(folder: folder, file: file, identity: identity, proved: proved),
                note: note
            )
        }
        if let wrong {
            return Result(
                note: "\(wrong) does not hold what it held; it is left alone, and the download starts from 0"
            )
        }
        let places = self.candidates.joined(separator: " and ")
        return Result(note: "\(name) is not in \(places); the download starts from 0")
    }
}

/// Gives a found partial to a new job, in the transaction that makes the job.
private struct Adoption {
    let document: ResumeData
    let checked: Engine.Checked
    let search: PartialSearch

    /// Records the file and its offset; false if the final name is another's and the job has to decide.
    func adopt(_ found: PartialSearch.Found, for job: JobRecord, in transaction: Transaction) throws -> Bool {
        guard let partialName = self.document.partialName else { return false }
        if let owner = try transaction.owner(ofPartial: partialName, in: found.folder.path) {
            throw FerryError(
                .busy,
                "\(found.file.path) belongs to job \(owner) of this queue; cancel that with --keep-partial first",
                exitStatus: .failed
            )
        }
        let folder = try Folder(self.search.directory, calls: self.search.calls)
        guard let name = try self.name(in: folder, for: job.id, transaction) else { return false }
        if found.folder.path != folder.path { try self.move(partialName, from: found.folder, to: folder) }
        try folder.sync()
        var remote = self.document.remote.object
        remote.verified = nil
        // A document proves nothing about the server: what would be whole by it is asked for all the same.
        if remote.totalBytes == found.proved { remote.totalBytes = nil }
        let hasher = PrefixHasher()
        try found.file.read(into: hasher, upTo: found.proved)
        var record = FileRecord(
            job: job.id,
            generation: 1,
            directory: folder.path,
            name: name,
            partialName: partialName,
            device: found.identity.device,
            inode: found.identity.inode,
            settledNs: found.identity.changedNanoseconds,
            finalURL: self.document.finalURL.map(URLRedaction.redact)
        )
        record.set(remote, prefix: hasher.hash)
        try transaction.save(record)
        try transaction.save(
            SegmentRecord(
                job: job.id,
                generation: 1,
                start: 0,
                end: remote.totalBytes,
                durable: found.proved
            )
        )
        var row = job
        row.path = folder.path(of: name)
        row.bytesTotal = remote.totalBytes
        row.bytesDurable = found.proved
        row.bestBytes = found.proved
        row.contentEncoding = remote.contentEncoding
        try transaction.save(row)
        return true
    }

    /// Lets a job that starts from 0 go round a file that has the name of its partial: it is left alone.
    ///
    /// The number of the job may be the same as in the queue that the document is of.
    func keepClear(for job: JobRecord, in transaction: Transaction) throws {
        guard let wanted = self.document.name else { return }
        let folder = try Folder(self.search.directory, calls: self.search.calls)
        func partial(_ generation: Int) -> String {
            FileName.partial(name: wanted, job: job.id, generation: generation)
        }
        var generation = 1
        while let found = try folder.identity(of: partial(generation)), !found.isRegular || found.size > 0 {
            generation += 1
        }
        guard generation > 1, let name = try self.name(in: folder, for: job.id, transaction) else { return }
        // Planned and not made, as after a crash in between: the attempt makes it.
        try transaction.save(
            FileRecord(
                job: job.id,
                generation: generation,
                directory: folder.path,
                name: name,
                partialName: FileName.partial(name: name, job: job.id, generation: generation)
            )
        )
    }

    /// The final name, reserved: that of `-o`, else the document's or the next free one.
    private func name(in folder: Folder, for id: JobID, _ transaction: Transaction) throws -> String? {
        if let place = self.checked.place { return place.name }
        guard let wanted = self.document.name else { return nil }
        let policy = self.checked.request.ifExists ?? .rename
        var number = 1
        while true {
            let name = number == 1 ? wanted : FileName.numbered(wanted, number)
            number += 1
            let found = try folder.identity(of: name)
            let isFree = found == nil || ([.overwrite, .update].contains(policy) && found?.isRegular == true)
            if isFree, try transaction.reserve(directory: folder.path, name: name, for: id) { return name }
            guard policy == .rename else { return nil }
        }
    }

    private func move(_ name: String, from: Folder, to folder: Folder) throws {
        let (old, new) = (from.path(of: name), folder.path(of: name))
        do throws(SystemError) {
            try from.move(name, to: folder)
        } catch {
            let reason =
                error.errno == EXDEV
                ? "it is on another file system; move it there first" : SystemError.text(error.errno)
            throw FerryError(.localIO, "cannot move \(old) to \(new): \(reason)", exitStatus: .failed)
        }
    }
}
