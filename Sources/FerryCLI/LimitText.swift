import FerryControl
import FerryCore

/// The lines of `ferry limit`.
enum LimitText {
    /// One line a limit; with a host only what is about it.
    static func lines(_ limits: LimitsDocument, of host: HostPattern?) -> [String] {
        let set = "  (set with 'ferry limit')"
        var rows: [(number: Int, text: String)] = []
        if host == nil {
            rows.append((limits.running, "jobs at once" + (limits.runningIsLive ? set : "")))
        }
        rows.append(
            (limits.perHost, host == nil ? "to each host" : "to each host without a limit of its own")
        )
        for entry in limits.hosts {
            rows.append((entry.running, "to \(entry.host.shown)" + (entry.runningIsLive ? set : "")))
        }
        let width = rows.map { "\($0.number)".count }.max() ?? 0
        return rows.map { TextWidth.right("\($0.number)", to: width) + " " + $0.text }
    }
}
