import Glibc

/// Pseudo-random content of any size that is computed, not stored.
///
/// Each 4 KiB block opens with eight bytes made of its number, so that a block in the wrong place never looks
/// right; the rest comes from a table that the seed and the version fill.
public struct TestObject: Sendable {
    /// The first difference between a file and an object.
    public struct Mismatch: Sendable, Equatable, CustomStringConvertible {
        /// The first offset at which they differ, in bytes.
        public let offset: Int64
        /// The file's size.
        public let fileSize: Int64
        /// The object's size.
        public let objectSize: Int64

        /// The difference as a sentence.
        public var description: String {
            "differs at \(self.offset); the file has \(self.fileSize) bytes, the object \(self.objectSize)"
        }
    }

    private static let blockSize: Int64 = 4096
    private static let tableSize = 1 << 16

    /// The size in bytes.
    public let size: Int64
    /// What the content is made of.
    public let seed: UInt64
    /// Grows when the object "changes": other content, other tag.
    public let version: Int
    /// When it was last modified, in seconds since 1970.
    public var modified: Int64
    private let key: UInt64
    private let table: [UInt8]

    /// Makes an object; equal size, seed and version give equal content.
    public init(size: Int64, seed: UInt64 = 1, version: Int = 1) {
        self.size = size
        self.seed = seed
        self.version = version
        self.modified = 1_704_067_200 + Int64(version) * 3600
        let key = Self.mix(seed &+ Self.mix(UInt64(version)))
        self.key = key
        self.table = [UInt8](unsafeUninitializedCapacity: Self.tableSize + Int(Self.blockSize)) {
            buffer,
            count in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            for index in 0..<(raw.count / 8) {
                raw.storeBytes(
                    of: Self.mix(key &+ UInt64(index)).littleEndian,
                    toByteOffset: index * 8,
                    as: UInt64.self
                )
            }
            count = raw.count
        }
    }

    /// The strong entity tag, with its quotes.
    public var etag: String {
        "\"ferry-\(self.seed)-\(self.version)-\(self.size)\""
    }

    /// `modified` as an HTTP date.
    public var lastModified: String {
        httpDate(self.modified)
    }

    /// The object after a change: another version, of the same size unless one is given.
    public func changed(size: Int64? = nil) -> TestObject {
        TestObject(size: size ?? self.size, seed: self.seed, version: self.version + 1)
    }

    /// Fills a buffer with the content from `offset` on; the object's size plays no part.
    public func fill(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
        var written = 0
        self.table.withUnsafeBytes { table in
            while written < buffer.count {
                let position = offset + Int64(written)
                let block = position / Self.blockSize
                let inBlock = Int(position % Self.blockSize)
                let count = min(buffer.count - written, Int(Self.blockSize) - inBlock)
                let start = Int(truncatingIfNeeded: block &* 61) & (Self.tableSize - 1)
                let target = UnsafeMutableRawBufferPointer(rebasing: buffer[written..<(written + count)])
                target.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: table[(start + inBlock)...].prefix(count))
                )
                if inBlock < 8 {
                    let stamp = Self.mix(self.key ^ UInt64(bitPattern: block))
                    for index in 0..<min(count, 8 - inBlock) {
                        target[index] = UInt8(truncatingIfNeeded: stamp >> UInt64(8 * (inBlock + index)))
                    }
                }
                written += count
            }
        }
    }

    /// The content of a half-open range that lies within the object.
    public func bytes(_ range: Range<Int64>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            self.fill(UnsafeMutableRawBufferPointer(buffer), at: range.lowerBound)
            count = range.count
        }
    }

    /// Writes the object's first bytes into a file, all of them unless a length is given.
    public func write(to path: String, length: Int64? = nil) throws {
        let descriptor = makeDescriptor { open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644) }
        guard descriptor >= 0 else { throw TestSupportError.system("open \(path)", errno) }
        defer { close(descriptor) }
        let end = min(length ?? self.size, self.size)
        var offset: Int64 = 0
        while offset < end {
            let next = min(end, offset + (1 << 18))
            try self.bytes(offset..<next).withUnsafeBytes { try writeAll(descriptor, $0) }
            offset = next
        }
    }

    /// Compares a file with the object; nil where they are equal.
    ///
    /// - Throws: ``TestSupportError`` if the file cannot be read.
    public func matches(_ path: String) throws -> Mismatch? {
        try self.compare(path, whole: true)
    }

    /// Compares a file with the start of the object; nil where the file is a prefix of it, whole or not.
    public func matchesStart(_ path: String) throws -> Mismatch? {
        try self.compare(path, whole: false)
    }

    private func compare(_ path: String, whole: Bool) throws -> Mismatch? {
        let descriptor = makeDescriptor { open(path, O_RDONLY) }
        guard descriptor >= 0 else { throw TestSupportError.system("open \(path)", errno) }
        defer { close(descriptor) }
        var info = stat()
        guard fstat(descriptor, &info) == 0 else { throw TestSupportError.system("fstat \(path)", errno) }
        let fileSize = Int64(info.st_size)
        func mismatch(at offset: Int64) -> Mismatch {
            Mismatch(offset: offset, fileSize: fileSize, objectSize: self.size)
        }
        var actual = [UInt8](repeating: 0, count: 1 << 18)
        var expected = actual
        var offset: Int64 = 0
        while offset < self.size {
            let wanted = Int(min(Int64(actual.count), self.size - offset))
            let count = pread(descriptor, &actual, wanted, off_t(offset))
            guard count >= 0 else { throw TestSupportError.system("read \(path)", errno) }
            if count == 0 { return whole ? mismatch(at: offset) : nil }
            expected.withUnsafeMutableBytes { buffer in
                self.fill(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: offset)
            }
            if memcmp(actual, expected, count) != 0 {
                let index = (0..<count).first { actual[$0] != expected[$0] } ?? 0
                return mismatch(at: offset + Int64(index))
            }
            offset += Int64(count)
        }
        return fileSize > self.size ? mismatch(at: self.size) : nil
    }

    /// SplitMix64's output function: every input bit moves every output bit.
    private static func mix(_ value: UInt64) -> UInt64 {
        var z = value &+ 0x9e37_79b9_7f4a_7c15
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}

/// A time as IMF-fixdate (RFC 9110 §5.6.7).
func httpDate(_ secondsSince1970: Int64) -> String {
    var time = time_t(secondsSince1970)
    var parts = tm()
    gmtime_r(&time, &parts)
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let day = "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)])"
    return
        "\(day) \(parts.tm_year + 1900) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
}
