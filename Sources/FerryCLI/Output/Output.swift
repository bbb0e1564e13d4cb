import Glibc

/// A small buffer in front of a descriptor; the C streams cannot be used in Swift 6 mode.
final class Output {
    /// The descriptor.
    let descriptor: Int32
    /// The error number of the first write that failed; what is written after it is dropped.
    private(set) var problem: Int32 = 0
    private var buffer: [UInt8] = []

    /// Wraps a descriptor; 1 and 2 stay open after it.
    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Whether it is a terminal.
    var isTerminal: Bool { isatty(self.descriptor) == 1 }

    /// Adds text and a line's end.
    func line(_ text: String) {
        self.write(text)
        self.buffer.append(10)
    }

    /// Adds a line of bytes.
    func line(_ bytes: [UInt8]) {
        self.buffer.append(contentsOf: bytes)
        self.write("\n")
    }

    /// Adds text.
    func write(_ text: String) {
        self.buffer.append(contentsOf: text.utf8)
        if self.buffer.count >= 1 << 15 { self.flush() }
    }

    /// Writes what is held; waits for a slow reader.
    func flush() {
        var start = 0
        while start < self.buffer.count, self.problem == 0 {
            let count = self.buffer[start...].withUnsafeBytes { bytes in
                Glibc.write(self.descriptor, bytes.baseAddress, bytes.count)
            }
            if count >= 0 {
                start += count
            } else if errno == EAGAIN {
                var entry = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&entry, 1, -1)  // a descriptor in trouble shows it at the next write
            } else if errno != EINTR {
                self.problem = errno
            }
        }
        self.buffer.removeAll(keepingCapacity: true)
    }
}
