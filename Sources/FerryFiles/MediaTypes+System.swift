public import FerryCore
import Glibc

extension MediaTypes {
    /// The system's table, `/etc/mime.types` (package media-types), read once; empty where there is none.
    public static let system = MediaTypes(Self.contents(of: "/etc/mime.types"))

    /// The largest table that is read, in bytes; Debian's has 80 thousand.
    static let largestTable: Int64 = 4 << 20

    /// The bytes of a table; none of a file that cannot be read or is too large to be one.
    static func contents(of path: String) -> [UInt8] {
        guard let file = try? OpenFile.source(path), let size = try? file.identity().size,
            (1...Self.largestTable).contains(size)
        else { return [] }
        var bytes = [UInt8](repeating: 0, count: Int(size))
        let isRead: Void? = bytes.withUnsafeMutableBytes { try? file.read(into: $0, at: 0) }
        return isRead == nil ? [] : bytes
    }
}
