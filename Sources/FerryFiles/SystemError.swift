import Glibc

/// A system call that failed: its errno value, what was attempted, and on what.
public struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The errno value.
    public let errno: Int32
    /// What was attempted, as it reads after "cannot": "write", "create".
    public let action: String
    /// The file or folder.
    public let path: String

    /// Makes an error.
    public init(errno: Int32, action: String, path: String) {
        self.errno = errno
        self.action = action
        self.path = path
    }

    /// `cannot write /path: No space left on device`.
    public var description: String {
        "cannot \(self.action) \(self.path): \(SystemError.text(self.errno))"
    }

    /// The words of strerror(3).
    public static func text(_ number: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard strerror_r(number, &buffer, buffer.count) == 0 else { return "error \(number)" }
        return buffer.withUnsafeBufferPointer { bytes in
            bytes.baseAddress.map { String(cString: $0) } ?? "error \(number)"
        }
    }
}
