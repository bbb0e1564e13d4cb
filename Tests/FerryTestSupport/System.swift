import Glibc
import Synchronization

/// The text of an errno value.
func errorText(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    return strerror_r(code, &buffer, buffer.count) == 0 ? cText(buffer) : "error \(code)"
}

/// The string in a buffer that C filled and closed with a zero byte.
func cText(_ buffer: [CChar]) -> String {
    String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Serialises making descriptors close-on-exec with starting programs.
///
/// Glibc shows Swift neither `pipe2` nor `accept4`; a program started between `accept` and `fcntl` would hold
/// a connection open after the server closed it.
let descriptorLock = Mutex<Void>(())

/// Runs a call that makes descriptors, and has them closed on exec.
func makeDescriptor(_ call: () -> Int32) -> Int32 {
    descriptorLock.withLock { _ in
        let descriptor = call()
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return descriptor
    }
}

/// A pipe whose ends are closed on exec.
func makePipe() throws -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    let result = descriptorLock.withLock { _ in
        let result = pipe(&ends)
        if result == 0 { for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) } }
        return result
    }
    guard result == 0 else { throw TestSupportError.system("pipe", errno) }
    return (ends[0], ends[1])
}

/// Runs a closure on a thread of its own, so that it may block.
func startThread(_ body: @escaping @Sendable () -> Void) throws {
    final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    let box = Unmanaged.passRetained(Box(body))
    var thread = pthread_t()
    let error = pthread_create(
        &thread,
        &attributes,
        { context in
            guard let context else { return nil }
            Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body()
            return nil
        },
        box.toOpaque()
    )
    guard error == 0 else {
        box.release()
        throw TestSupportError.system("pthread_create", error)
    }
}

/// Reads a whole file.
public func readFile(_ path: String) throws -> [UInt8] {
    let descriptor = makeDescriptor { open(path, O_RDONLY) }
    guard descriptor >= 0 else { throw TestSupportError.system("open \(path)", errno) }
    defer { close(descriptor) }
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0 && errno == EINTR { continue }
        guard count >= 0 else { throw TestSupportError.system("read \(path)", errno) }
        if count == 0 { return content }
        content += buffer[..<count]
    }
}

/// Writes all bytes to a descriptor.
func writeAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes
    while !rest.isEmpty {
        let count = write(descriptor, rest.baseAddress, rest.count)
        if count < 0 && errno == EINTR { continue }
        guard count >= 0 else { throw TestSupportError.system("write", errno) }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
}

/// Creates or replaces a file.
public func writeFile(_ path: String, _ content: some Sequence<UInt8>) throws {
    let descriptor = makeDescriptor { open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644) }
    guard descriptor >= 0 else { throw TestSupportError.system("open \(path)", errno) }
    defer { close(descriptor) }
    try Array(content).withUnsafeBytes { try writeAll(descriptor, $0) }
}
