import FerryCore
import FerryStore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryEngine

extension EngineScope {
    /// Writes a file to send and gives its bytes.
    func source(_ name: String = "a.bin", size: Int) throws -> (path: String, bytes: [UInt8]) {
        let bytes = TestObject(size: Int64(size), seed: 31).bytes(0..<Int64(size))
        let path = self.folder.file(name)
        try self.overwrite(path, bytes)
        return (path, bytes)
    }

    /// Replaces a file's content.
    func overwrite(_ path: String, _ bytes: [UInt8]) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            try #require(count > 0)
            done += count
        }
    }

    /// Adds an upload and lets it run.
    @discardableResult
    func send(
        _ path: String,
        to url: String,
        _ transport: UploadProtocol = .put,
        _ change: (inout UploadOrder) -> Void = { _ in },
        request: (inout JobRequest) -> Void = { _ in }
    ) async throws -> JobID {
        var order = UploadOrder(body: .file(path: path), transport: transport)
        change(&order)
        return try await self.add(url) {
            $0.kind = .upload
            $0.upload = order
            request(&$0)
        }
    }

    /// Adds an upload and waits for its end.
    func put(
        _ path: String,
        to url: String,
        _ transport: UploadProtocol = .put,
        _ change: (inout UploadOrder) -> Void = { _ in },
        request: (inout JobRequest) -> Void = { _ in }
    ) async throws -> JobRecord {
        try await self.end(of: self.send(path, to: url, transport, change, request: request))
    }

    /// What is stored of an upload beside its job.
    func answer(of id: JobID) async throws -> KeptAnswer? {
        try await self.engine.job(id)?.answer
    }

    /// Waits until nothing is left to be done after the fact.
    func waitForNoCleanups() async throws {
        while try await !self.store.read({ try $0.cleanups() }).isEmpty { await Task.yield() }
    }
}
