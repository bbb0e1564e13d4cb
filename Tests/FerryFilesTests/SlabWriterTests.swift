import FerryTestSupport
import Glibc
import Testing

@testable import FerryFiles

@Suite struct SlabWriterTests {
    private static let slab = SlabWriter.slabSize
    private let object = TestObject(size: 8 << 20, seed: 11)

    @Test(
        arguments: [0, 1, slab - 1, slab, slab + 1, 2 * slab, 2 * slab + 1],
        [0, 1, slab - 1, slab, slab + 1]
    )
    func `all bytes arrive, in writes that end at slab borders`(size: Int, start: Int) throws {
        try withTemporaryFolder { folder in
            let log = WriteLog()
            let file = try Folder(folder.path, calls: log.calls()).create("file", mode: 0o600)
            let writer = SlabWriter(file: file, offset: Int64(start))
            let bytes = self.object.bytes(Int64(start)..<Int64(start + size))
            for piece in stride(from: 0, to: size, by: 16_384) {
                try bytes[piece..<min(piece + 16_384, size)].withUnsafeBytes { try writer.append($0) }
                #expect(writer.takenEnd == Int64(start + min(piece + 16_384, size)))
            }
            try writer.flush()
            try writer.flush()
            #expect(writer.writtenEnd == Int64(start + size))
            #expect(writer.takenEnd == writer.writtenEnd)
            #expect(try folder.read("file").dropFirst(start) == bytes[...])
            self.expectAligned(log.writes, from: start, to: start + size)
        }
    }

    /// Each write begins where the one before ended, and all but the last end at a border.
    private func expectAligned(_ writes: [Write], from start: Int, to end: Int) {
        var next = Int64(start)
        for write in writes {
            #expect(write.offset == next)
            next += Int64(write.count)
            #expect(next == Int64(end) || next % Int64(Self.slab) == 0)
        }
        #expect(next == Int64(end))
        #expect(writes.count == (start == end ? 0 : (end - 1) / Self.slab - start / Self.slab + 1))
    }

    @Test(arguments: 1...5)
    func `what is said to be written is written, whichever write fails`(failing k: Int) throws {
        try withTemporaryFolder { folder in
            let log = WriteLog()
            let calls = log.calls { number, count in number == k ? -Int(ENOSPC) : count }
            let file = try Folder(folder.path, calls: calls).create("file", mode: 0o600)
            let writer = SlabWriter(file: file, offset: 0)
            let bytes = self.object.bytes(0..<Int64(5 * Self.slab))
            let error = #expect(throws: SystemError.self) {
                try bytes.withUnsafeBytes { try writer.append($0) }
            }
            #expect(error?.errno == ENOSPC)
            #expect(error?.description.hasPrefix("cannot write \(folder.file("file")): ") == true)
            #expect(writer.writtenEnd == Int64((k - 1) * Self.slab))
            #expect(try folder.read("file") == Array(bytes.prefix(Int(writer.writtenEnd))))
            // The slab that failed is still there.
            try writer.flush()
            #expect(writer.writtenEnd == Int64(k * Self.slab))
            #expect(try folder.read("file") == Array(bytes.prefix(Int(writer.writtenEnd))))
        }
    }

    @Test func `a part-filled slab is flushed and the next one goes on at its end`() throws {
        try withTemporaryFolder { folder in
            let log = WriteLog()
            let file = try Folder(folder.path, calls: log.calls()).create("file", mode: 0o600)
            let writer = SlabWriter(file: file, offset: 0)
            let bytes = self.object.bytes(0..<Int64(Self.slab + 100))
            try bytes[..<100].withUnsafeBytes { try writer.append($0) }
            try writer.flush()
            try bytes[100...].withUnsafeBytes { try writer.append($0) }
            #expect(writer.writtenEnd == Int64(Self.slab))
            try writer.flush()
            #expect(
                log.writes == [
                    Write(offset: 0, count: 100), Write(offset: 100, count: Self.slab - 100),
                    Write(offset: Int64(Self.slab), count: 100),
                ]
            )
            #expect(try folder.read("file") == bytes)
        }
    }
}
