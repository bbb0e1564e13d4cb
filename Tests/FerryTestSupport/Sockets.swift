import Glibc

/// Opens a TCP socket on 127.0.0.1 that listens; port 0 lets the kernel choose.
func listenOnLoopback(port: UInt16 = 0) throws -> (descriptor: Int32, port: Int) {
    let descriptor = socket(
        AF_INET,
        Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue),
        0
    )
    guard descriptor >= 0 else { throw TestSupportError.system("socket", errno) }
    var yes: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    var address = loopback(port)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Int32 in
            guard bind(descriptor, address, size) == 0, listen(descriptor, 512) == 0 else { return -1 }
            return getsockname(descriptor, address, &size)
        }
    }
    guard result == 0 else {
        let error = TestSupportError.system("listen on 127.0.0.1:\(port)", errno)
        close(descriptor)
        throw error
    }
    return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
}

/// Whether somebody listens on a port of 127.0.0.1.
func answersOnLoopback(port: Int) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var address = loopback(UInt16(port))
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
}

/// A socket that connects to a port of 127.0.0.1, or will; -1 if there is none.
func connectToLoopback(port: Int) -> Int32 {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(AF_INET, kind, 0)
    var address = loopback(UInt16(port))
    _ = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    return descriptor
}

/// A port of 127.0.0.1 on which nobody listens; it may be taken before the caller uses it.
public func freePort() throws -> Int {
    let (descriptor, port) = try listenOnLoopback()
    close(descriptor)
    return port
}

private func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
}
