import CFerryLinux
import FerryCore
import Glibc

/// An eventfd by which other threads end a thread's poll(2).
final class WakeUp: Sendable {
    /// Readable after ``signal()``.
    let descriptor: Int32

    init() throws(FerryError) {
        self.descriptor = ferry_eventfd()
        guard self.descriptor >= 0 else {
            throw FerryError(
                .localIO,
                "cannot make an eventfd: \(SystemFailure.words(errno))",
                exitStatus: .failed
            )
        }
    }

    deinit {
        close(self.descriptor)
    }

    /// Ends the present or the next wait; from any thread.
    func signal() {
        ferry_eventfd_signal(self.descriptor)
    }

    /// Makes it unreadable again.
    func clear() {
        ferry_eventfd_clear(self.descriptor)
    }
}
