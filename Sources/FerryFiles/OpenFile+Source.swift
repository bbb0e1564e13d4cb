import CFerryLinux
import Glibc

extension OpenFile {
    /// Opens the source of an upload for reading; links are followed, as for any file that a user names.
    ///
    /// A pipe is not waited for (O_NONBLOCK) and, like all that is no regular file, refused with EINVAL. A service that
    /// may use some folders only reads nothing elsewhere (EPERM).
    public static func source(
        _ path: String,
        calls: FileCalls = .real
    ) throws(SystemError) -> OpenFile {
        let descriptor = ferry_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0)
        guard descriptor >= 0 else { throw SystemError(errno: errno, action: "open", path: path) }
        let file = OpenFile(descriptor: descriptor, path: path, calls: calls)
        if let allowed = calls.allowedFolders, !allowed.admits(descriptor) { throw allowed.refusal(of: path) }
        guard try file.identity().isRegular else {
            throw SystemError(errno: EINVAL, action: "use (it is not a regular file)", path: path)
        }
        return file
    }

    /// Reads what of a range is in the page cache, at least its first byte; never waits for the disk (preadv2(2)).
    ///
    /// - Returns: How many bytes; nil if the disk would have to be waited for, or the file system cannot tell.
    /// - Throws: ``SystemError``, ENODATA if the file ends before the range begins.
    public func readCached(
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(SystemError) -> Int? {
        guard let base = buffer.baseAddress else { return 0 }
        let count = self.calls.preadCached(self.descriptor, base, buffer.count, offset)
        if count > 0 { return count }
        if count < 0, [EAGAIN, EINTR, EOPNOTSUPP, ENOSYS].contains(errno) { return nil }
        throw SystemError(errno: count < 0 ? errno : ENODATA, action: "read", path: self.path)
    }

    /// Brings a range into the page cache, and waits for that.
    ///
    /// - Throws: ``SystemError``, ENODATA if the file ends before the range does.
    public func warm(_ range: Range<Int64>) throws(SystemError) {
        let size = Int(min(range.upperBound - range.lowerBound, 256 * 1_024))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4_096)
        defer { buffer.deallocate() }
        var position = range.lowerBound
        while position < range.upperBound {
            let count = min(size, Int(range.upperBound - position))
            try self.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), at: position)
            position += Int64(count)
        }
    }

    /// Copies a range of another file to an offset of this one, inside the kernel where it can do that.
    ///
    /// copy_file_range(2) refuses some pairs of files, and gives nothing for some that have something; whatever
    /// its reason, the rest then goes through a buffer, whose calls also tell which of the two files fails.
    ///
    /// - Throws: ``SystemError`` with the path of the file at fault, ENODATA if the source ends early.
    func copy(
        from source: OpenFile,
        _ range: Range<Int64>,
        to offset: Int64,
        buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) {
        let shift = offset - range.lowerBound
        var position = range.lowerBound
        while position < range.upperBound {
            let wanted = Int(min(range.upperBound - position, Int64(Int32.max)))
            let count = self.calls.copyRange(
                source.descriptor,
                position,
                self.descriptor,
                position + shift,
                wanted
            )
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            position += Int64(count)
        }
        while position < range.upperBound {
            let count = Int(min(Int64(buffer.count), range.upperBound - position))
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            try source.read(into: piece, at: position)
            try self.write(UnsafeRawBufferPointer(piece), at: position + shift)
            position += Int64(count)
        }
    }
}
