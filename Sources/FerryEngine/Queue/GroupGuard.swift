import CFerryLinux
import Glibc

/// Kills a process group when this process has ended, however it did.
///
/// A process of its own that holds one end of a pipe: the kernel closes the other one with its owner. That of a parent's
/// death (PR_SET_PDEATHSIG) would reach the program alone and none that it has started. Where none can be made the
/// program runs without, and ends by itself.
struct GroupGuard: ~Copyable {
    private let process: pid_t
    private var pipe: Int32 = -1

    /// Starts a guard that has nothing to watch yet.
    init() {
        self.process = ferry_guard(&self.pipe)
    }

    /// Gives it a group to watch.
    func watch(_ group: pid_t) {
        guard self.process > 0 else { return }
        var group = group
        // Fewer bytes than PIPE_BUF into an empty pipe; it fails only if somebody has killed the guard.
        _ = write(self.pipe, &group, MemoryLayout<pid_t>.size)
    }

    /// Leaves the group alone.
    func dismiss() { self.watch(0) }

    deinit {
        guard self.process > 0 else { return }
        close(self.pipe)
        while waitpid(self.process, nil, 0) < 0, errno == EINTR {}
    }
}
