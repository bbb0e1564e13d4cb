import CFerryLinux
import Dispatch
import Glibc

/// Tells when somebody has set the machine's clock.
///
/// A timer of the wall clock that never goes off is cancelled by each discontinuous change of that clock
/// (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET).
final class ClockWatch {
    private let source: any DispatchSourceRead

    /// Begins to watch; nil if the kernel has no timer for it, and then the clock is looked at now and then.
    init?(_ wasSet: @escaping @Sendable () -> Void) {
        let descriptor = ferry_clock_watch()
        guard descriptor >= 0 else { return nil }
        let source = DispatchSource.makeReadSource(
            fileDescriptor: descriptor,
            queue: DispatchQueue(label: "ferry.clock")
        )
        source.setEventHandler { @Sendable in
            ferry_clock_rewatch(descriptor)
            wasSet()
        }
        source.setCancelHandler { @Sendable in _ = close(descriptor) }  // nothing is written to it
        source.activate()
        self.source = source
    }

    deinit { self.source.cancel() }
}
