import Dispatch
import FerryTestSupport
import Glibc
import Testing

@testable import FerryFiles

@Suite(.timeLimit(.minutes(5))) struct SegmentWriterTests {
    private static let slab = SlabPool.slabSize
    private static let piece = 16_384
    /// The calls that go straight through before a fast body is written in slabs.
    private static let directCalls = slab / piece

    private let object = TestObject(size: 16 << 20, seed: 11)

    /// A writer with what surrounds it.
    private final class Rig: Sendable {
        let folder: TemporaryFolder
        let log = WriteLog()
        let file: OpenFile
        let queue = DispatchQueue(label: "writer")
        let rooms = Watched(0)
        let writer: SegmentWriter
        private let clock: ManualClock

        init(
            _ folder: TemporaryFolder,
            name: String = "file",
            offset: Int = 0,
            pool: SlabPool = SlabPool(limit: 64),
            answer: @escaping @Sendable (_ number: Int, _ count: Int) -> Int = { $1 }
        ) throws {
            let clock = ManualClock()
            let rooms = self.rooms
            self.folder = folder
            self.clock = clock
            self.file = try Folder(folder.path, calls: self.log.calls(answer)).create(name, mode: 0o600)
            // What is there already are zeros.
            try self.file.truncate(to: Int64(offset))
            let prefix = PrefixHasher()
            try self.file.read(into: prefix, upTo: Int64(offset))
            self.writer = SegmentWriter(
                file: self.file,
                prefix: prefix,
                pool: pool,
                queue: self.queue,
                slot: nil,
                monotonic: { clock.now.offset },
                room: { rooms.update { $0 += 1 } }
            )
        }

        /// Lets time pass.
        func pass(_ milliseconds: Int) { self.clock.advance(by: .milliseconds(milliseconds)) }

        func append(_ bytes: ArraySlice<UInt8>) -> SegmentWriter.Answer {
            bytes.withUnsafeBytes { self.writer.append($0) }
        }

        /// Appends bytes until all are taken or a write has failed, waiting for room where there is none.
        func feed(_ bytes: [UInt8], piece: Int = SegmentWriterTests.piece) async throws {
            var rest = bytes[...]
            while !rest.isEmpty {
                let seen = self.rooms.value
                switch self.append(rest.prefix(piece)) {
                case .taken: rest = rest.dropFirst(piece)
                case .full: try await self.rooms.wait(for: "room") { $0 > seen ? () : nil }
                case .failed: return
                }
            }
        }
    }

    // MARK: What is written, and where

    @Test(
        arguments: [0, 1, slab - 1, slab, slab + 1, 2 * slab, 3 * slab + 1, 5 * slab - 1],
        [0, 1, slab - 1, slab, slab + 1]
    )
    func `a fast body is written straight through at first, then in whole slabs`(size: Int, start: Int)
        async throws
    {
        try await withTemporaryFolder { folder in
            let rig = try Rig(folder, offset: start)
            let bytes = self.object.bytes(Int64(start)..<Int64(start + size))
            try await rig.feed(bytes)
            #expect(rig.writer.takenEnd == Int64(start + size))
            #expect(await rig.writer.flush().end == Int64(start + size))
            #expect(await rig.writer.flush().end == Int64(start + size))
            #expect(rig.writer.takenEnd == rig.writer.written.end)
            #expect(try folder.read("file").dropFirst(start) == bytes[...])

            var expected: [Write] = []
            var next = start
            while next < start + size {
                let isDirect = expected.count < Self.directCalls
                let count = isDirect ? Self.piece : Self.slab - next % Self.slab
                expected.append(Write(offset: Int64(next), count: min(count, start + size - next)))
                next += count
            }
            #expect(rig.log.writes == expected)
        }
    }

    @Test(arguments: 1...8)
    func `pieces of any size at any speed come in their order`(run: Int) async throws {
        let seed = UInt64.random(in: .min ... .max)
        print("pieces: seed \(seed)")
        var random = SplitMix(state: seed)
        try await withTemporaryFolder { folder in
            let start = Int.random(in: 0...(2 * Self.slab), using: &random)
            let rig = try Rig(folder, offset: start, pool: SlabPool(limit: run))
            let bytes = self.object.bytes(Int64(start)..<Int64(start + 4 << 20))
            var done = 0
            while done < bytes.count {
                let count = min(Int.random(in: 0...65_536, using: &random), bytes.count - done)
                try await rig.feed(Array(bytes[done..<done + count]), piece: 65_536)
                done += count
                #expect(rig.writer.takenEnd == Int64(start + done), "seed \(seed)")
                if Int.random(in: 0..<4, using: &random) == 0 {
                    rig.pass(Int.random(in: 1...150, using: &random))
                }
                if Int.random(in: 0..<16, using: &random) == 0 {
                    #expect(await rig.writer.flush().end == Int64(start + done), "seed \(seed)")
                }
            }
            #expect(await rig.writer.flush().end == Int64(start + bytes.count), "seed \(seed)")
            #expect(try folder.read("file").dropFirst(start) == bytes[...], "seed \(seed)")
            var next = Int64(start)
            for write in rig.log.writes {
                #expect(write.offset == next, "seed \(seed)")
                next += Int64(write.count)
            }
        }
    }

    @Test func `a slow body is written straight through and holds no memory`() throws {
        try withTemporaryFolder { folder in
            let pool = SlabPool(limit: 1)
            let rig = try Rig(folder, pool: pool)
            let bytes = self.object.bytes(0..<Int64(3 * Self.slab))
            for offset in stride(from: 0, to: bytes.count, by: Self.piece) {
                rig.pass(10)  // 1.6 MB/s
                #expect(rig.append(bytes[offset..<offset + Self.piece]) == .taken)
                #expect(rig.writer.written.end == rig.writer.takenEnd)
            }
            #expect(rig.log.writes.allSatisfy { $0.count == Self.piece })
            #expect(pool.take() != nil)
            #expect(try folder.read("file") == bytes)
        }
    }

    @Test func `a body that becomes slow gives its slab back`() async throws {
        try await withTemporaryFolder { folder in
            let pool = SlabPool(limit: 1)
            let rig = try Rig(folder, pool: pool)
            let bytes = self.object.bytes(0..<Int64(Self.slab + 4 * 100))
            try await rig.feed(Array(bytes[..<Self.slab]))
            var done = Self.slab
            // The first comes within the fast window, the second ends it, the third ends a slow one.
            for milliseconds in [0, 100, 100, 100] {
                rig.pass(milliseconds)
                #expect(rig.append(bytes[done..<done + 100]) == .taken)
                done += 100
            }
            #expect(
                rig.log.writes.dropFirst(Self.directCalls) == [
                    Write(offset: Int64(Self.slab), count: 200),
                    Write(offset: Int64(Self.slab + 200), count: 100),
                    Write(offset: Int64(Self.slab + 300), count: 100),
                ]
            )
            #expect(rig.writer.written.end == rig.writer.takenEnd)
            #expect(pool.take() != nil)
            #expect(try folder.read("file") == bytes)
        }
    }

    @Test func `nothing to write changes nothing`() async throws {
        try await withTemporaryFolder { folder in
            let rig = try Rig(folder, offset: 7)
            #expect(rig.append([]) == .taken)
            #expect(await rig.writer.flush().end == 7)
            #expect(rig.log.writes.isEmpty)
        }
    }

    // MARK: Too slow a disk, too little memory

    @Test func `a disk that stands still stops the body, and nothing is lost`() async throws {
        let gate = Gate()
        try await withTemporaryFolder { folder in
            let rig = try Rig(folder) { number, count in
                if number > Self.directCalls { gate.waitBlocking(timeout: .seconds(120)) }
                return count
            }
            let most = (1 + SegmentWriter.slabLimit) * Self.slab
            let bytes = self.object.bytes(0..<Int64(most + Self.slab + 1))
            try await rig.feed(Array(bytes[..<most]))
            #expect(rig.append(bytes[most..<most + 1]) == .full)
            #expect(rig.append(bytes[most..<most + 1]) == .full)
            #expect(rig.writer.takenEnd == Int64(most))
            #expect(rig.writer.written.end == Int64(Self.slab))
            #expect(rig.rooms.value == 0)
            gate.open()
            try await rig.rooms.wait(for: "room") { $0 > 0 ? () : nil }
            try await rig.feed(Array(bytes[most...]))
            #expect(await rig.writer.flush().end == Int64(bytes.count))
            #expect(try folder.read("file") == bytes)
        }
    }

    @Test(arguments: [0, 1, 2, 3])
    func `segments that share too few slabs all finish`(limit: Int) async throws {
        try await withTemporaryFolder { folder in
            let pool = SlabPool(limit: limit)
            let rigs = try (0..<6).map { try Rig(folder, name: "file\($0)", offset: $0 * 1_000, pool: pool) }
            let object = self.object
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, rig) in rigs.enumerated() {
                    group.addTask {
                        let start = Int64(number * 1_000)
                        let bytes = object.bytes(start..<start + 2 << 20)
                        try await rig.feed(bytes)
                        #expect(await rig.writer.flush().end == start + Int64(bytes.count))
                        #expect(try folder.read("file\(number)").dropFirst(number * 1_000) == bytes[...])
                    }
                }
                try await group.waitForAll()
            }
            for rig in rigs { rig.queue.sync {} }
            let slabs = (0...limit).map { _ in pool.take() }
            #expect(slabs.map { $0 != nil } == Array(repeating: true, count: limit) + [false])
        }
    }

    @Test func `a segment that holds the last slab half full stops nobody else`() async throws {
        try await withTemporaryFolder { folder in
            let pool = SlabPool(limit: 1)
            let (holder, other) = (
                try Rig(folder, name: "a", pool: pool), try Rig(folder, name: "b", pool: pool)
            )
            let bytes = self.object.bytes(0..<Int64(2 * Self.slab))
            try await holder.feed(Array(bytes[..<(Self.slab + 5)]))
            #expect(pool.take() == nil)
            for offset in stride(from: 0, to: bytes.count, by: Self.piece) {
                #expect(other.append(bytes[offset..<offset + Self.piece]) == .taken)
            }
            #expect(other.writer.written.end == Int64(bytes.count))
            #expect(other.rooms.value == 0)
            #expect(try folder.read("b") == bytes)
            #expect(await holder.writer.flush().end == Int64(Self.slab + 5))
        }
    }

    // MARK: Failures

    /// Up to the sixteenth on the caller's thread, then on the writer's.
    @Test(arguments: [1, 2, 16, 17, 18, 21])
    func `after a write that fails nothing is written`(failing k: Int) async throws {
        try await withTemporaryFolder { folder in
            let rig = try Rig(folder) { number, count in number == k ? -Int(ENOSPC) : count }
            let bytes = self.object.bytes(0..<Int64(6 * Self.slab + 1))
            try await rig.feed(bytes)
            let written = k <= Self.directCalls ? (k - 1) * Self.piece : (k - Self.directCalls) * Self.slab
            #expect(await rig.writer.flush().end == Int64(written))
            #expect(rig.writer.written.end == Int64(written))
            #expect(rig.writer.failure?.errno == ENOSPC)
            #expect(
                rig.writer.failure?.description.hasPrefix("cannot write \(folder.file("file")): ") == true
            )
            #expect(rig.append([1]) == .failed)
            rig.queue.sync {}
            #expect(rig.log.writes.count == k)
            #expect(try folder.read("file") == Array(bytes[..<written]))
            #expect((rig.rooms.value > 0) == (k > Self.directCalls), "told on the writer's thread")
        }
    }

    @Test func `a write that fails in its middle says nothing of its beginning`() async throws {
        try await withTemporaryFolder { folder in
            let rig = try Rig(folder) { number, count in
                switch number {
                case 17: count / 2
                case 18: -Int(EIO)
                default: count
                }
            }
            try await rig.feed(self.object.bytes(0..<Int64(2 * Self.slab)))
            #expect(await rig.writer.flush().end == Int64(Self.slab))
            #expect(try folder.read("file").count == Self.slab + Self.slab / 2)
        }
    }

    @Test func `a failure wakes the body that waits for room and all who wait for the flush`() async throws {
        let gate = Gate()
        try await withTemporaryFolder { folder in
            let rig = try Rig(folder) { number, count in
                guard number > Self.directCalls else { return count }
                gate.waitBlocking(timeout: .seconds(120))
                return -Int(EIO)
            }
            try await rig.feed(self.object.bytes(0..<Int64((1 + SegmentWriter.slabLimit) * Self.slab)))
            #expect(rig.append([1]) == .full)
            async let first = rig.writer.flush()
            async let second = rig.writer.flush()
            gate.open()
            try await rig.rooms.wait(for: "room") { $0 > 0 ? () : nil }
            #expect(rig.append([1]) == .failed)
            #expect(await first.end == Int64(Self.slab))
            #expect(await second.end == Int64(Self.slab))
        }
    }

    @Test func `a flush waits for all that was taken before it`() async throws {
        let gate = Gate()
        let calls = Watched(0)
        try await withTemporaryFolder { folder in
            let rig = try Rig(folder) { number, count in
                calls.update { $0 = number }
                if number > Self.directCalls { gate.waitBlocking(timeout: .seconds(120)) }
                return count
            }
            let bytes = self.object.bytes(0..<Int64(3 * Self.slab + 5))
            try await rig.feed(bytes)
            let isFlushed = Watched(false)
            async let end = {
                let end = await rig.writer.flush().end
                isFlushed.update { $0 = true }
                return end
            }()
            try await calls.wait(for: "a slab's write") { $0 > Self.directCalls ? () : nil }
            #expect(!isFlushed.value)
            gate.open()
            #expect(await end == Int64(bytes.count))
            #expect(try folder.read("file") == bytes)
        }
    }
}
