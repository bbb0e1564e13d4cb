import Dispatch
import FerryCore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryFiles

@Suite(.timeLimit(.minutes(5))) struct ProgressBoardTests {
    private static let region = Int(ProgressBoard.regionSize)
    private static let key = ProgressBoard.Key(job: JobID(rawValue: 7), generation: 2, start: 0)

    /// What a killed process leaves: a file, and a board that speaks of it.
    private struct Remains {
        let folder: TemporaryFolder
        let object = TestObject(size: 1 << 30, seed: 17)

        var file: OpenFile {
            get throws { try Folder(self.folder.path).open("file") }
        }

        /// Writes the object from `base` to `end` as a transfer does; before `base` it is there already.
        ///
        /// Then claims `unwritten` bytes more, whose write the kill has prevented.
        func write(from base: Int, to end: Int, unwritten: Int = 0, slots: Int = 2) async throws {
            let board = try ProgressBoard(path: self.folder.file("live"), slots: slots)
            let slot = try #require(board.begin(ProgressBoardTests.key, base: Int64(base)))
            try self.object.write(to: self.folder.file("file"), length: Int64(base))
            let hasher = PrefixHasher()
            try self.file.read(into: hasher, upTo: Int64(base))
            let writer = SegmentWriter(
                file: try self.file,
                prefix: hasher,
                pool: SlabPool(limit: 4),
                queue: DispatchQueue(label: "writer"),
                slot: slot,
                monotonic: { .zero },
                room: {}
            )
            var next = base
            while next < end {
                let count = min(16_384, end - next)
                let bytes = self.object.bytes(Int64(next)..<Int64(next + count))
                switch bytes.withUnsafeBytes({ writer.append($0) }) {
                case .taken: next += count
                case .full: _ = await writer.flush()
                case .failed: throw try #require(writer.failure)
                }
            }
            #expect(await writer.flush().end == Int64(end))
            if unwritten > 0 {
                self.object.bytes(Int64(end)..<Int64(end + unwritten)).withUnsafeBytes {
                    slot.willWrite($0, hasher)
                }
            }
            try self.keepBoard()
            withExtendedLifetime((slot, writer)) {}
        }

        /// Copies the board as it is now: a slot that is freed later clears its claim.
        func keepBoard() throws { try self.replace("board", self.folder.read("live")) }

        /// Gives a file other bytes.
        func replace(_ name: String, _ bytes: [UInt8]) throws {
            let folder = try Folder(self.folder.path)
            try folder.remove(name)
            let file = try folder.create(name, mode: 0o600)
            try bytes.withUnsafeBytes { try file.write($0, at: 0) }
        }

        /// Overwrites bytes of the file.
        func overwrite(_ bytes: [UInt8], at offset: Int) throws {
            try bytes.withUnsafeBytes { try self.file.write($0, at: Int64(offset)) }
        }

        var claims: [ProgressBoard.Key: ProgressBoard.Claim] {
            ProgressBoard.claims(path: self.folder.file("board"))
        }

        /// How far the next process believes the file, given what is committed.
        func proved(durable: Int) throws -> Int {
            let claim = try #require(self.claims[ProgressBoardTests.key])
            let file = try self.file
            let proved = try ProgressBoard.prove(claim, of: file, durable: self.hash(upTo: durable))
            // The result speaks of the bytes that are there.
            #expect(try self.hash(upTo: Int(proved.end)) == proved)
            return Int(proved.end)
        }

        /// The hash of the file's beginning as it is now.
        func hash(upTo end: Int) throws -> PrefixHash {
            let hasher = PrefixHasher()
            try self.file.read(into: hasher, upTo: Int64(end))
            return hasher.hash
        }
    }

    private func withRemains(_ body: (Remains) async throws -> Void) async throws {
        try await withTemporaryFolder { try await body(Remains(folder: $0)) }
    }

    // MARK: What was written is proved

    @Test(
        arguments: [0, 1, region - 1, region, region + 1, 2 * region + 12_345],
        [1, region - 1, region, region + 1, 2 * region - 1, 2 * region, 3 * region + 1]
    )
    func `all that was written is proved, and no byte more`(base: Int, length: Int) async throws {
        try await self.withRemains { remains in
            let end = base + length
            try await remains.write(from: base, to: end)
            #expect(remains.claims.keys.map { $0 } == [Self.key])
            let borders = stride(from: (base / Self.region + 1) * Self.region, to: end, by: Self.region)
            for durable in [base, base + 1, end - 1, end, (base + end) / 2] + Array(borders) {
                #expect(try remains.proved(durable: durable) == max(durable, end), "durable \(durable)")
            }
            // What came after the claim, or belongs to another process, does not count.
            try remains.overwrite(remains.object.bytes(Int64(end)..<Int64(end + 1_000)), at: end)
            #expect(try remains.proved(durable: base) == end)
        }
    }

    @Test(
        arguments: [1, 100, region - 1, region, 2 * region + 5],
        [1, 16_384, region - 6, region, region + 1]
    )
    func `a claim whose bytes were not written leaves the one before`(length: Int, unwritten: Int)
        async throws
    {
        try await self.withRemains { remains in
            let base = 100
            let end = base + length
            try await remains.write(from: base, to: end, unwritten: unwritten)
            #expect(try remains.proved(durable: base) == end)
            // The kernel has reserved the blocks, or a power cut has lost what was in them.
            try remains.overwrite([UInt8](repeating: 0, count: unwritten), at: end)
            #expect(try remains.proved(durable: base) == end)
            // The write had gone through after all.
            try remains.overwrite(remains.object.bytes(Int64(end)..<Int64(end + unwritten)), at: end)
            #expect(try remains.proved(durable: base) == end + unwritten)
        }
    }

    @Test func `more regions than a slot has places prove from the last ones on`() async throws {
        try await self.withRemains { remains in
            let end = (ProgressBoard.regions + 10) * Self.region + 5
            try await remains.write(from: 0, to: end)
            // Ten whole regions have taken the places of the first ten.
            for durable in [10 * Self.region, 10 * Self.region + 1, 200 * Self.region, end - 6, end - 1, end]
            {
                #expect(try remains.proved(durable: durable) == end, "durable \(durable)")
            }
            for durable in [0, 1, 9 * Self.region, 10 * Self.region - 1] {
                #expect(try remains.proved(durable: durable) == durable, "durable \(durable)")
            }
        }
    }

    @Test func `a claim that begins above what is durable proves nothing`() async throws {
        try await self.withRemains { remains in
            try await remains.write(from: 1_000, to: 3 * Self.region)
            #expect(try remains.proved(durable: 999) == 999)
            #expect(try remains.proved(durable: 1_000) == 3 * Self.region)
        }
    }

    // MARK: What is lost is not

    @Test(arguments: [0, 1_000], 0...4)
    func `a file that has changed is proved up to the region that has`(base: Int, changed: Int) async throws {
        try await self.withRemains { remains in
            let end = 4 * Self.region + 777
            try await remains.write(from: base, to: end)
            let first = max(base, changed * Self.region)
            let last = min(end, (changed + 1) * Self.region) - 1
            for offset in [first, (first + last) / 2, last] {
                let good = remains.object.bytes(Int64(offset)..<Int64(offset + 1))
                try remains.overwrite([good[0] ^ 1], at: offset)
                #expect(try remains.proved(durable: base) == first, "at \(offset)")
                try remains.overwrite(good, at: offset)
            }
            #expect(try remains.proved(durable: base) == end)
            try remains.overwrite([UInt8](repeating: 0, count: last + 1 - first), at: first)
            #expect(try remains.proved(durable: base) == first, "zeros")
        }
    }

    @Test(arguments: [region, region + 1, 3 * region - 1, 3 * region, 3 * region + 776])
    func `a file that is too short is proved up to its last whole region`(size: Int) async throws {
        try await self.withRemains { remains in
            try await remains.write(from: 0, to: 3 * Self.region + 777)
            try remains.file.truncate(to: Int64(size))
            #expect(try remains.proved(durable: 0) == size / Self.region * Self.region)
        }
    }

    // MARK: A board that is damaged

    @Test func `damage in any word never proves more than is true`() async throws {
        try await self.withRemains { remains in
            // Small regions, for this reads them often.
            let (base, end) = (Self.region - 1_000, 2 * Self.region - 100)
            let middle = Self.region + 500
            try await remains.write(from: base, to: middle)
            // What follows in the file is not what the transfer would have written.
            try remains.overwrite([UInt8](repeating: 0xAA, count: end - middle), at: middle)
            let board = try remains.folder.read("board")
            let file = try remains.file
            #expect(try remains.proved(durable: base) == middle)
            let hashes = try [0, base, base + 1, middle].map { try remains.hash(upTo: $0) }
            let damages: [@Sendable (UInt64) -> UInt64] = [
                { $0 ^ 1 }, { $0 ^ 1 << 63 }, { _ in 0 }, { _ in .max }, { $0 &+ 256 }, { $0.byteSwapped },
            ]
            for word in 0..<(ProgressBoard.headerWords + ProgressBoard.slotWords) {
                for damage in damages {
                    var damaged = board
                    damaged.withUnsafeMutableBytes { bytes in
                        let old = bytes.loadUnaligned(fromByteOffset: word * 8, as: UInt64.self)
                        bytes.storeBytes(of: damage(old), toByteOffset: word * 8, as: UInt64.self)
                    }
                    try remains.replace("board", damaged)
                    for claim in remains.claims.values {
                        for hash in hashes {
                            let durable = Int(hash.end)
                            let proved = try ProgressBoard.prove(claim, of: file, durable: hash).end
                            #expect(proved >= durable && proved <= max(durable, middle), "word \(word)")
                        }
                    }
                }
            }
        }
    }

    @Test func `a file that is no board, or only part of one, claims nothing that is not there`() async throws
    {
        try await self.withRemains { remains in
            try await remains.write(from: 0, to: 1_000, slots: 4)
            let board = try remains.folder.read("board")
            #expect(remains.claims.count == 1)
            try remains.replace("board", Array(board.prefix(board.count / 2)))
            #expect(try remains.proved(durable: 0) == 1_000)  // the first slot is whole
            let first = (ProgressBoard.headerWords + ProgressBoard.slotWords) * 8
            for size in [0, 1, 63, 64, 65, first - 8, first - 1] {
                try remains.replace("board", Array(board.prefix(size)))
                #expect(remains.claims.isEmpty, "\(size) bytes")
            }
            try remains.replace("board", [board[0] ^ 1] + board.dropFirst())
            #expect(remains.claims.isEmpty, "another magic")
            try remains.replace("board", [UInt8](repeating: 0xFF, count: board.count))
            #expect(remains.claims.isEmpty)
            try Folder(remains.folder.path).remove("board")
            #expect(remains.claims.isEmpty, "no board")
        }
    }

    // MARK: Slots

    @Test func `slots are taken, freed, and taken again`() async throws {
        try await self.withRemains { remains in
            let path = remains.folder.file("live")
            let board = try ProgressBoard(path: path, slots: 2)
            func begin(_ job: Int64) -> ProgressBoard.Slot? {
                let key = ProgressBoard.Key(job: JobID(rawValue: job), generation: 1, start: 0)
                let slot = board.begin(key, base: 0)
                [1, 2, 3].withUnsafeBytes { slot?.willWrite($0, PrefixHasher()) }
                return slot
            }
            func claimed() -> Set<Int64> {
                Set(ProgressBoard.claims(path: path).keys.map(\.job.rawValue))
            }
            var slots = [begin(1), begin(2)]
            #expect(slots.allSatisfy { $0 != nil })
            #expect(begin(3) == nil)
            #expect(claimed() == [1, 2])
            slots[0] = nil
            #expect(claimed() == [2], "a freed slot claims nothing")
            slots[0] = begin(4)
            #expect(slots[0] != nil)
            #expect(begin(5) == nil)
            #expect(claimed() == [2, 4])
            slots = []
            #expect(claimed() == [])
        }
    }

    @Test func `a slot that is taken again knows nothing of its last segment`() async throws {
        try await self.withRemains { remains in
            let board = try ProgressBoard(path: remains.folder.file("live"), slots: 1)
            try remains.object.write(to: remains.folder.file("file"), length: Int64(2 * Self.region))
            let bytes = remains.object.bytes(0..<Int64(2 * Self.region))
            var slot = board.begin(Self.key, base: 0)
            bytes.withUnsafeBytes { slot?.willWrite($0, PrefixHasher()) }
            slot = nil
            slot = board.begin(Self.key, base: 0)
            try remains.keepBoard()
            #expect(remains.claims.isEmpty)
            bytes.prefix(5).withUnsafeBytes { slot?.willWrite($0, PrefixHasher()) }
            try remains.keepBoard()
            #expect(try remains.proved(durable: 0) == 5)
            withExtendedLifetime(slot) {}
        }
    }

    @Test(arguments: [false, true])
    func `of two slots of one segment the one that is further counts`(isFirst: Bool) async throws {
        try await self.withRemains { remains in
            let board = try ProgressBoard(path: remains.folder.file("live"), slots: 2)
            try remains.object.write(to: remains.folder.file("file"), length: 1_000)
            let slots = [board.begin(Self.key, base: 0), board.begin(Self.key, base: 0)]
            for (index, slot) in slots.enumerated() {
                let end: Int64 = (index == 0) == isFirst ? 900 : 500
                remains.object.bytes(0..<end).withUnsafeBytes { slot?.willWrite($0, PrefixHasher()) }
            }
            try remains.keepBoard()
            #expect(try remains.proved(durable: 0) == 900)
            withExtendedLifetime(slots) {}
        }
    }

    @Test func `a new board takes an old one's place and claims nothing`() async throws {
        try await self.withRemains { remains in
            try await remains.write(from: 0, to: 1_000)
            let board = try ProgressBoard(path: remains.folder.file("board"), slots: 1)
            #expect(remains.claims.isEmpty)
            withExtendedLifetime(board) {}
        }
    }

    @Test func `a board that cannot be had says why`() throws {
        try withTemporaryFolder { folder in
            let error = #expect(throws: SystemError.self) {
                try ProgressBoard(path: folder.file("none/board"), slots: 1)
            }
            #expect(error?.errno == ENOENT)
            try #require(symlink(folder.file("elsewhere"), folder.file("link")) == 0)
            #expect(throws: SystemError(errno: ELOOP, action: "open", path: folder.file("link"))) {
                try ProgressBoard(path: folder.file("link"), slots: 1)
            }
            #expect(!folder.exists("elsewhere"))
        }
    }
}
