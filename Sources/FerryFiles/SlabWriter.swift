import Glibc

/// Collects bytes into slabs and writes them at aligned offsets.
///
/// A slab is 256 KiB, so one `pwrite` moves what libcurl delivers in sixteen pieces. One thread at a time may
/// use it. Bytes in a part-filled slab are not written yet: ``writtenEnd`` tells what is.
public final class SlabWriter {
    /// The size of a slab, in bytes: a multiple of the page size and of any file system's block.
    public static let slabSize = 256 * 1_024

    /// One past the last byte that the kernel has.
    public private(set) var writtenEnd: Int64
    private let file: OpenFile
    private let slab: UnsafeMutableRawBufferPointer
    private var filled = 0

    /// Makes a writer that goes on at an offset.
    public init(file: OpenFile, offset: Int64) {
        self.file = file
        self.writtenEnd = offset
        self.slab = .allocate(byteCount: Self.slabSize, alignment: 4_096)
    }

    deinit {
        self.slab.deallocate()
    }

    /// One past the last byte taken.
    public var takenEnd: Int64 { self.writtenEnd + Int64(self.filled) }

    /// Takes all bytes, writing each slab that gets full.
    ///
    /// - Throws: ``SystemError`` if a write failed; what ``writtenEnd`` says stays true.
    public func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let border = Self.slabSize - Int(self.writtenEnd % Int64(Self.slabSize))
            let count = min(rest.count, border - self.filled)
            UnsafeMutableRawBufferPointer(rebasing: self.slab[self.filled..<self.filled + count])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
            self.filled += count
            rest = rest.dropFirst(count)
            if self.filled == border { try self.flush() }
        }
    }

    /// Writes a part-filled slab.
    public func flush() throws(SystemError) {
        guard self.filled > 0 else { return }
        try self.file.write(UnsafeRawBufferPointer(rebasing: self.slab[..<self.filled]), at: self.writtenEnd)
        self.writtenEnd += Int64(self.filled)
        self.filled = 0
    }
}
