import FoundationEssentials
public import Glibc

/// Finds the service that serves a socket, so that a test can end it in any way.
public struct ServiceProbe: Sendable {
    /// The part of the service's greeting that is needed.
    private struct Greeting: Decodable {
        struct Hello: Decodable {
            let pid: Int32
        }
        let hello: Hello
    }

    /// The socket's path.
    public let socketPath: String

    /// Names a socket.
    public init(socketPath: String) {
        self.socketPath = socketPath
    }

    /// Names the socket that commands use in a test's environment.
    public init(_ folder: TemporaryFolder) {
        self.init(socketPath: folder.socketPath)
    }

    /// Names the socket of a service started with `--state-dir`.
    public init(stateFolder: String) {
        self.init(socketPath: "\(stateFolder)/control.sock")
    }

    /// The process that serves the socket; nil if nobody does.
    ///
    /// The service speaks first: one line of JSON, `{"hello":{"pid":…}}`.
    /// - Throws: ``TestSupportError`` if whoever answers sends no such line within ten seconds.
    public func pid() throws -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw TestSupportError.system("socket", errno) }
        defer { close(descriptor) }
        guard try self.connect(descriptor) else { return nil }
        let line = try self.readLine(descriptor)
        guard let greeting = try? JSONDecoder().decode(Greeting.self, from: Data(line)) else {
            let text = String(decoding: line, as: UTF8.self)
            throw TestSupportError("\(self.socketPath) greets with something else: \(text)")
        }
        return greeting.hello.pid
    }

    /// Sends a signal to the service and waits until that process is gone.
    ///
    /// - Returns: The process it was; nil if nobody served the socket.
    @discardableResult
    public func kill(_ signal: Int32 = SIGKILL, timeout: Duration = .seconds(120)) throws -> Int32? {
        guard let pid = try self.pid() else { return nil }
        guard Glibc.kill(pid, signal) == 0 else { throw TestSupportError.system("kill \(pid)", errno) }
        guard waitForEnd(of: pid, timeout: timeout) else {
            throw TestSupportError("process \(pid) still runs \(timeout) after signal \(signal)")
        }
        return pid
    }

    private func connect(_ descriptor: Int32) throws -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = Array(self.socketPath.utf8)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { buffer in
            guard path.count < buffer.count else { return false }
            buffer.copyBytes(from: path)
            return true
        }
        guard fits else { throw TestSupportError("\(self.socketPath) is too long for a socket") }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if result == 0 { return true }
        guard errno == ENOENT || errno == ECONNREFUSED else {
            throw TestSupportError.system("connect to \(self.socketPath)", errno)
        }
        return false
    }

    private func readLine(_ descriptor: Int32) throws -> [UInt8] {
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while recv(descriptor, &byte, 1, 0) == 1 {
            if byte == UInt8(ascii: "\n") { return line }
            line.append(byte)
        }
        throw TestSupportError("\(self.socketPath) sends no greeting, only \(line.count) bytes")
    }
}

/// Waits until a process of anybody is gone or a zombie; false when the time is over.
///
/// No event tells it for processes that are not children, hence the look at each five milliseconds.
func waitForEnd(of pid: Int32, timeout: Duration) -> Bool {
    let end = ContinuousClock.now + timeout
    while ContinuousClock.now < end {
        guard let stat = try? readFile("/proc/\(pid)/stat") else { return true }
        // The state follows the name in parentheses (proc(5)).
        let afterName = stat[(stat.lastIndex(of: UInt8(ascii: ")")) ?? 0)...]
        if afterName.dropFirst(2).first == UInt8(ascii: "Z") { return true }
        _ = poll(nil, 0, 5)
    }
    return false
}
