import CFerryLinux
import Glibc

/// A thread that waits for the kernel to tell of interfaces, addresses and routes (rtnetlink(7)); it never runs
/// otherwise.
///
/// Where the kernel refuses, only the timers of those who wait are left.
final class NetworkWatch: Sendable {
    /// A change of the network is rarely alone: those that follow within this time are told with it.
    private static let quietMilliseconds: Int32 = 1_000

    private let network = ferry_network_watch()
    private let end = ferry_eventfd()
    private let continuation: AsyncStream<Void>.Continuation

    private init(_ continuation: AsyncStream<Void>.Continuation) {
        self.continuation = continuation
    }

    deinit {
        for descriptor in [self.network, self.end] where descriptor >= 0 { close(descriptor) }
    }

    /// Starts the thread, which ends with the stream.
    static func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let watch = NetworkWatch(continuation)
        guard watch.end >= 0, watch.network >= 0 else {
            continuation.finish()
            return stream
        }
        var thread = pthread_t()
        let context = Unmanaged.passRetained(watch)
        let code = pthread_create(
            &thread,
            nil,
            { context in
                guard let context else { return nil }
                ferry_name_thread("ferry-netwatch")
                Unmanaged<NetworkWatch>.fromOpaque(context).takeRetainedValue().run()
                return nil
            },
            context.toOpaque()
        )
        guard code == 0 else {
            context.release()
            continuation.finish()
            return stream
        }
        pthread_detach(thread)
        continuation.onTermination = { _ in ferry_eventfd_signal(watch.end) }
        return stream
    }

    private func run() {
        var hasNews = false
        while true {
            var waits = [self.end, self.network].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            let count = poll(&waits, nfds_t(waits.count), hasNews ? Self.quietMilliseconds : -1)
            if count < 0, errno != EINTR { return self.continuation.finish() }
            if waits[0].revents != 0 { return }
            if waits[1].revents != 0, ferry_network_watch_read(self.network) == 1 { hasNews = true }
            if count == 0, hasNews {
                hasNews = false
                self.continuation.yield()
            }
        }
    }
}
