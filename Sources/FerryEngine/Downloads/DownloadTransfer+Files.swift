import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore
import Glibc

extension DownloadTransfer {
    /// What a download begins with: an empty partial, or the word that a file is left alone.
    enum Begun: Sendable {
        case partial(PartialFile)
        case leftAlone(AttemptEnd)
    }

    /// A file that is there already and that `--if-exists skip` or `update` asks about.
    struct ExistingFile: Sendable {
        let path: String
        /// The fields that make the server answer 304 if it still has the same.
        let conditions: [ResponseHead.Field]
    }

    // MARK: A file that is there

    /// The file that `skip` and `update` are about, if the name is known beforehand and taken.
    func existingFile(_ partial: PartialFile?) async throws -> ExistingFile? {
        guard partial == nil, let policy = self.request.ifExists, policy == .skip || policy == .update else {
            return nil
        }
        let (directory, name) = self.plannedPlace
        let calls = self.services.calls
        let found = try await self.services.disk.run { () -> (String, OpenFile.Identity)? in
            let folder = try Folder(directory, calls: calls)
            return try folder.identity(of: name).map { (folder.path(of: name), $0) }
        }
        guard let (path, identity) = found else { return nil }
        let published = try await self.services.store.read { try $0.published(path: path) }
        var conditions: [ResponseHead.Field] = []
        if policy == .update {
            let isOurs =
                published?.inode == identity.inode && published?.size == identity.size
                && published?.mtimeNs == identity.modifiedNanoseconds
            let remote = isOurs ? published.map { RemoteObject(json: $0.remote) } : nil
            if let tag = remote?.entityTag {
                conditions = [ResponseHead.Field(name: "If-None-Match", value: tag)]
            } else {
                let changed = Timestamp(milliseconds: identity.modifiedNanoseconds / 1_000_000)
                let date = remote?.lastModified ?? HTTPDate.format(changed)
                conditions = [ResponseHead.Field(name: "If-Modified-Since", value: date)]
            }
        }
        return ExistingFile(path: path, conditions: conditions)
    }

    /// The end of a job that leaves the file that is there as it is.
    func leftAlone(_ file: ExistingFile) -> AttemptEnd {
        .leftAlone(
            path: file.path,
            message: self.request.ifExists == .update
                ? "the file that is there is up to date" : "the file that is there was left alone"
        )
    }

    /// Folder and name as far as they are known without an answer.
    var plannedPlace: (directory: String, name: String) {
        if let output = self.request.output { return Self.split(output) }
        let path = (try? URLParser.parse(self.request.url))?.address.path ?? "/"
        return (self.request.directory, FileName.fromURLPath(path) ?? "index")
    }

    /// Folder and last component of an absolute path.
    static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return ("/", path) }
        let directory = String(path[..<slash])
        return (directory.isEmpty ? "/" : directory, String(path[path.index(after: slash)...]))
    }

    // MARK: Beginning

    /// Decides the name, and makes an empty partial in a new generation.
    ///
    /// Intent first: name and partial's name are committed, then the partial is created, then its inode is
    /// committed; so a partial is never without a row, and a row tells whether the file can be trusted.
    func begin(
        _ answer: Answer,
        remote: RemoteObject,
        length: Int64?
    ) async throws -> Begun {
        let id = self.running.id
        do {
            let known = try await self.services.store.read { try $0.file(id) }
            let place: (directory: String, name: String)
            if let known {
                place = (known.directory, known.name)
            } else {
                switch try await self.decideName(answer) {
                case .reserved(let directory, let name): place = (directory, name)
                case .leftAlone(let path):
                    answer.exchange.cancel()
                    return .leftAlone(self.leftAlone(ExistingFile(path: path, conditions: [])))
                }
            }
            var record = FileRecord(
                job: id,
                generation: max(1, (known?.generation ?? 0) + (known?.inode == nil ? 0 : 1)),
                directory: place.directory,
                name: place.name,
                partialName: "",
                device: nil,
                inode: nil,
                remote: remote.json,
                finalURL: URLRedaction.redact(answer.address.url)
            )
            let planned = known?.inode == nil ? known?.partialName : nil
            let partial = try await self.createPlanned(&record, over: planned, remote: remote, answer: answer)
            try await self.commit(partial)
            self.services.crash.reach(.partialCommitted)
            if let length { try await self.reserve(length, for: partial, planned: record) }
            return .partial(partial)
        } catch {
            answer.exchange.cancel()
            throw error
        }
    }

    /// What is decided about a file's name.
    private enum DecidedName: Sendable {
        /// It is this job's.
        case reserved(directory: String, name: String)
        /// `skip` says to leave the file that is there.
        case leftAlone(path: String)
    }

    /// Decides the folder and name of the file.
    private func decideName(_ answer: Answer) async throws -> DecidedName {
        let policy = self.request.ifExists ?? (self.request.output == nil ? .rename : .fail)
        let (directory, wanted) = self.wantedPlace(answer)
        let calls = self.services.calls
        let id = self.running.id
        let folder = try await self.services.disk.run { try Folder(directory, calls: calls) }
        var number = 1
        while true {
            let name = number == 1 ? wanted : FileName.numbered(wanted, number)
            let found = try await self.services.disk.run { try folder.identity(of: name) }
            let isReplaceable = policy == .overwrite || policy == .update
            if found == nil || (isReplaceable && found?.isRegular == true) {
                let isOurs = try await self.services.store.write { transaction in
                    try transaction.reserve(directory: directory, name: name, for: id)
                }
                if isOurs { return .reserved(directory: directory, name: name) }
                if policy != .rename {
                    throw TransferFailure(
                        .exists(folder.path(of: name)),
                        message: "another job is going to write \(folder.path(of: name))"
                    )
                }
            } else if policy == .skip {
                return .leftAlone(path: folder.path(of: name))
            } else if policy != .rename {
                throw TransferFailure(.exists(folder.path(of: name)))
            }
            number += 1
        }
    }

    private func wantedPlace(_ answer: Answer) -> (directory: String, name: String) {
        if self.request.output != nil { return self.plannedPlace }
        let offered = answer.head.first("Content-Disposition").flatMap { ContentDisposition($0).fileName }
        let name =
            offered.flatMap { FileName.safe($0) } ?? FileName.fromURLPath(answer.address.path) ?? "index"
        return (self.request.directory, name)
    }

    /// Commits the intent to create a partial, and what the head has told.
    private func plan(
        _ record: FileRecord,
        insteadOf taken: Int?,
        remote: RemoteObject,
        answer: Answer
    ) async throws {
        let id = self.running.id
        let path = record.directory == "/" ? "/\(record.name)" : "\(record.directory)/\(record.name)"
        let head = answer.head
        self.running.path = path
        try await self.services.store.write { transaction in
            if let taken { try transaction.removeFile(id, generation: taken) }
            try transaction.save(record)
            guard var job = try transaction.job(id) else { return }
            job.path = path
            job.bytesTotal = remote.totalBytes
            job.lengthProved = nil
            job.httpVersion = head.httpVersion
            job.contentEncoding = remote.contentEncoding
            job.protocolName = "http"
            try transaction.save(job)
        }
    }

    /// Plans and creates a partial, in the next generation whose name is free.
    ///
    /// Job numbers begin at 1 in every queue, so two queues that fetch a file of one name into one folder may want
    /// the same partial. A planned generation whose name is another's is forgotten with the next plan.
    private func createPlanned(
        _ record: inout FileRecord,
        over leftOver: String?,
        remote: RemoteObject,
        answer: Answer
    ) async throws -> PartialFile {
        let (id, first) = (self.running.id, record.generation)
        var taken: Int?
        while true {
            record.partialName = FileName.partial(name: record.name, job: id, generation: record.generation)
            try await self.plan(record, insteadOf: taken, remote: remote, answer: answer)
            self.services.crash.reach(.partialPlanned)
            do {
                return try await self.create(record, over: leftOver, remote: remote)
            } catch let error as SystemError where error.errno == EEXIST {
                guard record.generation - first < Self.foreignPartials else { throw error }
                taken = record.generation
                record.generation += 1
            }
        }
    }

    /// How many partials of others may be in the way of a new one.
    private static let foreignPartials = 16

    /// Creates an empty partial; where an empty file has the name `leftOver`, in its place.
    private func create(_ record: FileRecord, over leftOver: String?, remote: RemoteObject) async throws
        -> PartialFile
    {
        let calls = self.services.calls
        let mode = 0o666 & ~self.request.umask
        let crash = self.services.crash
        let edits = self.services.edits
        return try await self.services.disk.run {
            let folder = try Folder(record.directory, calls: calls)
            // A crash can have left what was planned behind: then it is empty, for nothing is written before its inode
            // is committed. Anything else is another queue's, and is left alone.
            if record.partialName == leftOver, let left = try folder.identity(of: record.partialName),
                left.isRegular, left.size == 0
            {
                try folder.remove(record.partialName)
            }
            let file = try folder.create(record.partialName, mode: mode)
            try folder.sync()
            crash.reach(.partialCreated)
            let identity = try file.identity()
            var created = record
            created.device = identity.device
            created.inode = identity.inode
            return PartialFile(
                record: created,
                remote: remote,
                folder: folder,
                file: file,
                edits: edits.mark(file),
                prefix: .empty
            )
        }
    }

    /// Commits the partial's inode.
    ///
    /// Older generations are kept until this one has overtaken them; those that never had a file just go.
    private func commit(_ partial: PartialFile) async throws {
        let id = self.running.id
        let total = partial.remote.totalBytes
        let record = partial.record
        try await self.services.store.write { transaction in
            try transaction.save(record)
            try transaction.save(
                SegmentRecord(job: id, generation: record.generation, start: 0, end: total, durable: 0)
            )
            guard var job = try transaction.job(id) else { return }
            job.bytesDurable = 0
            try transaction.save(job)
        }
        if record.generation > 1 { try await self.commit(partial.prefix, of: partial) }
    }

    /// Reserves space for all of a partial; where there is none, the partial goes and is only planned again.
    private func reserve(_ length: Int64, for partial: PartialFile, planned: FileRecord) async throws {
        do {
            try await self.services.disk.run { try partial.file.reserve(length) }
        } catch {
            // It may hold what space there was.
            try await self.services.disk.run { try? partial.folder.remove(partial.record.partialName) }
            try await self.services.store.write { try $0.save(planned) }
            throw error
        }
    }

    // MARK: Finishing

    /// Compares the digests that are expected, then puts the file in its place.
    ///
    /// `computed` are digests of the whole file that are known already; the others are read from it.
    func complete(
        _ partial: PartialFile,
        total: Int64,
        lengthProved: Bool,
        computed: [DigestAlgorithm: Checksum] = [:]
    ) async throws -> AttemptEnd {
        let expected = self.expectedDigests(of: partial.remote)
        guard !expected.isEmpty else {
            return try await self.finish(partial, total: total, lengthProved: lengthProved)
        }
        self.running.phase = .verifying
        let missing = DigestVerdict.algorithms(for: expected).subtracting(computed.keys)
        let digests = try await computed.merging(self.read(missing, of: partial.file, total)) { $1 }
        var verified = partial
        switch DigestVerdict(computed: digests, expected: expected) {
        case .proved(let digest):
            verified.remote.verified = RemoteObject.VerifiedChecksum(
                expected: digest,
                actual: digests[digest.checksum.algorithm]
            )
            return try await self.finish(verified, total: total, lengthProved: true)
        case .unproved:
            return try await self.finish(partial, total: total, lengthProved: lengthProved)
        case .mismatch(let digest):
            throw DigestMismatch(
                partial: partial,
                expected: digest,
                actual: digests[digest.checksum.algorithm]
            )
        }
    }

    /// Reads the whole file for digests that are not known.
    private func read(
        _ algorithms: Set<DigestAlgorithm>,
        of file: OpenFile,
        _ total: Int64
    ) async throws -> [DigestAlgorithm: Checksum] {
        guard !algorithms.isEmpty else { return [:] }
        let running = self.running
        do {
            return try await self.services.disk.run {
                try file.digest(of: algorithms, range: 0..<total) { running.stopEvent != nil }
            }
        } catch let failure as Digester.Failure {
            // What the server named is a bonus, what the user named is not.
            guard let wanted = self.request.checksum else { return [:] }
            throw TransferFailure(.checksum(wanted.algorithm.rawValue), message: failure.description)
        }
    }

    /// A whole file does not have the digest that it should have.
    struct DigestMismatch: Error {
        let partial: PartialFile
        let expected: ExpectedDigest
        let actual: Checksum?
    }

    /// What the file must have: by the user's word, else by the server's.
    func expectedDigests(of remote: RemoteObject) -> [ExpectedDigest] {
        let named = self.request.compressed ? [] : remote.digests ?? []
        return (self.request.checksum.map { [.user($0)] } ?? []) + named
    }

    /// Records that a whole file was wrong: its bytes count for nothing, and stay as evidence.
    ///
    /// - Returns: Whether it is to be fetched once more.
    func recordMismatch(_ mismatch: DigestMismatch) async throws -> Bool {
        let id = self.running.id
        var partial = mismatch.partial
        partial.remote.verified = RemoteObject.VerifiedChecksum(
            expected: mismatch.expected,
            actual: mismatch.actual
        )
        partial.prefix = .empty
        let record = partial.row()
        let total = partial.remote.totalBytes
        let now = self.services.time.now()
        return try await self.services.store.write { transaction in
            try transaction.save(record)
            try transaction.save(
                SegmentRecord(job: id, generation: record.generation, start: 0, end: total, durable: 0)
            )
            guard var job = try transaction.job(id) else { return false }
            job.mismatches += 1
            job.bytesDurable = 0
            job.lengthProved = nil
            job.phase = nil
            try transaction.save(job)
            guard job.mismatches == 1 else { return false }
            try transaction.append(
                event: "restarted",
                job: id,
                state: job.state,
                reason: FailureReason.checksum.rawValue,
                message: "the digest does not match; the download starts over",
                at: now
            )
            return true
        }
    }

    /// Syncs the file and puts it in its place, in the only order that survives a power cut.
    func finish(_ partial: PartialFile, total: Int64, lengthProved: Bool) async throws -> AttemptEnd {
        self.running.phase = .finishing
        let file = partial.file
        let isDoubtful = try await self.services.disk.run {
            let size = try file.identity().size
            guard size >= total else { throw PartialChanged() }
            if size > total { try file.truncate(to: total) }
            self.setRemoteTime(file, partial.remote)
            try file.sync()
            return file.hasHole(before: total) || partial.isEdited
        }
        if isDoubtful, try await !self.holds(file, partial.prefix) { throw PartialChanged() }
        self.services.crash.reach(.fileSynced)
        try await self.commitFinishing(partial, total: total, lengthProved: lengthProved)
        self.running.durable = total
        self.running.total = total
        self.services.crash.reach(.finishing)
        var record = partial.row()
        while true {
            do {
                return try await self.publish(
                    record,
                    file: file,
                    folder: partial.folder,
                    remote: partial.remote
                )
            } catch let error as SystemError where error.errno == EEXIST {
                guard self.request.output == nil, self.request.ifExists ?? .rename == .rename else {
                    throw TransferFailure(.exists(partial.folder.path(of: record.name)))
                }
                record = try await self.rename(record, folder: partial.folder)
            }
        }
    }

    /// Gives the file the server's date, if that is wanted; a date that cannot be set is no failure.
    private func setRemoteTime(_ file: OpenFile, _ remote: RemoteObject) {
        guard self.request.remoteTime, let text = remote.lastModified,
            let date = HTTPDate.parse(text, now: self.services.time.now())
        else { return }
        try? file.setModified(seconds: date.milliseconds / 1_000)  // HTTP knows whole seconds
    }

    private func commitFinishing(_ partial: PartialFile, total: Int64, lengthProved: Bool) async throws {
        let id = self.running.id
        let generation = partial.record.generation
        var whole = partial
        whole.remote.totalBytes = total
        let record = whole.row()
        let now = self.services.time.now()
        let cleanups = try await self.services.store.write { transaction in
            try transaction.save(record)
            try transaction.save(
                SegmentRecord(job: id, generation: generation, start: 0, end: total, durable: total)
            )
            for file in try transaction.files(id) where file.generation < generation {
                try Cleanup.retire(file, in: transaction, at: now)
            }
            guard var job = try transaction.job(id) else { return [CleanupRecord]() }
            job.bytesTotal = total
            job.bytesDurable = total
            job.bestBytes = max(job.bestBytes, total)
            job.lengthProved = lengthProved
            job.phase = .finishing
            try transaction.save(job)
            return generation > 1 ? try transaction.cleanups().filter { $0.job == id } : []
        }
        for cleanup in cleanups where cleanup.kind == Cleanup.unlink {
            try await Cleanup.carryOut(cleanup, self.services)
        }
    }

    private func publish(
        _ record: FileRecord,
        file: OpenFile,
        folder: Folder,
        remote: RemoteObject
    ) async throws -> AttemptEnd {
        let isReplacing = self.request.ifExists == .overwrite || self.request.ifExists == .update
        let crash = self.services.crash
        let fingerprint = URLParser.fingerprint(self.request.url)
        return try await self.services.disk.run {
            guard try folder.identity(of: record.partialName)?.inode == file.identity().inode else {
                throw PartialChanged()  // another file has its name
            }
            try folder.rename(record.partialName, to: record.name, replacing: isReplacing)
            crash.reach(.renamed)
            try folder.sync()
            crash.reach(.folderSynced)
            return .published(
                PublishedFile(
                    path: folder.currentPath(of: record.name),
                    identity: try file.identity(),
                    remote: remote,
                    fingerprint: fingerprint
                )
            )
        }
    }

    /// Takes the next free name after somebody else took the decided one.
    private func rename(_ record: FileRecord, folder: Folder) async throws -> FileRecord {
        let id = self.running.id
        var number = 2
        while true {
            let name = FileName.numbered(record.name, number)
            number += 1
            guard try await self.services.disk.run({ try folder.identity(of: name) }) == nil else { continue }
            var renamed = record
            renamed.name = name
            let path = folder.path(of: name)
            let isOurs = try await self.services.store.write { [renamed] transaction in
                guard try transaction.reserve(directory: renamed.directory, name: name, for: id) else {
                    return false
                }
                try transaction.save(renamed)
                if var job = try transaction.job(id) {
                    job.path = path
                    try transaction.save(job)
                }
                return true
            }
            if isOurs { return renamed }
        }
    }
}
