import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore
import FoundationEssentials
import Glibc

/// What is left to do of an upload after its job: the body that was kept for it, and what a server still has.
///
/// Recorded in the transaction that makes it due; tried again for a day.
enum UploadCleanup {
    /// Remove a body from the spool folder.
    static let spool = "spool"
    /// Tell a server that an unfinished upload is not wanted any more.
    static let terminate = "terminate"
    /// How long a server is tried.
    static let patience = Duration.seconds(86_400)

    /// The request that ends an upload, with what it needs; the job's own secrets are erased by then.
    struct Termination: Codable, Sendable {
        struct Field: Codable, Sendable {
            let name: String
            let value: String
        }
        let url: String
        let fields: [Field]
        let caFile: String?
        let proxy: ProxyEnvironment
        let allowHTTP: Bool

        init(_ call: UploadCall, url: String, request: JobRequest, isHome: Bool) {
            self.url = url
            self.fields =
                request.headers.filter { isHome || RedirectPlan.mayCross(header: $0.name) }
                .map { Field(name: $0.name, value: $0.value) }
                + call.fields.map { Field(name: $0.name, value: $0.value) }
            self.caFile = request.caFile
            self.proxy = request.proxy
            self.allowHTTP = request.allowHTTP
        }
    }

    /// Records that the body of a job has to go.
    static func removeSpool(of id: JobID, in transaction: Transaction, at now: Timestamp) throws {
        guard var upload = try transaction.upload(id), let path = upload.spool else { return }
        _ = try transaction.add(cleanup: self.spool, job: id, detail: path, at: now)
        upload.spool = nil
        try transaction.save(upload)
    }

    /// Records that what a server has of an unfinished upload has to go.
    static func abandon(_ id: JobID, in transaction: Transaction, at now: Timestamp) throws {
        guard var upload = try transaction.upload(id), let url = upload.url,
            let job = try transaction.job(id), job.state != .completed,
            let request = try transaction.request(id)
        else { return }
        let memory = UploadMemory(json: upload.state)
        let call: UploadCall
        switch upload.transport {
        case .tus: call = TusPlan.termination
        case .ietf: call = ResumableUploadPlan.termination(version: memory.version)
        case .auto, .put, .post, .multipart: return
        }
        let home = try? URLParser.parse(request.url).address.origin
        let isHome = (try? URLParser.parse(url).address.origin) == home
        let termination = Termination(call, url: url, request: request, isHome: isHome)
        let detail = String(decoding: try JSONEncoder().encode(termination), as: UTF8.self)
        _ = try transaction.add(cleanup: self.terminate, job: id, detail: detail, at: now)
        upload.url = nil
        try transaction.save(upload)
    }

    /// Does one of them; false if it has to be tried again.
    static func carryOut(_ cleanup: CleanupRecord, _ services: TransferServices) async throws -> Bool {
        let isDone =
            cleanup.kind == self.spool
            ? try await self.remove(cleanup.detail, services) : try await self.end(cleanup, services)
        if isDone {
            let id = cleanup.id
            try await services.store.write { try $0.removeCleanup(id) }
        }
        return isDone
    }

    private static func remove(_ path: String, _ services: TransferServices) async throws -> Bool {
        var calls = services.calls
        calls.allowedFolders = nil  // the spool folder is the queue's own
        return try await services.disk.run { [calls] in
            let (directory, name) = DownloadTransfer.split(path)
            do throws(SystemError) {
                let folder = try Folder(directory, calls: calls)
                try folder.remove(name)
                try folder.remove(SpoolName.unfinished(name))
                try folder.sync()
            } catch {
                return error.errno == ENOENT || error.errno == ENOTDIR
            }
            return true
        }
    }

    private static func end(_ cleanup: CleanupRecord, _ services: TransferServices) async throws -> Bool {
        guard
            let termination = try? JSONDecoder().decode(
                Termination.self,
                from: Data(cleanup.detail.utf8)
            ), let parsed = try? URLParser.parse(termination.url)
        else { return true }  // nothing could ever be done with it
        var policy = services.configuration.transport
        policy.jobAllowsHTTP = termination.allowHTTP
        guard policy.refusal(of: parsed.address.origin) == nil else { return true }
        // A host that asked to be left alone is asked another time, also by those who only tidy up.
        let host = parsed.address.origin.hostAndPort
        guard services.pauses.rest(of: host, at: services.time.now()) == nil else {
            return services.time.now() - cleanup.createdAt >= self.patience
        }
        var request = HTTPRequest(
            url: termination.url,
            method: "DELETE",
            fields: termination.fields.map { ResponseHead.Field(name: $0.name, value: $0.value) }
        )
        request.caFile = termination.caFile
        request.tlsMinimum = services.configuration.tlsMinimum
        request.connectTimeout = .seconds(5)
        request.stallTimeout = .seconds(10)
        let proxy = termination.proxy
        request.proxy = (parsed.address.origin.scheme == "https" ? proxy.https : proxy.http) ?? proxy.all
        request.noProxy = proxy.no
        let exchange = services.loop.open(request)
        let head = try? await exchange.head()
        exchange.receive(into: AnswerSink(limit: KeptAnswer.wordsLimit))
        _ = await exchange.end()
        // Done, gone, or not to be had; a server that is busy or broken may do it later.
        let isFinal = head.map { $0.status < 500 && ![408, 423, 425, 429].contains($0.status) } ?? false
        return isFinal || services.time.now() - cleanup.createdAt >= self.patience
    }
}

extension Engine {
    /// Does what is left to do of uploads; what fails is tried again later, and at the next start.
    func tidy() async {
        guard !self.isTidying, !self.isStopping else {
            self.tidyAgain = true
            return
        }
        self.isTidying = true
        defer { self.isTidying = false }
        var hasRest = false
        repeat {
            self.tidyAgain = false
            hasRest = false
            let all = (try? await self.services.store.read { try $0.cleanups() }) ?? []
            for cleanup in all where [UploadCleanup.spool, UploadCleanup.terminate].contains(cleanup.kind) {
                guard !self.isStopping else { return }
                // A disk or database that refuses now is asked again like a server.
                if (try? await UploadCleanup.carryOut(cleanup, self.services)) != true { hasRest = true }
            }
        } while self.tidyAgain && !self.isStopping
        guard hasRest, !self.isStopping else {
            self.tidyWait = Self.firstTidyWait
            return
        }
        let time = self.services.time
        self.tidyWait = min(self.tidyWait * 2, .seconds(3_600))
        let wait = self.tidyWait
        self.tidier?.cancel()
        self.tidier = Task {
            do {
                try await time.sleep(wait)
            } catch {
                return  // another one took its place
            }
            await self.tidy()
        }
    }
}
