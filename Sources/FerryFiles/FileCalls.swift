import CFerryLinux
import Glibc

/// The system calls that a transfer's data go through, as closures, so that tests can let the k-th one fail.
///
/// Each does what its manual page says: -1 and errno on an error.
public struct FileCalls: Sendable {
    /// pread(2).
    public var pread: @Sendable (Int32, UnsafeMutableRawPointer, Int, Int64) -> Int
    /// preadv2(2) with RWF_NOWAIT: only what is in memory.
    public var preadCached: @Sendable (Int32, UnsafeMutableRawPointer, Int, Int64) -> Int
    /// pwrite(2).
    public var pwrite: @Sendable (Int32, UnsafeRawPointer, Int, Int64) -> Int
    /// fdatasync(2).
    public var fdatasync: @Sendable (Int32) -> Int32
    /// fsync(2).
    public var fsync: @Sendable (Int32) -> Int32
    /// ftruncate(2).
    public var ftruncate: @Sendable (Int32, Int64) -> Int32
    /// fallocate(2) with FALLOC_FL_KEEP_SIZE.
    public var fallocate: @Sendable (Int32, Int64, Int64) -> Int32
    /// renameat2(2) with RENAME_NOREPLACE inside one folder.
    public var renameNoReplace: @Sendable (Int32, String, String) -> Int32
    /// renameat(2) inside one folder.
    public var rename: @Sendable (Int32, String, String) -> Int32
    /// Where folders may be opened at all; nil is everywhere.
    public var allowedFolders: AllowedFolders?
    /// copy_file_range(2): from a descriptor at an offset to a descriptor at an offset, so many bytes.
    public var copyRange: @Sendable (Int32, Int64, Int32, Int64, Int) -> Int

    /// The kernel's own.
    public static let real = FileCalls(
        pread: { Glibc.pread($0, $1, $2, off_t($3)) },
        preadCached: { ferry_pread_cached($0, $1, $2, $3) },
        pwrite: { Glibc.pwrite($0, $1, $2, off_t($3)) },
        fdatasync: { Glibc.fdatasync($0) },
        fsync: { Glibc.fsync($0) },
        ftruncate: { Glibc.ftruncate($0, off_t($1)) },
        fallocate: { ferry_fallocate_keep_size($0, $1, $2) },
        renameNoReplace: { ferry_rename_noreplace($0, $1, $0, $2) },
        rename: { Glibc.renameat($0, $1, $0, $2) },
        copyRange: { ferry_copy_file_range($0, $1, $2, $3, $4) }
    )
}
