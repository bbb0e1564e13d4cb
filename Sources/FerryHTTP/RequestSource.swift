/// Gives the bytes of a request's body on the loop's thread.
///
/// A body is asked for from its beginning again where libcurl has to send it again: a source reads at positions
/// and keeps none.
public protocol RequestSource: AnyObject, Sendable {
    /// How many bytes are sent: exactly so many, or the exchange fails.
    var length: Int64 { get }

    /// Copies bytes that begin at a position below ``length`` into the buffer.
    ///
    /// Called on the loop's thread: it must not wait for anything but the disk.
    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) -> SourceAnswer
}

/// What a source did.
public enum SourceAnswer: Sendable, Equatable {
    /// So many bytes are in the buffer, at least one.
    case bytes(Int)
    /// None now; ``Exchange/resume()`` asks again.
    case pause
    /// There are none; the exchange ends with code 42. The source knows why.
    case failed
}

/// A short body in memory.
public final class BytesSource: RequestSource {
    private let bytes: [UInt8]

    /// Makes a source; without bytes the body is empty, which is not the same as none.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes
    }

    /// How many bytes there are.
    public var length: Int64 { Int64(self.bytes.count) }

    /// Copies as many as fit.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) -> SourceAnswer {
        let rest = self.bytes.dropFirst(Int(position)).prefix(buffer.count)
        guard !rest.isEmpty else { return .failed }
        buffer.copyBytes(from: rest)
        return .bytes(rest.count)
    }
}
