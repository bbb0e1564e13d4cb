import Glibc

/// A TCP port of 127.0.0.1 on which connections are made by the kernel and never taken: whoever connects can send a
/// little and hears nothing.
public final class SilentListener: Sendable {
    /// The port.
    public let port: Int
    private let descriptor: Int32
    private let fillers: [Int32]

    /// Begins to listen; if it is full no further connection is made.
    ///
    /// The queue of those that wait is full then, and the kernel drops what would come after (listen(2)).
    public init(isFull: Bool = false) throws {
        (self.descriptor, self.port) = try listenOnLoopback()
        guard isFull else {
            self.fillers = []
            return
        }
        listen(self.descriptor, 0)
        var fillers: [Int32] = []
        // The queue takes one more than it is told; the third is one that waits already.
        for _ in 0..<3 { fillers.append(connectToLoopback(port: self.port)) }
        self.fillers = fillers
    }

    deinit {
        for filler in self.fillers where filler >= 0 { close(filler) }
        close(self.descriptor)
    }

    /// A URL of it.
    public func url(_ path: String, scheme: String = "http") -> String {
        "\(scheme)://127.0.0.1:\(self.port)/\(path)"
    }
}
