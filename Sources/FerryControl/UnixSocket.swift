import FerryCore
import Glibc

/// System calls on Unix sockets and descriptors, with what Swift's Glibc module makes of their constants.
enum UnixSocket {
    /// The longest path that fits `sun_path` of 108 bytes with its NUL (unix(7)).
    static let maximumPathLength = 107

    /// A new stream socket, closed on exec; -1 with `errno` set on failure.
    static func make() -> Int32 {
        socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    }

    /// Connects without blocking; 0 or an `errno` value, EAGAIN if the queue of the listener is full.
    static func connect(_ descriptor: Int32, to path: String) -> Int32 {
        self.withAddress(path) { address, length in
            Glibc.connect(descriptor, address, length) == 0 ? 0 : errno
        }
    }

    /// Binds to a path; 0 or an `errno` value.
    static func bind(_ descriptor: Int32, to path: String) -> Int32 {
        self.withAddress(path) { address, length in
            Glibc.bind(descriptor, address, length) == 0 ? 0 : errno
        }
    }

    /// The next connection, closed on exec and non-blocking; -1 with `errno` set on failure.
    static func accept(_ listener: Int32) -> Int32 {
        let descriptor = Glibc.accept(listener, nil, nil)
        guard descriptor >= 0 else { return -1 }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)  // cannot fail on a descriptor just made
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        return descriptor
    }

    /// Sends what fits without blocking and without SIGPIPE; the count, or an `errno` value.
    static func send(_ descriptor: Int32, _ bytes: ArraySlice<UInt8>) -> Result<Int, SystemFailure> {
        bytes.withUnsafeBytes { buffer in
            while true {
                let count = Glibc.send(
                    descriptor,
                    buffer.baseAddress,
                    buffer.count,
                    Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                )
                if count >= 0 { return .success(count) }
                if errno != EINTR { return .failure(SystemFailure(number: errno)) }
            }
        }
    }

    /// Reads what is there into a buffer, without blocking; no bytes at the end of the stream.
    static func receive(
        _ descriptor: Int32,
        into body: (UnsafeRawBufferPointer) -> Void
    ) -> Result<Int, SystemFailure> {
        withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { buffer in
            while true {
                let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                if count >= 0 {
                    body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                    return .success(count)
                }
                if errno != EINTR { return .failure(SystemFailure(number: errno)) }
            }
        }
    }

    /// Waits for events of one descriptor; true if there is one, false after the time is over.
    ///
    /// A signal does not end the wait: a command sees signals through its own signalfd.
    static func wait(_ descriptor: Int32, for events: Int32, until deadline: ContinuousClock.Instant) -> Bool
    {
        while true {
            var item = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            let left = (deadline - ContinuousClock.now) / Duration.milliseconds(1)
            let count = poll(&item, 1, Int32(max(0, left.rounded(.up))))
            if count > 0 { return true }
            if count == 0, ContinuousClock.now >= deadline { return false }
            if count < 0, errno != EINTR, errno != EAGAIN { return false }
        }
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32)
        -> Int32
    {
        let bytes = Array(path.utf8)
        guard bytes.count <= self.maximumPathLength else { return ENAMETOOLONG }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}

/// A failed system call: its `errno` value.
struct SystemFailure: Error, Equatable {
    /// The value.
    let number: Int32

    /// Nothing can be done now, without blocking.
    var isWouldBlock: Bool { self.number == EAGAIN }

    /// The system's words.
    var words: String { Self.words(self.number) }

    /// The system's words for an `errno` value.
    static func words(_ number: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 128)
        guard strerror_r(number, &buffer, buffer.count) == 0 else { return "error \(number)" }
        return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
