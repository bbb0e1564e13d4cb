import FerryTestSupport
import FoundationEssentials
import Glibc
import Testing

@testable import FerryFiles

@Suite(.timeLimit(.minutes(5))) struct PrefixHashTests {
    private static let region = Int(ProgressBoard.regionSize)
    private static let ends = [
        0, 1, region - 1, region, region + 1, 2 * region - 1, 2 * region, 2 * region + 1, 3 * region,
    ]

    private let object = TestObject(size: Int64(3 * region), seed: 29)

    private func hash(_ bytes: some Collection<UInt8>, piece: Int = .max) -> PrefixHash {
        let hasher = PrefixHasher()
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            rest.prefix(piece).withUnsafeBytes { hasher.update($0) }
            rest = rest.dropFirst(piece)
        }
        return hasher.hash
    }

    /// Whether a file of these bytes is taken for the one with the hash.
    private func goesOn(_ hash: PrefixHash, with bytes: [UInt8]) throws -> Bool {
        var isTaken = false
        try self.withFile(bytes) { isTaken = try PrefixHasher(continuing: hash, of: $0) != nil }
        return isTaken
    }

    private func withFile(_ bytes: [UInt8], _ body: (OpenFile) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let file = try Folder(folder.path).create("file", mode: 0o600)
            try bytes.withUnsafeBytes { try file.write($0, at: 0) }
            try body(file)
        }
    }

    @Test(arguments: ends)
    func `pieces of any size have the hash of the whole`(end: Int) {
        let bytes = self.object.bytes(0..<Int64(end))
        let whole = self.hash(bytes)
        #expect(whole.end == Int64(end))
        for piece in [1_000, 65_536, Self.region - 1, Self.region, Self.region + 1] {
            #expect(self.hash(bytes, piece: piece) == whole, "pieces of \(piece)")
        }
    }

    @Test(arguments: ends.dropFirst())
    func `another byte anywhere, or one more or less, is another hash`(end: Int) {
        let bytes = self.object.bytes(0..<Int64(end))
        let hash = self.hash(bytes)
        for offset in Set([0, end / 3, end / 2, end - 1, Self.region - 1, Self.region]) where offset < end {
            var other = bytes
            other[offset] ^= 1
            #expect(self.hash(other) != hash, "at \(offset)")
        }
        #expect(self.hash(bytes.dropLast()) != hash)
        #expect(self.hash(bytes + [0]) != hash)
    }

    @Test func `regions that have changed places are seen`() {
        let (one, two, three) = (
            self.object.bytes(0..<Int64(Self.region)), [UInt8](repeating: 7, count: Self.region),
            [UInt8](repeating: 9, count: 5)
        )
        #expect(self.hash(one + two + three) != self.hash(two + one + three))
        #expect(self.hash(one + one + three) != self.hash(one + three))
    }

    @Test(arguments: ends, ends)
    func `a hash is gone on with where it ends`(begin: Int, end: Int) throws {
        guard begin <= end else { return }
        let bytes = self.object.bytes(0..<Int64(end))
        try self.withFile(Array(bytes.prefix(begin))) { file in
            let left = self.hash(bytes.prefix(begin))
            let hasher = try #require(try PrefixHasher(continuing: left, of: file))
            #expect(hasher.hash == left)
            bytes.dropFirst(begin).withUnsafeBytes { hasher.update($0) }
            #expect(hasher.hash == self.hash(bytes))
        }
    }

    @Test(arguments: ends.dropFirst())
    func `a file whose last region is another one is not gone on with`(end: Int) throws {
        let bytes = self.object.bytes(0..<Int64(end))
        let hash = self.hash(bytes)
        for offset in [Int(hash.lastRegion), end - 1] {
            var other = bytes
            other[offset] ^= 1
            #expect(try !self.goesOn(hash, with: other))
        }
        #expect(try !self.goesOn(hash, with: Array(bytes.dropLast())), "it is shorter")
        // What lies before is not looked at here.
        guard hash.lastRegion > 0 else { return }
        var other = bytes
        other[0] ^= 1
        #expect(try self.goesOn(hash, with: other))
    }

    @Test(arguments: ends)
    func `a file is read as it was written`(end: Int) throws {
        let bytes = self.object.bytes(0..<Int64(end))
        try self.withFile(bytes + [1, 2, 3]) { file in
            let hasher = PrefixHasher()
            for part in [end / 2, end, end] { try file.read(into: hasher, upTo: Int64(part)) }
            #expect(hasher.hash == self.hash(bytes))
            let error = #expect(throws: SystemError.self) {
                try file.read(into: hasher, upTo: Int64(end + 4))
            }
            #expect(error?.errno == ENODATA)
        }
    }

    @Test func `it is the same after it was stored`() throws {
        for end in Self.ends {
            let hash = self.hash(self.object.bytes(0..<Int64(end)))
            #expect(try JSONDecoder().decode(PrefixHash.self, from: JSONEncoder().encode(hash)) == hash)
        }
    }

    @Test func `a file that was cut short and written on has a hole`() throws {
        try self.withFile(self.object.bytes(0..<Int64(2 * Self.region))) { file in
            #expect(!file.hasHole(before: Int64(2 * Self.region)))
            try file.truncate(to: 10)
            try [1, 2, 3].withUnsafeBytes { try file.write($0, at: Int64(2 * Self.region)) }
            try file.sync()
            #expect(file.hasHole(before: Int64(2 * Self.region)))
        }
    }
}
