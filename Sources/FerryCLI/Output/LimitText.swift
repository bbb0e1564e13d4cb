import FerryControl
import FerryCore

/// The lines of `ferry limit`.
enum LimitText {
    private static let set = "  (set with 'ferry limit')"

    /// One line a limit; with a host only what is about it.
    static func lines(_ limits: LimitsDocument, of host: HostPattern?) -> [String] {
        var rows: [(number: String, text: String)] = []
        func add(_ number: Int, _ text: String, isLive: Bool = false) {
            rows.append(("\(number)", text + (isLive ? Self.set : "")))
        }
        if host == nil { add(limits.running, "jobs at once", isLive: limits.runningIsLive) }
        add(limits.perHost, host == nil ? "to each host" : "to each host without a limit of its own")
        for entry in limits.hosts {
            add(entry.running, "to \(entry.host.shown)", isLive: entry.runningIsLive)
        }
        rows += limits.rates.map { ($0.bytesPerS.map(JobText.rate) ?? "no limit", Self.text($0)) }
        let width = rows.map(\.number.count).max() ?? 0
        return rows.map { TextWidth.right($0.number, to: width) + " " + $0.text }
    }

    private static func text(_ limit: RateLimitDocument) -> String {
        let direction =
            switch limit.direction {
            case .both: "down and up together"
            case .down: "down"
            case .up: "up"
            }
        let host = limit.host.map { ", \($0.shown)" } ?? ""
        let source =
            switch limit.source {
            case .live: Self.set
            case .calendar: "  (by the calendar)"
            case .configuration: ""
            }
        return direction + host + source
    }
}
