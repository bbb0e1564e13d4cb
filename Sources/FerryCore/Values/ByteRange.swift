/// A half-open range of byte offsets in a file or representation, from 0.
public struct ByteRange: Hashable, Sendable, CustomStringConvertible {
    /// The first byte.
    public let start: Int64
    /// One past the last byte.
    public let end: Int64

    /// Makes a range.
    ///
    /// - Precondition: `0 <= start <= end`.
    public init(start: Int64, end: Int64) {
        precondition(start >= 0 && end >= start, "a byte range needs 0 <= start <= end")
        self.start = start
        self.end = end
    }

    /// The number of bytes.
    public var count: Int64 { self.end - self.start }

    /// Whether no byte is in it.
    public var isEmpty: Bool { self.start == self.end }

    /// `start..<end`.
    public var description: String { "\(self.start)..<\(self.end)" }
}
