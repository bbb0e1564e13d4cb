import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore
import FoundationEssentials
import Glibc

/// One attempt of an upload: from what the server has to its confirmation, or to the cause of a failure.
///
/// Order is the heart of it: the source is looked at, the upload's URL is committed and *then* data leaves; what
/// the server says that it has is committed and *then* the next piece leaves. Which request comes next is a
/// plan's matter (``TusPlan``, ``ResumableUploadPlan``).
struct UploadTransfer: Sendable {
    let services: TransferServices
    let running: RunningJob
    let job: JobRecord
    let request: JobRequest
    let order: UploadOrder

    /// What this attempt works on.
    struct Work: Sendable {
        var record: UploadRecord
        var memory: UploadMemory
        let file: OpenFile
        let source: SourceIdentity
        let address: WebAddress
        var knowledge: HostKnowledge
        /// Bodies wait for the server's leave, until one has gone up in this attempt.
        var asksForLeave = true
    }

    /// Carries the attempt out; every way out is an ``AttemptEnd``.
    func run() async -> AttemptEnd {
        do {
            return .uploaded(try await self.attempt())
        } catch let failure as TransferFailure {
            return self.running.stopEvent == nil ? .failed(failure) : .stopped
        } catch is RunningJob.Stopped {
            return .stopped
        } catch is CancellationError {
            return .stopped
        } catch let error as SystemError {
            let cause = TransferCause.local(errno: error.errno, path: error.path)
            return .failed(TransferFailure(cause, message: error.description))
        } catch {
            return .storeFailed(error.asFerryError)
        }
    }

    private func attempt() async throws -> UploadedFile {
        var work = try await self.prepare()
        if work.memory.isSent, work.memory.url == nil {
            try await self.forgetSent(&work)
            throw TransferFailure(UploadVerdict.unanswered(host: work.address.origin.host))
        }
        let isGuess = try await self.chooseTransport(&work)
        do {
            return try await self.carryOut(&work)
        } catch let failure as TransferFailure {
            // Other uploads to this host were plain ones, but this address may be a resumable server's.
            guard isGuess, case .status(let status, _, _, _) = failure.cause,
                [404, 405, 501].contains(status)
            else { throw failure }
            try await self.learn { $0.hasPlainUploads = nil }
            work.knowledge.hasPlainUploads = nil
            work.record.transport = .auto
            _ = try await self.chooseTransport(&work)
            guard work.record.transport != .put else { throw failure }
            return try await self.carryOut(&work)
        }
    }

    private func carryOut(_ work: inout Work) async throws -> UploadedFile {
        switch work.record.transport {
        case .tus:
            return try await self.follow(TusPlan(facts: self.facts(work), memory: work.memory), &work)
        case .ietf:
            return try await self.follow(
                ResumableUploadPlan(facts: self.facts(work), memory: work.memory),
                &work
            )
        case .auto, .put, .post, .multipart:
            return try await self.sendWhole(&work)
        }
    }

    /// What the plans have to know.
    func facts(_ work: Work) -> UploadFacts {
        UploadFacts(
            size: work.source.size,
            fileName: self.fileName,
            contentType: self.contentType(work),
            method: self.order.method,
            host: work.address.origin.host
        )
    }

    /// The name of the file that is sent; nil for forms and standard input.
    private var fileName: String? {
        guard case .file(let path) = self.order.body else { return nil }
        return path.split(separator: "/").last.map(String.init)
    }

    /// What the body is: a form's own type, the user's word, else what the file's name tells.
    func contentType(_ work: Work) -> String? {
        if let type = work.memory.formType ?? self.order.contentType { return type }
        guard case .file(let path) = self.order.body else { return MediaTypes.unknown }
        return MediaTypes.system.type(of: path)
    }

    // MARK: The source

    private func prepare() async throws -> Work {
        let id = self.running.id
        let host = self.running.host
        let (stored, learned) = try await self.services.store.read {
            (try $0.upload(id), try $0.host(host)?.learned)
        }
        guard var record = stored, let parsed = try? URLParser.parse(self.request.url) else {
            throw FerryError(.database, "the job's upload is missing", exitStatus: .database)
        }
        var memory = UploadMemory(json: record.state)
        memory.url = record.url
        memory.offset = record.offset
        if case .form(let parts) = self.order.body, record.source == nil {
            try await self.buildForm(parts, &record, &memory)
        }
        guard let source = record.source else {
            throw FerryError(.database, "the job's source is missing", exitStatus: .database)
        }
        var calls = self.services.calls
        if case .form = self.order.body { calls.allowedFolders = nil }  // its body is the queue's own file
        let (file, now) = try await self.services.disk.run { [calls] in
            do throws(SystemError) {
                let file = try OpenFile.source(source.path, calls: calls)
                file.expectSequentialReading()
                return (file, try file.source())
            } catch {
                guard error.errno == ENOENT else { throw error }
                throw TransferFailure(
                    .refused(.sourceChanged, "\(source.path) is not there any more", advice: nil)
                )
            }
        }
        if let change = source.change(to: now) { throw Self.changed(change) }
        self.running.total = source.size
        self.running.durable = memory.offset
        self.running.done = memory.offset
        if self.job.bytesTotal != source.size { try await self.commit(total: source.size) }
        return Work(
            record: record,
            memory: memory,
            file: file,
            source: source,
            address: parsed.address,
            knowledge: HostKnowledge(json: learned)
        )
    }

    static func changed(_ sentence: String) -> TransferFailure {
        TransferFailure(
            .refused(
                .sourceChanged,
                sentence,
                advice: "what was accepted is gone; add the upload again for what is there now"
            )
        )
    }

    /// Builds a form's body, once: the place is committed, then the body is made, then it is committed.
    private func buildForm(
        _ parts: [FormPart],
        _ record: inout UploadRecord,
        _ memory: inout UploadMemory
    ) async throws {
        guard let folder = self.services.spool else {
            throw FerryError(.localIO, "there is no folder for the bodies of forms", exitStatus: .failed)
        }
        let name = SpoolName.form(self.running.id)
        record.spool = folder + "/" + name
        try await self.services.store.write { [record] in try $0.save(record) }
        let (running, calls) = (self.running, self.services.calls)
        let built: MultipartSpool.Built
        let source: SourceIdentity
        do {
            (built, source) = try await self.services.disk.run {
                let built = try MultipartSpool.build(
                    parts,
                    as: name,
                    in: folder,
                    calls: calls,
                    progress: { done, total in
                        running.total = total
                        running.done = done
                    },
                    isStopped: { running.stopEvent != nil }
                )
                return (built, try OpenFile.source(built.path).source())
            }
        } catch let failure as MultipartSpool.Failure {
            throw self.failure(failure)
        }
        let expected = [SourceIdentity](json: record.parts)
        for (then, now) in zip(expected, built.sources) {
            let identity = SourceIdentity(
                path: then.path,
                device: now.device,
                inode: now.inode,
                size: now.size,
                modifiedNanoseconds: now.modifiedNanoseconds
            )
            if let change = then.change(to: identity) { throw Self.changed(change) }
        }
        self.services.crash.reach(.uploadSpooled)
        record.source = source
        memory.formType = built.contentType
        record.state = memory.json
        try await self.services.store.write { [record] in try $0.save(record) }
    }

    private func failure(_ failure: MultipartSpool.Failure) -> any Error {
        switch failure.code {
        case .stopped: RunningJob.Stopped()
        case .sourceChanged: Self.changed(failure.message)
        case .diskFull:
            TransferFailure(.local(errno: ENOSPC, path: self.services.spool ?? ""), message: failure.message)
        case .sourceUnusable, .storage:
            TransferFailure(.refused(.localIO, failure.message, advice: nil))
        }
    }

    // MARK: One request for all

    /// Sends the whole body in one request, whatever was sent before.
    private func sendWhole(_ work: inout Work) async throws -> UploadedFile {
        let isForm = work.record.transport == .multipart || work.memory.formType != nil
        let method = self.order.method ?? (work.record.transport == .put ? "PUT" : "POST")
        let isRepeatable = UploadVerdict.isRepeatable(
            method: method,
            hasKey: self.order.idempotencyKey != nil
        )
        var fields: [ResponseHead.Field] = []
        if let type = isForm ? work.memory.formType : self.contentType(work) {
            fields.append(ResponseHead.Field(name: "Content-Type", value: type))
        }
        if let key = self.order.idempotencyKey {
            fields.append(ResponseHead.Field(name: "Idempotency-Key", value: Self.quoted(key)))
        }
        let sent = try await self.send(
            Outgoing(
                method: method,
                address: work.address,
                fields: fields,
                body: 0..<work.source.size,
                isRepeatable: isRepeatable
            ),
            &work
        )
        let step = UploadVerdict.judge(
            sent.answer,
            isRepeatable: isRepeatable,
            hasKey: self.order.idempotencyKey != nil,
            host: work.address.origin.host
        )
        try await self.keep(sent, &work)
        guard case .done = step else { throw self.failure(step, sent.answer, work) }
        return try await self.finish(work, sent, result: sent.answer.location ?? sent.address.url)
    }

    /// The header's value is a structured string (draft-ietf-httpapi-idempotency-key-header §2.1).
    private static func quoted(_ key: String) -> String {
        guard !key.hasPrefix("\"") else { return key }
        return "\"\(key.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined())\""
    }

    /// Notes that an answer has come, or that its lack was told: the body may be sent again.
    private func forgetSent(_ work: inout Work) async throws {
        work.memory.isSent = false
        try await self.commit(&work)
    }

    /// Looks at the source once more, now that all of it has left, and says what was reached.
    func finish(_ work: Work, _ sent: Sent, result: String) async throws -> UploadedFile {
        self.running.phase = .finishing
        let file = work.file
        let now = try await self.services.disk.run { try file.source() }
        if let change = work.source.change(to: now) { throw Self.changed(change) }
        if let path = self.order.responsePath {
            let calls = self.services.calls
            let (body, umask) = (sent.body, self.request.umask)
            try await self.services.disk.run {
                try Self.write(body, to: path, mode: 0o666 & ~umask, calls: calls)
            }
        }
        self.running.done = work.source.size
        self.running.durable = work.source.size
        self.services.crash.reach(.uploadAnswered)
        return UploadedFile(size: work.source.size, resultURL: URLRedaction.redact(result))
    }

    /// Writes a server's answer under a name in one step.
    private static func write(_ body: [UInt8], to path: String, mode: UInt32, calls: FileCalls)
        throws(SystemError)
    {
        let (directory, name) = DownloadTransfer.split(path)
        let folder = try Folder(directory, calls: calls)
        let working = ".\(name).ferry-response"
        try folder.remove(working)
        let file = try folder.create(working, mode: mode)
        var failure: SystemError?
        body.withUnsafeBytes { bytes in
            do throws(SystemError) { try file.write(bytes, at: 0) } catch { failure = error }
        }
        if let failure { throw failure }
        try file.sync()
        try folder.rename(working, to: name, replacing: true)
        try folder.sync()
    }
}

/// An upload that the server has confirmed.
struct UploadedFile: Sendable {
    let size: Int64
    /// Where the result is, redacted.
    let resultURL: String
}

extension UploadMemory {
    /// Reads what ``json`` wrote; what cannot be read is not known.
    init(json: String?) {
        guard let json, let memory = try? JSONDecoder().decode(UploadMemory.self, from: Data(json.utf8))
        else {
            self.init()
            return
        }
        self = memory
    }

    /// The JSON text, without URL and offset.
    var json: String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension [SourceIdentity] {
    /// Reads what ``json`` wrote.
    init(json: String?) {
        self = json.flatMap { try? JSONDecoder().decode([SourceIdentity].self, from: Data($0.utf8)) } ?? []
    }

    /// The JSON text.
    var json: String? {
        (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }
}
