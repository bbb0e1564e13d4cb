import Glibc

/// Where a reply's body comes from.
public indirect enum BodySource: Sendable {
    /// These bytes.
    case bytes([UInt8])
    /// So many bytes of the object with this seed.
    case generated(size: Int64, seed: UInt64)
    /// A half-open range of an object.
    case slice(TestObject, Range<Int64>)
    /// A file, read when it is sent.
    case file(String)
    /// One after the other.
    case sequence([BodySource])

    /// The length in bytes; 0 for a file that cannot be read.
    public var size: Int64 {
        switch self {
        case .bytes(let bytes): return Int64(bytes.count)
        case .generated(let size, _): return size
        case .slice(_, let range): return range.upperBound - range.lowerBound
        case .file(let path):
            var info = stat()
            return stat(path, &info) == 0 ? Int64(info.st_size) : 0
        case .sequence(let parts): return parts.reduce(0) { $0 + $1.size }
        }
    }

    /// Hands the bytes out in pieces of at most `limit` bytes, until `take` returns false.
    func forEachPiece(limit: Int, _ take: (UnsafeRawBufferPointer) throws -> Bool) throws -> Bool {
        switch self {
        case .bytes(let bytes):
            return try bytes.withUnsafeBytes { all in
                for start in stride(from: 0, to: all.count, by: limit) {
                    let piece = all[start..<min(start + limit, all.count)]
                    guard try take(UnsafeRawBufferPointer(rebasing: piece)) else { return false }
                }
                return true
            }
        case .generated(let size, let seed):
            return try BodySource.slice(TestObject(size: size, seed: seed), 0..<size).forEachPiece(
                limit: limit,
                take
            )
        case .slice(let object, let range):
            var buffer = [UInt8](repeating: 0, count: Int(min(Int64(limit), max(self.size, 1))))
            var offset = range.lowerBound
            while offset < range.upperBound {
                let count = Int(min(Int64(limit), range.upperBound - offset))
                let goesOn = try buffer.withUnsafeMutableBytes { raw in
                    let piece = UnsafeMutableRawBufferPointer(rebasing: raw[..<count])
                    object.fill(piece, at: offset)
                    return try take(UnsafeRawBufferPointer(piece))
                }
                guard goesOn else { return false }
                offset += Int64(count)
            }
            return true
        case .file(let path):
            let descriptor = makeDescriptor { open(path, O_RDONLY) }
            guard descriptor >= 0 else { throw TestSupportError.system("open \(path)", errno) }
            defer { close(descriptor) }
            var buffer = [UInt8](repeating: 0, count: limit)
            while true {
                let count = read(descriptor, &buffer, limit)
                guard count >= 0 else { throw TestSupportError.system("read \(path)", errno) }
                guard count > 0 else { return true }
                guard try buffer.withUnsafeBytes({ try take(UnsafeRawBufferPointer(rebasing: $0[..<count])) })
                else { return false }
            }
        case .sequence(let parts):
            for part in parts {
                guard try part.forEachPiece(limit: limit, take) else { return false }
            }
            return true
        }
    }
}
