import CSQLite
import FerryCore
import Glibc

@testable import FerryStore

/// A state folder of its own, removed at the end.
func withFolder<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    var template = Array("/tmp/ferry-store-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else {
        throw StoreError(extendedCode: SQLITE_CANTOPEN, path: "/tmp")
    }
    let folder = String(cString: made)
    defer {
        for name in names(in: folder) { _ = unlink(folder + "/" + name) }
        _ = rmdir(folder)
    }
    return try await body(folder)
}

/// A store in a folder of its own, closed at the end.
func withStore<Value>(_ body: (JobStore) async throws -> Value) async throws -> Value {
    try await withFolder { folder in
        let store = try JobStore(directory: folder)
        defer { store.close() }
        return try await body(store)
    }
}

/// The files of a folder.
func names(in folder: String) -> [String] {
    guard let stream = opendir(folder) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}

/// A file's bytes, empty if it cannot be read; only for databases that no one has open.
func bytes(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { content += buffer[..<count] }
    return content
}

/// Writes a file.
func write(_ content: [UInt8], to path: String) {
    guard let file = fopen(path, "w") else { return }
    defer { fclose(file) }
    _ = fwrite(content, 1, content.count, file)
}

/// A file of `Fixtures/store`.
func fixture(_ name: String, from file: String = #filePath) -> String {
    let root = file.split(separator: "/").dropLast(3).joined(separator: "/")
    return "/\(root)/Fixtures/store/\(name)"
}

/// A time, `seconds` after the first one of the tests.
func time(_ seconds: Int64) -> Timestamp {
    Timestamp(milliseconds: 1_800_000_000_000 + seconds * 1_000)
}

/// A job to insert; its URL has nothing secret.
func newJob(
    _ name: String = "file",
    host: String = "example.org:443",
    group: String? = nil,
    priority: Int = 0
) -> NewJob {
    let url = "https://\(host)/\(name)"
    return NewJob(
        request: JobRequest(url: url, directory: "/data", group: group, priority: priority),
        redactedURL: url,
        urlFingerprint: "digest of \(url)",
        host: host,
        createdAt: time(0)
    )
}

extension Transaction {
    /// Changes a job.
    func update(_ id: JobID, _ change: (inout JobRecord) -> Void) throws {
        guard var job = try self.job(id) else {
            throw FerryError(.unknownJob, "there is no job \(id)", exitStatus: .failed)
        }
        change(&job)
        try self.save(job)
    }
}

extension JobRecord {
    /// Moves to a state with what the schema requires of it.
    mutating func move(to state: JobState, at time: Timestamp = time(0)) {
        self.state = state
        self.phase = state == .running ? .connecting : nil
        self.waitReason = state == .waiting ? .retry : nil
        self.nextTry = state == .waiting ? time : nil
        self.failureReason = state == .failed ? .gaveUp : nil
        self.finishedAt = state.isEnded ? time : nil
    }
}

/// A generator with a printed seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        self.state = seed
    }

    mutating func next() -> UInt64 {
        self.state &+= 0x9e37_79b9_7f4a_7c15
        var value = self.state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
