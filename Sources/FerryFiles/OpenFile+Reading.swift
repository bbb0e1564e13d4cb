import CFerryLinux
import Glibc

extension OpenFile {
    /// Opens a regular file for reading.
    ///
    /// - Throws: ``SystemError``, EINVAL if it is no regular file.
    public convenience init(reading path: String) throws(SystemError) {
        // Without O_NONBLOCK the open of a pipe would wait for its writer.
        let descriptor = ferry_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
        guard descriptor >= 0 else { throw SystemError(errno: errno, action: "open", path: path) }
        self.init(descriptor: descriptor, path: path, calls: .real)
        guard try self.identity().isRegular else {
            throw SystemError(errno: EINVAL, action: "read (it is not a regular file)", path: path)
        }
    }
}
