import CFerryLinux
import Glibc

/// A terminal that keys are read from and a screen is drawn on; given back when the process leaves it in any way.
final class Terminal {
    /// What happened to it.
    struct Events: Equatable, Sendable {
        /// The window may have another size.
        var isResized: Bool
        /// What was drawn is lost.
        var isLost: Bool
    }

    /// Keys, for poll(2).
    let input: Int32
    /// Readable when there are ``events()``.
    let wake: Int32
    private let output: Output
    private let ownsInput: Bool

    /// Takes over the terminal of `output`; keys come from standard input, or from the controlling terminal where
    /// that is something else.
    ///
    /// Nil where there is no way to get keys.
    init?(output: Output) {
        let standardInput: Int32 = 0
        self.ownsInput = isatty(standardInput) == 0
        self.input = self.ownsInput ? open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY) : standardInput
        self.wake = ferry_eventfd()
        self.output = output
        output.flush()
        guard self.input >= 0, self.wake >= 0,
            ferry_terminal_enter(
                self.input,
                output.descriptor,
                self.wake,
                ScreenWriter.enter,
                ScreenWriter.leave
            ) == 0
        else {
            self.close()
            return nil
        }
    }

    /// The window's size; 0 by 0 where the terminal does not know it.
    var size: WatchSize {
        WatchSize(
            columns: Int(ferry_terminal_columns(self.output.descriptor)),
            rows: Int(ferry_terminal_rows(self.output.descriptor))
        )
    }

    /// What happened since the last call.
    func events() -> Events {
        ferry_eventfd_clear(self.wake)
        let events = ferry_terminal_events()
        return Events(
            isResized: events & Int32(FERRY_TERMINAL_RESIZED) != 0,
            isLost: events & Int32(FERRY_TERMINAL_LOST) != 0
        )
    }

    /// The bytes that have come, empty after an interruption; nil if the terminal has gone.
    func read() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = Glibc.read(self.input, &buffer, buffer.count)
        if count > 0 { return Array(buffer[..<count]) }
        return count < 0 && (errno == EINTR || errno == EAGAIN) ? [] : nil
    }

    /// Gives the terminal back; may be repeated.
    func leave() {
        ferry_terminal_leave()
    }

    deinit {
        self.leave()
        self.close()
    }

    private func close() {
        if self.ownsInput, self.input >= 0 { Glibc.close(self.input) }
        if self.wake >= 0 { Glibc.close(self.wake) }
    }
}
