import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore
import FoundationEssentials

/// What an upload was found to send when it was accepted.
struct UploadSources: Sendable {
    /// The file that is sent; nil for a form.
    var source: SourceIdentity?
    /// The files of a form.
    var parts: [SourceIdentity] = []
    /// A file of the queue's own that goes with the job.
    var spool: String?

    /// A file that was looked at.
    init(source: SourceIdentity) {
        self.source = source
    }

    /// Looks at all files that an upload sends.
    ///
    /// - Throws: ``FerryError`` `.localIO` for one that is missing, not readable or no regular file.
    init(_ order: UploadOrder, calls: FileCalls) throws(FerryError) {
        switch order.body {
        case .file(let path):
            self.source = try Self.look(path, calls)
        case .spool(let path):
            guard calls.allowedFolders == nil else {
                throw FerryError.usage(
                    "the machine's queue takes no standard input; write it to a file in a folder that it may use"
                )
            }
            self.source = try Self.look(path, calls)
            self.spool = path
        case .form(let parts):
            for part in parts {
                guard case .file(let path) = part.content else { continue }
                self.parts.append(try Self.look(path, calls))
            }
        }
    }

    private static func look(_ path: String, _ calls: FileCalls) throws(FerryError) -> SourceIdentity {
        do throws(SystemError) {
            return try OpenFile.source(path, calls: calls).source()
        } catch {
            throw FerryError(.localIO, error.description, exitStatus: .failed)
        }
    }

    /// Stores what belongs to an upload besides its job, and its job's own columns.
    func insert(_ order: UploadOrder, job id: JobID, in transaction: Transaction) throws {
        try transaction.save(
            UploadRecord(
                job: id,
                transport: order.transport,
                parts: self.parts.isEmpty ? nil : self.parts.json,
                source: self.source,
                spool: self.spool
            )
        )
        guard var job = try transaction.job(id) else { return }
        job.path = self.spool == nil ? self.source?.path : nil
        job.bytesTotal = self.source?.size
        job.protocolName = order.transport == .auto ? nil : order.transport.rawValue
        try transaction.save(job)
    }
}

extension UploadOrder {
    /// A digest by which the same upload is found again: where to, what, and how.
    func fingerprint(url: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let body = (try? encoder.encode(self.body)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return URLParser.fingerprint("upload\n\(url)\n\(self.method ?? "")\n\(body)")
    }
}

extension Engine {
    /// Does what is left to do of uploads, and waits for it for a moment.
    func tidyNow() async {
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let time = self.services.time
        Task {
            await self.tidy()
            end.finish()
        }
        let limit = Task {
            try? await time.sleep(.seconds(3))  // cut short when it is done
            end.finish()
        }
        for await _ in ends {}
        limit.cancel()
    }
}
