import FerryCore
import Glibc
import Synchronization

/// Kills the process at a named gap when a crash test asks for it; see ``CrashPoint``.
public final class CrashPoints: Sendable {
    private let point: CrashPoint?
    private let left: Atomic<Int>

    /// Reads `name` or `name:3` (the third time); nil, or a name that is none, kills nowhere.
    public init(_ text: String?) {
        let parts = (text ?? "").split(separator: ":")
        self.point = parts.first.flatMap { CrashPoint(rawValue: String($0)) }
        self.left = Atomic(parts.count > 1 ? Int(parts[1]) ?? 1 : 1)
    }

    /// Says that a gap is reached.
    func reach(_ point: CrashPoint) {
        guard point == self.point, self.left.subtract(1, ordering: .relaxed).newValue == 0 else { return }
        kill(getpid(), SIGKILL)
    }
}
