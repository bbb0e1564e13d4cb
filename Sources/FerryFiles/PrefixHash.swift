import CXXHash
import Glibc

/// What the beginning of a file was when it was written, in a few bytes that grow with no file.
///
/// Each region of 256 KiB (``ProgressBoard/regionSize``) has its XXH3-64, and those of all regions but the last
/// are folded into one. They are computed as the bytes are written, so that a hash of everything up to each
/// durable offset costs nothing; whether a file still begins with those bytes is told by reading them once.
/// It finds what accidents and other programs have done to them, not forgeries.
public struct PrefixHash: Sendable, Hashable, Codable {
    /// How many bytes it is of.
    public let end: Int64
    /// The folded hashes of the regions before the last one; 0 if there is none.
    private let chain: UInt64
    /// The hash of the last region up to ``end``; 0 if there is none.
    let tail: UInt64

    /// That of no bytes.
    public static let empty = PrefixHash(end: 0, chain: 0, tail: 0)

    private init(end: Int64, chain: UInt64, tail: UInt64) {
        self.end = end
        self.chain = chain
        self.tail = tail
    }

    /// Where the last region begins, which may be whole.
    var lastRegion: Int64 { max(0, self.end - 1) / ProgressBoard.regionSize * ProgressBoard.regionSize }

    /// The hash of more bytes, up to the end of the same region or of the next one, whose hash `tail` is.
    func extended(to end: Int64, tail: UInt64) -> PrefixHash {
        precondition(end > self.end && end - self.lastRegion <= 2 * ProgressBoard.regionSize)
        let isSameRegion = end - self.lastRegion <= ProgressBoard.regionSize
        return PrefixHash(end: end, chain: isSameRegion ? self.chain : self.folded, tail: tail)
    }

    private var folded: UInt64 {
        withUnsafeBytes(of: (self.chain.littleEndian, self.tail.littleEndian)) { bytes in
            bytes.baseAddress.map { ferry_xxh3($0, bytes.count) } ?? 0
        }
    }
}

/// Computes a ``PrefixHash`` as bytes are written or read, in their order.
public final class PrefixHasher: @unchecked Sendable {
    // Used by one thread at a time: by whoever writes the bytes, or reads them.

    /// The hash of all bytes so far.
    public private(set) var hash = PrefixHash.empty
    private let state: UnsafeMutableRawPointer

    /// Begins with the first byte of a file.
    public init() {
        self.state = .allocate(byteCount: ferry_xxh3_state_size(), alignment: ferry_xxh3_state_alignment())
    }

    /// Goes on where a file was left; nil if its last region, which is read, is not what it was.
    ///
    /// The regions before are not read.
    public convenience init?(continuing hash: PrefixHash, of file: OpenFile) throws(SystemError) {
        self.init()
        do throws(SystemError) {
            try self.take(hash.lastRegion..<hash.end, of: file)
        } catch {
            guard error.errno == ENODATA else { throw error }
            return nil
        }
        guard self.hash.tail == hash.tail else { return nil }
        self.hash = hash
    }

    deinit {
        self.state.deallocate()
    }

    /// Takes the next bytes; tells of each region that they complete its number and its hash.
    func update(_ bytes: UnsafeRawBufferPointer, completed: (Int64, UInt64) -> Void = { _, _ in }) {
        let size = ProgressBoard.regionSize
        var rest = bytes[...]
        while !rest.isEmpty {
            let begin = self.hash.end
            if begin % size == 0 { ferry_xxh3_begin(self.state) }
            let count = min(rest.count, Int(size - begin % size))
            ferry_xxh3_update(self.state, UnsafeRawBufferPointer(rebasing: rest).baseAddress, count)
            rest = rest.dropFirst(count)
            self.hash = self.hash.extended(to: begin + Int64(count), tail: ferry_xxh3_digest(self.state))
            if self.hash.end % size == 0 { completed(begin / size, self.hash.tail) }
        }
    }

    fileprivate func take(_ range: Range<Int64>, of file: OpenFile) throws(SystemError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Int(min(ProgressBoard.regionSize, range.upperBound - range.lowerBound)),
            alignment: 4_096
        )
        defer { buffer.deallocate() }
        var offset = range.lowerBound
        while offset < range.upperBound {
            let count = Int(min(Int64(buffer.count), range.upperBound - offset))
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            try file.read(into: piece, at: offset)
            self.update(UnsafeRawBufferPointer(piece))
            offset += Int64(count)
        }
    }
}

extension OpenFile {
    /// Reads on from where a hash ends.
    ///
    /// - Throws: ``SystemError``, ENODATA if the file ends before.
    public func read(into hasher: PrefixHasher, upTo end: Int64) throws(SystemError) {
        try hasher.take(hasher.hash.end..<max(hasher.hash.end, end), of: self)
    }
}
