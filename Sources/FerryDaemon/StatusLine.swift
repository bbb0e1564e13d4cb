import FerryCore
import FerryEngine

/// Keeps the status that `systemctl status` shows: told on a change, at most once a second, and never while
/// nothing happens.
actor StatusLine {
    private static let interval = Duration.seconds(1)
    private let notify: NotifySocket
    private let engine: Engine
    private var isTelling = false
    private var hasNews = false
    private var told = ""
    private var isOver = false

    init(_ notify: NotifySocket, _ engine: Engine) {
        self.notify = notify
        self.engine = engine
    }

    /// Says that something has changed.
    func changed() {
        guard self.notify.isUsed, !self.isOver else { return }
        self.hasNews = true
        guard !self.isTelling else { return }
        self.isTelling = true
        Task { await self.tell() }
    }

    /// Tells no more: the service stops.
    func end() {
        self.isOver = true
    }

    /// The line as it is now.
    func text() async -> String {
        // A database that refuses is told by the log; the line then speaks of what runs.
        let counts = (try? await self.engine.counts()) ?? [:]
        let progress = await self.engine.progress()
        let rate = progress.compactMap(\.rate).reduce(0, +)
        return Self.text(counts, running: progress.count, rate: rate)
    }

    /// Tells until nothing runs and nothing has changed.
    private func tell() async {
        while true {
            self.hasNews = false
            let text = await self.text()
            if text != self.told, !self.isOver {
                self.told = text
                self.notify.send(.status(text))
            }
            try? await Task.sleep(for: Self.interval)  // nobody cancels this task
            guard !self.isOver, await !self.engine.progress().isEmpty || self.hasNews else { break }
        }
        self.isTelling = false
    }

    /// `3 running, 12 queued, 4.2 MiB/s`.
    static func text(_ counts: [JobState: Int64], running: Int, rate: Int64) -> String {
        var parts: [String] = []
        if running > 0 { parts.append("\(running) running") }
        for state in [JobState.queued, .waiting, .paused, .failed] {
            if let count = counts[state], count > 0 { parts.append("\(count) \(state.rawValue)") }
        }
        if running > 0, rate > 0 { parts.append(ByteCount.rate(rate)) }
        return parts.isEmpty ? "nothing to do" : parts.joined(separator: ", ")
    }
}
