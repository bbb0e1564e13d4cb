import FerryCore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryFiles

/// The expected digests by size.
private let vectors: [Int: [DigestAlgorithm: Checksum]] = {
    let entries = (try? ChecksumList.parse(digestVectors.utf8)) ?? []
    return Dictionary(grouping: entries) { Int($0.name) ?? -1 }
        .mapValues { Dictionary(uniqueKeysWithValues: $0.map { ($0.checksum.algorithm, $0.checksum) }) }
}()

private let sizes = [0, 1, 63, 64, 65, 127, 128, 129, 1_048_575, 1_048_576, 1_048_577]

/// 0, 1, … 250, 0, 1, …, made once and block-wise: a byte at a time takes seconds without optimisation.
private let pattern: [UInt8] = {
    var pattern = [UInt8](0..<251)
    while pattern.count < 3 * 1_048_576 { pattern += pattern }
    return pattern
}()

private func bytes(_ count: Int) -> ArraySlice<UInt8> { pattern[..<count] }

@Suite struct DigesterTests {
    @Test func `every size has an expected digest of every algorithm`() {
        #expect(vectors.keys.sorted() == sizes)
        #expect(vectors.values.allSatisfy { Set($0.keys) == Set(DigestAlgorithm.allCases) })
    }

    @Test(arguments: sizes)
    func `all algorithms at once give the known digests`(size: Int) throws {
        let digester = try Digester(Set(DigestAlgorithm.allCases))
        try bytes(size).withUnsafeBytes { try digester.update($0) }
        #expect(try digester.finish() == vectors[size])
    }

    @Test(arguments: DigestAlgorithm.allCases)
    func `one algorithm gives its digest alone`(algorithm: DigestAlgorithm) throws {
        let digester = try Digester([algorithm])
        try bytes(65).withUnsafeBytes { try digester.update($0) }
        #expect(try digester.finish() == [algorithm: vectors[65]?[algorithm]])
    }

    @Test(arguments: [(129, 1), (129, 63), (129, 64), (129, 128), (1_048_577, 4_095), (1_048_577, 1_048_576)])
    func `the pieces do not matter`(size: Int, step: Int) throws {
        let digester = try Digester([.sha256, .md5])
        let all = bytes(size)
        try all.withUnsafeBytes { raw in
            for start in stride(from: 0, to: raw.count, by: step) {
                try digester.update(
                    UnsafeRawBufferPointer(rebasing: raw[start..<min(start + step, raw.count)])
                )
                if start == 0 { try digester.update(UnsafeRawBufferPointer(start: nil, count: 0)) }
            }
        }
        #expect(try digester.finish() == vectors[all.count]?.filter { [.sha256, .md5].contains($0.key) })
    }

    @Test func `more bytes may follow a finish`() throws {
        let digester = try Digester([.sha256])
        let all = bytes(65)
        try all[..<64].withUnsafeBytes { try digester.update($0) }
        #expect(try digester.finish() == [.sha256: vectors[64]?[.sha256]])
        try all[64...].withUnsafeBytes { try digester.update($0) }
        #expect(try digester.finish() == [.sha256: vectors[65]?[.sha256]])
    }

    @Test func `no algorithm gives no digest`() throws {
        let digester = try Digester([])
        try bytes(1).withUnsafeBytes { try digester.update($0) }
        #expect(try digester.finish().isEmpty)
    }

    @Test func `an algorithm that libcrypto lacks is an error with its words`() throws {
        let failure = try #require(throws: Digester.Failure.self) {
            _ = try Digester([.md5], properties: "provider=none-such")
        }
        #expect(failure.algorithm == .md5)
        #expect(failure.description.hasPrefix("cannot compute md5: "))
        #expect(failure.reason.contains("unsupported"))
    }
}

@Suite struct FileDigestTests {
    /// A file of that size in a temporary folder, opened with these calls.
    private func withFile<Result>(
        _ size: Int,
        calls: FileCalls = .real,
        _ body: (OpenFile) throws -> Result
    ) throws -> Result {
        try withTemporaryFolder { (folder: TemporaryFolder) in
            let content = bytes(size)
            let file = try Folder(folder.path, calls: calls).create("file", mode: 0o600)
            try content.withUnsafeBytes { try file.write($0, at: 0) }
            return try body(file)
        }
    }

    private func digests(_ content: some Sequence<UInt8>) throws -> [DigestAlgorithm: Checksum] {
        let digester = try Digester([.sha256, .sha1])
        try Array(content).withUnsafeBytes { try digester.update($0) }
        return try digester.finish()
    }

    @Test(arguments: sizes)
    func `a whole file has the known digests`(size: Int) throws {
        try self.withFile(size) { file in
            let found = try file.digest(of: Set(DigestAlgorithm.allCases), range: 0..<Int64(size))
            #expect(found == vectors[size])
        }
    }

    @Test(arguments: [
        0..<0, 0..<1, 5..<5, 5..<70, 1..<1_048_577, 1_048_570..<2_097_200, 2_097_199..<2_097_200,
    ])
    func `a range has its own digests`(range: Range<Int>) throws {
        try self.withFile(2_097_200) { file in
            let found = try file.digest(
                of: [.sha256, .sha1],
                range: Int64(range.lowerBound)..<Int64(range.upperBound)
            )
            #expect(try found == self.digests(bytes(2_097_200)[range]))
        }
    }

    @Test func `a prefix is read into a digest that then goes on`() throws {
        try self.withFile(100) { file in
            let digester = try Digester([.sha256])
            try file.digest(into: digester, range: 0..<64)
            try bytes(65)[64...].withUnsafeBytes { try digester.update($0) }
            #expect(try digester.finish() == [.sha256: vectors[65]?[.sha256]])
        }
    }

    @Test(arguments: [0..<101, 99..<101, 100..<101, 500..<501, 0..<1_048_577])
    func `a file that ends early is an error`(range: Range<Int>) throws {
        try self.withFile(100) { file in
            let error = try #require(throws: SystemError.self) {
                _ = try file.digest(
                    of: [.sha256],
                    range: Int64(range.lowerBound)..<Int64(range.upperBound)
                )
            }
            #expect(error.errno == ENODATA)
            #expect(error.description.contains("bytes at \(range.lowerBound) of \(file.path)"))
        }
    }

    @Test func `short and interrupted reads go on where they stopped`() throws {
        let count = Mutex(0)
        var calls = FileCalls.real
        calls.pread = { descriptor, buffer, size, offset in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number % 2 == 0 else {
                errno = EINTR
                return -1
            }
            return FileCalls.real.pread(descriptor, buffer, min(size, 100_000), offset)
        }
        try self.withFile(1_048_577, calls: calls) { file in
            let found = try file.digest(of: [.sha256], range: 0..<1_048_577)
            #expect(found == [.sha256: vectors[1_048_577]?[.sha256]])
        }
        #expect(count.withLock { $0 } == 24)
    }

    @Test(arguments: [1, 2, 3])
    func `a read that fails is an error`(failing: Int) throws {
        let count = Mutex(0)
        var calls = FileCalls.real
        calls.pread = { descriptor, buffer, size, offset in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number == failing else { return FileCalls.real.pread(descriptor, buffer, size, offset) }
            errno = EIO
            return -1
        }
        try self.withFile(3 * 1_048_576, calls: calls) { file in
            let error = try #require(throws: SystemError.self) {
                _ = try file.digest(of: [.sha256], range: 0..<3 * 1_048_576)
            }
            #expect(error == SystemError(errno: EIO, action: "read", path: file.path))
        }
        #expect(count.withLock { $0 } == failing)
    }

    @Test(arguments: [0, 1, 2])
    func `a cancelled digest stops before its next step`(steps: Int) throws {
        try self.withFile(3 * 1_048_576) { file in
            var asked = 0
            #expect(throws: CancellationError.self) {
                _ = try file.digest(of: [.sha256], range: 0..<3 * 1_048_576) {
                    asked += 1
                    return asked > steps
                }
            }
            #expect(asked == steps + 1)
        }
    }
}
