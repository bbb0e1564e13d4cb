/// The exit statuses of `ferry` and `ferryd`, one table for both.
public enum ExitStatus: Int32, Sendable, Codable, CaseIterable {
    /// All that was asked is done, or was so already.
    case success = 0
    /// None of it could be done; an unknown job; `-o` exists; the folder cannot be used.
    case failed = 1
    /// Wrong use, known without the network; nothing was queued.
    case usage = 2
    /// Ended, but some items failed.
    case partlyFailed = 3
    /// Not finished: a time-out, or only paused jobs are left.
    case notFinished = 4
    /// No service can be reached or started, or it is silent.
    case noService = 10
    /// Service and command do not understand each other's versions.
    case versionMismatch = 11
    /// The job database is damaged or cannot be written.
    case database = 12
}
