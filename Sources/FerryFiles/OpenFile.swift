import CFerryLinux
import Glibc

/// An open file; closed when the last reference goes.
public final class OpenFile: Sendable {
    /// The descriptor, valid as long as this object lives.
    public let descriptor: Int32
    /// The path as it was when opened; for messages.
    public let path: String
    let calls: FileCalls

    /// What identifies a file while it exists, and its size.
    public struct Identity: Sendable, Hashable {
        /// st_dev.
        public let device: Int64
        /// st_ino.
        public let inode: Int64
        /// st_size, in bytes.
        public let size: Int64
        /// st_mtim in nanoseconds since the epoch.
        public let modifiedNanoseconds: Int64
        /// st_ctim in nanoseconds since the epoch: any change of the bytes or of the inode sets it, and nobody
        /// can set it back.
        public let changedNanoseconds: Int64
        /// Whether it is a regular file.
        public let isRegular: Bool

        init(_ info: stat) {
            self.device = Int64(bitPattern: UInt64(info.st_dev))
            self.inode = Int64(bitPattern: UInt64(info.st_ino))
            self.size = Int64(info.st_size)
            self.modifiedNanoseconds = Self.nanoseconds(info.st_mtim)
            self.changedNanoseconds = Self.nanoseconds(info.st_ctim)
            self.isRegular = info.st_mode & S_IFMT == S_IFREG
        }

        /// A time before 1677 or after 2262, which a file can have, counts as the earliest or the latest one that
        /// a count of nanoseconds can hold.
        static func nanoseconds(_ time: timespec) -> Int64 {
            let seconds = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
            let sum = seconds.partialValue.addingReportingOverflow(Int64(time.tv_nsec))
            guard !seconds.overflow, !sum.overflow else { return time.tv_sec < 0 ? .min : .max }
            return sum.partialValue
        }

        /// Whether both name the same file, whatever its size, for one that was found under the same path.
        ///
        /// The device number plays no part: it is given anew at each mount, by the order in which disks are
        /// found and on some file systems (btrfs, NFS) out of thin air, so that after a boot it says nothing.
        public func isSameFile(inode: Int64?) -> Bool {
            self.inode == inode
        }
    }

    /// Takes over a descriptor.
    init(descriptor: Int32, path: String, calls: FileCalls) {
        self.descriptor = descriptor
        self.path = path
        self.calls = calls
    }

    deinit {
        close(self.descriptor)  // every error that matters was told by the sync before
    }

    /// Identity and size now (fstat(2)).
    public func identity() throws(SystemError) -> Identity {
        var info = stat()
        guard fstat(self.descriptor, &info) == 0 else { throw self.failure("look at") }
        return Identity(info)
    }

    /// Reads at an offset until the buffer is full.
    ///
    /// - Throws: ``SystemError``, ENODATA if the file ends before.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) {
        guard let base = buffer.baseAddress else { return }
        var done = 0
        while done < buffer.count {
            let count = self.calls.pread(
                self.descriptor,
                base + done,
                buffer.count - done,
                offset + Int64(done)
            )
            if count < 0 {
                if errno == EINTR { continue }
                throw self.failure("read")
            }
            guard count > 0 else {
                let action = "read \(buffer.count) bytes at \(offset) of"
                throw SystemError(errno: ENODATA, action: action, path: self.path)
            }
            done += count
        }
    }

    /// Writes all of the bytes at an offset.
    public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        guard let base = bytes.baseAddress else { return }
        var done = 0
        while done < bytes.count {
            let count = self.calls.pwrite(
                self.descriptor,
                base + done,
                bytes.count - done,
                offset + Int64(done)
            )
            if count < 0 {
                if errno == EINTR { continue }
                throw self.failure("write")
            }
            done += count
        }
    }

    /// Whether some of the first bytes were never written: the file was cut short, and written on further up.
    ///
    /// File systems that compress may tell of holes where zeros were written; others know of none (lseek(2)).
    public func hasHole(before end: Int64) -> Bool {
        let hole = ferry_first_hole(self.descriptor)
        return hole >= 0 && hole < end
    }

    /// Makes the data durable, and the metadata needed to read it (fdatasync(2)).
    ///
    /// After an error everything written since the last success counts as lost: the kernel marks the pages
    /// clean and a second call would say that all is well.
    public func syncData() throws(SystemError) {
        guard self.calls.fdatasync(self.descriptor) == 0 else { throw self.failure("sync") }
    }

    /// Makes data and all metadata of the file durable, not its name (fsync(2)).
    public func sync() throws(SystemError) {
        guard self.calls.fsync(self.descriptor) == 0 else { throw self.failure("sync") }
    }

    /// Sets the time of the last change, in nanoseconds since the epoch.
    public func setModified(nanoseconds: Int64) throws(SystemError) {
        let time = timespec(
            tv_sec: Int(nanoseconds / 1_000_000_000),
            tv_nsec: Int(nanoseconds % 1_000_000_000)
        )
        guard futimens(self.descriptor, [time, time]) == 0 else { throw self.failure("set the time of") }
    }

    /// Sets the size.
    public func truncate(to size: Int64) throws(SystemError) {
        guard self.calls.ftruncate(self.descriptor, size) == 0 else { throw self.failure("resize") }
    }

    /// Reserves space without changing the size; file systems that cannot are left alone.
    ///
    /// What is free is asked first: a reservation that must fail would take all of it from others meanwhile.
    ///
    /// - Throws: ``SystemError`` if there is no space: a full disk is found before the first byte.
    public func reserve(_ size: Int64) throws(SystemError) {
        guard size > 0 else { return }
        var info = statvfs()
        if fstatvfs(self.descriptor, &info) == 0,
            UInt64(info.f_bavail).multipliedReportingOverflow(by: UInt64(info.f_frsize)).partialValue
                < UInt64(size)
        {
            throw SystemError(errno: ENOSPC, action: "reserve \(size) bytes for", path: self.path)
        }
        guard self.calls.fallocate(self.descriptor, 0, size) != 0 else { return }
        guard errno == ENOSPC || errno == EDQUOT || errno == EFBIG else { return }
        throw self.failure("reserve \(size) bytes for")
    }

    private func failure(_ action: String) -> SystemError {
        SystemError(errno: errno, action: action, path: self.path)
    }
}
