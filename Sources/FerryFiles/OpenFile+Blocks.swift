import CFerryLinux
import CXXHash

extension OpenFile {
    /// How much is read at a time, in bytes.
    private static let blockStep: Int64 = 1 << 20

    /// The XXH3-64 of each of some ranges, read in order.
    ///
    /// Blocks for as long as the disk needs.
    ///
    /// - Throws: ``SystemError``, ENODATA if the file ends before.
    public func hashes(of ranges: [Range<Int64>]) throws(SystemError) -> [UInt64] {
        let hasher = BlockHasher()
        var result: [UInt64] = []
        for range in ranges { result.append(try hasher.hash(self, range)) }
        return result
    }

    /// How many bytes from the beginning are proved by the hashes of consecutive ranges.
    ///
    /// Reads on until the first range that differs or is not there.
    public func provedPrefix(_ ranges: [Range<Int64>], hashes: [UInt64]) throws(SystemError) -> Int64 {
        let hasher = BlockHasher()
        let size = try self.identity().size
        var proved: Int64 = 0
        for (range, hash) in zip(ranges, hashes) {
            guard range.lowerBound == proved, range.upperBound <= size,
                try hasher.hash(self, range) == hash
            else { break }
            proved = range.upperBound
        }
        return proved
    }

    /// Whether another descriptor of the file is open anywhere; false where the file system cannot tell.
    public var isOpenElsewhere: Bool { ferry_is_open_elsewhere(self.descriptor) == 1 }

    /// A buffer and a state for hashing blocks of any size.
    private final class BlockHasher {
        private let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Int(OpenFile.blockStep),
            alignment: 4_096
        )
        private let state = UnsafeMutableRawPointer.allocate(
            byteCount: ferry_xxh3_state_size(),
            alignment: ferry_xxh3_state_alignment()
        )

        deinit {
            self.buffer.deallocate()
            self.state.deallocate()
        }

        func hash(_ file: OpenFile, _ range: Range<Int64>) throws(SystemError) -> UInt64 {
            ferry_xxh3_begin(self.state)
            var offset = range.lowerBound
            while offset < range.upperBound {
                let count = Int(min(OpenFile.blockStep, range.upperBound - offset))
                let piece = UnsafeMutableRawBufferPointer(rebasing: self.buffer[..<count])
                try file.read(into: piece, at: offset)
                ferry_xxh3_update(self.state, UnsafeRawPointer(piece.baseAddress), count)
                offset += Int64(count)
            }
            return ferry_xxh3_digest(self.state)
        }
    }
}
