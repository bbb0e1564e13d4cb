import CFerryLinux
import Glibc

/// A thread that waits for the kernel to tell of the network and the clocks; it never runs otherwise.
///
/// rtnetlink(7) tells of interfaces, addresses and routes, a timer that is never due of the wall clock and of sleep
/// (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). Where the kernel refuses the one or the other, only the timers of
/// those who wait are left.
final class MachineWatch: Sendable {
    /// A change of the network is rarely alone: those that follow within this time are told with it.
    private static let quietMilliseconds: Int32 = 1_000

    private let network = ferry_network_watch()
    private let clock = ferry_sleep_watch()
    private let end = ferry_eventfd()
    private let continuation: AsyncStream<Machine.Event>.Continuation

    private init(_ continuation: AsyncStream<Machine.Event>.Continuation) {
        self.continuation = continuation
    }

    deinit {
        for descriptor in [self.network, self.clock, self.end] where descriptor >= 0 { close(descriptor) }
    }

    /// Starts the thread, which ends with the stream.
    static func events() -> AsyncStream<Machine.Event> {
        let (stream, continuation) = AsyncStream.makeStream(of: Machine.Event.self)
        let watch = MachineWatch(continuation)
        guard watch.end >= 0 else {
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
                ferry_name_thread("ferry-machine")
                Unmanaged<MachineWatch>.fromOpaque(context).takeRetainedValue().run()
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
            // A negative descriptor is passed over (poll(2)).
            var waits = [self.end, self.network, self.clock].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            let count = poll(&waits, nfds_t(waits.count), hasNews ? Self.quietMilliseconds : -1)
            if count < 0, errno != EINTR { return self.continuation.finish() }
            if waits[0].revents != 0 { return }
            if waits[2].revents != 0 {
                ferry_sleep_watch_read(self.clock)
                self.continuation.yield(.clockChanged)
            }
            if waits[1].revents != 0 {
                if ferry_network_watch_read(self.network) == 1 { hasNews = true }
            }
            if count == 0, hasNews {
                hasNews = false
                self.continuation.yield(.networkChanged)
            }
        }
    }
}
