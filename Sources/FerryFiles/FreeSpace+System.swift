import FerryCore
import Glibc

extension FreeSpace {
    /// Asks the file system of a path; what is not there yet is asked of the folder that it will be in.
    ///
    /// Blocks for as long as the file system needs.
    ///
    /// - Returns: What is free; nil if the file system cannot tell, as some that have no size.
    static func find(_ path: String) -> FreeSpace? {
        var path = path
        var info = stat()
        while stat(path, &info) != 0 {
            guard let parent = Self.parent(of: path) else { return nil }
            path = parent
        }
        var sizes = statvfs()
        guard statvfs(path, &sizes) == 0, sizes.f_blocks > 0 else { return nil }
        let free = UInt64(sizes.f_bavail).multipliedReportingOverflow(by: UInt64(sizes.f_frsize))
        let hasNames = sizes.f_files == 0 || sizes.f_ffree > 0
        return FreeSpace(
            place: Self.mountPoint(of: path, device: info.st_dev),
            device: UInt64(info.st_dev),
            bytes: !hasNames ? 0 : free.overflow ? .max : Int64(clamping: free.partialValue)
        )
    }

    /// The topmost folder above a path that is on its device.
    private static func mountPoint(of path: String, device: dev_t) -> String {
        var top = path
        var info = stat()
        while let parent = Self.parent(of: top), stat(parent, &info) == 0, info.st_dev == device {
            top = parent
        }
        return top
    }

    private static func parent(of path: String) -> String? {
        guard path != "/", let slash = path.lastIndex(of: "/") else { return nil }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

extension OpenFile.Identity {
    /// The bytes that a file system has given to a file (st_blocks of stat(2)); 0 where there is none.
    public static func allocated(_ path: String) -> Int64 {
        var info = stat()
        return lstat(path, &info) == 0 ? Int64(info.st_blocks) * 512 : 0
    }
}
