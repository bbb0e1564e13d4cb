public import FerryCore
import Glibc

extension OpenFile {
    /// How much is read and hashed at a time, in bytes; also how often cancellation is looked at.
    static let digestStep = 1_024 * 1_024

    /// Reads a range of the file and computes digests of it.
    ///
    /// Blocks for as long as the disk and the processor need: about a second a GiB.
    ///
    /// - Parameters:
    ///   - algorithms: The digests wanted; with none of them the range is read all the same.
    ///   - range: The bytes, which must all be there.
    ///   - isCancelled: Asked before each step of 1 MiB.
    /// - Returns: A digest for each of the algorithms.
    /// - Throws: ``SystemError`` if reading fails or the file ends early (ENODATA), ``Digester/Failure``, or
    ///   `CancellationError`.
    public func digest(
        of algorithms: Set<DigestAlgorithm>,
        range: Range<Int64>,
        isCancelled: () -> Bool = { false }
    ) throws -> [DigestAlgorithm: Checksum] {
        let digester = try Digester(algorithms)
        try self.digest(into: digester, range: range, isCancelled: isCancelled)
        return try digester.finish()
    }

    /// Reads a range of the file into running digests: the prefix of a download that goes on.
    ///
    /// - Throws: As ``digest(of:range:isCancelled:)``; the digester is void then.
    public func digest(
        into digester: Digester,
        range: Range<Int64>,
        isCancelled: () -> Bool = { false }
    ) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.digestStep, alignment: 4_096)
        defer { buffer.deallocate() }
        var offset = range.lowerBound
        while offset < range.upperBound {
            if isCancelled() { throw CancellationError() }
            let count = Int(min(Int64(buffer.count), range.upperBound - offset))
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            guard try self.read(into: piece, at: offset) == count else {
                throw SystemError(
                    errno: ENODATA,
                    action: "read \(count) bytes at \(offset) of",
                    path: self.path
                )
            }
            try digester.update(UnsafeRawBufferPointer(piece))
            offset += Int64(count)
        }
    }
}
