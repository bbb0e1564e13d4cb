import CFerryLinux
import FerryCore
import Glibc

/// The signals that a command which stays waits for together with its socket.
struct Signals {
    /// For poll(2); -1 if it could not be made, and then signals act as they do by default.
    let descriptor: Int32
    private let ending: [Int32]

    /// Blocks and collects SIGINT, SIGTERM and SIGHUP, except where the caller ignores them (nohup(1)), and
    /// SIGWINCH and SIGUSR1.
    init() {
        self.ending = [SIGINT, SIGTERM, SIGHUP].filter { !Self.isIgnored($0) }
        let signals = self.ending + [SIGWINCH, SIGUSR1]
        self.descriptor = ferry_signalfd(signals, Int32(signals.count))
    }

    /// Lets the ending signals act by themselves while `body` blocks, so that nobody is kept waiting.
    func lettingThrough<Result>(
        _ body: () throws(FerryError) -> Result
    ) throws(FerryError) -> Result {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in self.ending { sigaddset(&set, signal) }
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        defer { pthread_sigmask(SIG_BLOCK, &set, nil) }
        return try body()
    }

    /// The next signal that has come, nil where none has.
    func next() -> Int32? {
        guard self.descriptor >= 0 else { return nil }
        let signal = ferry_signalfd_read(self.descriptor)
        return signal > 0 ? signal : nil
    }

    private static func isIgnored(_ signal: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(signal, nil, &action) == 0 else { return false }
        // SIG_IGN is the address 1 (signal.h).
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }
}
