public import FerryCore
import FerryFiles
import FerryStore
import Glibc

extension Engine {
    /// What is needed to go on with a transfer elsewhere.
    ///
    /// - Throws: ``FerryError`` if there is no such job, it is over, or it sends what goes with the job.
    public func resumeDocument(of id: JobID) async throws -> ResumeDocument {
        let (job, request) = try await self.services.store.read { reader in
            (try reader.job(id), try reader.request(id))
        }
        guard let job, let request else {
            throw FerryError(.unknownJob, "there is no job \(id)", exitStatus: .failed)
        }
        guard !job.state.isFinal else {
            throw FerryError(
                .wrongState,
                "job \(id) is \(job.state.rawValue); only a transfer that is not over has resume data",
                exitStatus: .failed
            )
        }
        switch job.kind {
        case .download: return .download(try await self.resumeData(of: job, request))
        case .upload: return .upload(try await self.uploadResumeData(of: id, request))
        }
    }

    /// Reads the whole source, which takes as long as the disk needs: what the server has, acknowledged or not, must
    /// be the beginning of any file that takes its place.
    private func uploadResumeData(of id: JobID, _ request: JobRequest) async throws -> UploadResumeData {
        guard let order = request.upload, case .file(let path) = order.body else {
            let what =
                if case .form = request.upload?.body { "a form, whose body" } else {
                    "a copy of standard input, which"
                }
            throw FerryError(
                .wrongState,
                "job \(id) sends \(what) goes with the job; only the upload of a file has resume data",
                exitStatus: .failed
            )
        }
        guard let source = try await self.services.store.read({ try $0.upload(id)?.source }) else {
            throw FerryError(.database, "the job's source is missing", exitStatus: .database)
        }
        var document = UploadResumeData(
            createdAt: self.services.time.now(),
            request: request,
            order: order,
            source: source
        )
        let (ranges, calls) = (document.blockRanges, self.services.calls)
        document.blocks = try await Self.reading {
            let file = try OpenFile.source(path, calls: calls)
            try Self.compare(source, try file.source())
            file.expectSequentialReading()
            let hashes = try file.hashes(of: ranges)
            try Self.compare(source, try file.source())
            return hashes
        }
        // Read last: the server may have made the upload meanwhile.
        if let record = try await self.services.store.read({ try $0.upload(id) }) {
            var memory = UploadMemory(json: record.state)
            memory.url = record.url
            memory.offset = record.offset
            guard !memory.isSent else {
                throw FerryError(
                    .wrongState,
                    "all of job \(id) has left and must not be sent twice; wait for the server's answer",
                    exitStatus: .failed
                )
            }
            document.note(transport: record.transport, memory: memory)
        }
        return document
    }

    private static func compare(_ then: SourceIdentity, _ now: SourceIdentity) throws(FerryError) {
        guard let change = then.change(to: now) else { return }
        throw FerryError(.localIO, change, exitStatus: .failed)
    }

    /// Accepts the job that goes on with resume data of either kind.
    public func importResumeData(
        _ document: ResumeDocument,
        _ request: JobRequest,
        beside: String?
    ) async throws -> Added {
        switch document {
        case .download(let document):
            return try await self.importResumeData(document, request, beside: beside)
        case .upload(let document):
            return try await self.importResumeData(document, request, beside: beside)
        }
    }

    /// Accepts the job that goes on with an upload; when it returns, the job survives a power cut.
    ///
    /// The offset is never trusted: the server is asked for it. The file is looked for where the request says, else
    /// where it was, else beside the document; one that is not the same by identity is read and compared.
    private func importResumeData(
        _ document: UploadResumeData,
        _ request: JobRequest,
        beside: String?
    ) async throws -> Added {
        var request = request
        guard case .file(let path) = request.upload?.body else {
            throw FerryError.usage("the resume data are an upload's, and the request is not")
        }
        var places = [path]
        if path == document.source.path, let beside {
            let other = UploadResumeData.path(of: document.name, in: beside)
            if other != path { places.append(other) }
        }
        let search = SourceSearch(document: document, places: places, calls: self.services.calls)
        let source = try await Self.reading { try search.run() }
        request.upload?.body = .file(path: source.path)
        let now = self.services.time.now()
        var checked = try Self.check(request, self.services.configuration, at: now)
        checked.sources = UploadSources(source: source)
        let calls = self.services.calls
        let (added, change) = try await self.services.store.write { [checked] transaction in
            let (added, change) = try Self.accept(checked, goOn: false, in: transaction, at: now, calls)
            guard added.outcome == .new, let job = added.job else { return (added, change) }
            let note = try Self.takeOver(document, as: job.id, in: transaction)
            let row = try transaction.job(job.id) ?? job
            return (Added(outcome: .new, job: row, note: note), change?.with(row))
        }
        self.services.crash.reach(.jobCommitted)
        if let change { self.tell([change]) }
        return added
    }

    /// Gives a new job what is on the server, in the transaction that makes the job; tells what the user should know.
    private static func takeOver(
        _ document: UploadResumeData,
        as id: JobID,
        in transaction: Transaction
    ) throws -> String? {
        guard let url = document.uploadURL, var record = try transaction.upload(id) else {
            return "no upload on the server can be gone on with; it starts from 0"
        }
        if let owner = try transaction.owner(ofUpload: url) {
            throw FerryError(
                .busy,
                "the upload on the server belongs to job \(owner) of this queue; cancel that with --keep-partial first",
                exitStatus: .failed
            )
        }
        record.transport = document.transport
        record.url = url
        record.state = document.memory.json
        try transaction.save(record)
        guard var job = try transaction.job(id) else { return nil }
        job.protocolName = document.transport.rawValue
        try transaction.save(job)
        return nil
    }
}

/// Looks for the file whose beginning is on a server, and proves that it is the one.
private struct SourceSearch: Sendable {
    let document: UploadResumeData
    let places: [String]
    let calls: FileCalls

    func run() throws -> SourceIdentity {
        var problem: FerryError?
        for path in self.places {
            do {
                return try self.look(path)
            } catch let error as SystemError where error.errno == ENOENT {
                continue
            } catch let error as SystemError {
                problem = problem ?? FerryError(.localIO, error.description, exitStatus: .failed)
            } catch let error as FerryError {
                problem = problem ?? error
            }
        }
        let places = self.places.joined(separator: " nor ")
        throw problem
            ?? FerryError(
                .localIO,
                "the file to send is not at \(places); say with -d in which folder it is",
                exitStatus: .failed
            )
    }

    private func look(_ path: String) throws -> SourceIdentity {
        let file = try OpenFile.source(path, calls: self.calls)
        let now = try file.source()
        let then = self.document.source
        if path == then.path, then.change(to: now) == nil { return now }
        guard now.size == then.size else {
            throw Self.refusal("\(path) has \(now.size) bytes, and the file of the upload had \(then.size)")
        }
        file.expectSequentialReading()
        guard try file.provedPrefix(self.document.blockRanges, hashes: self.document.blocks) == now.size
        else {
            throw Self.refusal("\(path) does not hold what the file of the upload held")
        }
        if let change = now.change(to: try file.source()) { throw Self.refusal(change) }
        return now
    }

    private static func refusal(_ sentence: String) -> FerryError {
        FerryError(.localIO, sentence, exitStatus: .failed)
    }
}
