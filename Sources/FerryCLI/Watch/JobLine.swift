import FerryControl
import FerryCore

/// One job as a line of the screen: a pure function of the job, the width and the time.
struct JobLine {
    typealias Look = StyledLine.Look

    /// Columns for the number.
    private let number: Int
    private let name: Int
    private let bar: Int
    private let sizes: Bool
    private let rate: Bool
    private let left: Bool
    private let width: Int

    private static let percentColumns = 5
    private static let rateColumns = 12
    private static let leftColumns = 9
    private static let sizeColumns = 21

    /// Divides a width among the fields: name and percent first, then rate, time left, a bar and sizes.
    init(width: Int, numberColumns: Int) {
        self.width = width
        self.number = numberColumns
        var room = max(0, width - 1 - numberColumns - 1 - Self.percentColumns - 1)
        let name = min(max(12, room * 3 / 10), 60)
        func takes(_ columns: Int) -> Bool {
            guard room - columns - 1 >= name else { return false }
            room -= columns + 1
            return true
        }
        self.rate = takes(Self.rateColumns)
        self.left = self.rate && takes(Self.leftColumns)
        self.sizes = self.left && width >= 110 && takes(Self.sizeColumns)
        let bar = self.left ? room - name - 1 : 0
        self.bar = bar >= 8 ? bar : 0
        if self.bar > 0 { room -= self.bar + 1 }
        self.name = room
    }

    /// The line of a job, `indent` columns to the right.
    func line(_ job: JobDocument, indent: Int, now: Timestamp) -> StyledLine {
        var line = StyledLine(" " + TextWidth.right("\(job.id)", to: self.number), .dim)
        let name = TextWidth.fit(JobText.shortName(job), to: max(1, self.name - indent))
        line.add(" " + String(repeating: " ", count: indent))
        line.add(name, job.state == .running ? .bold : .plain)
        guard job.state == .running else {
            line.add(" ")
            line.add(
                Self.status(job, room: self.width - line.columns, now: now),
                Look(color: JobText.color(job.state), isDim: job.state == .queued)
            )
            return line.cut(to: self.width)
        }
        if self.bar > 0 {
            line.add(" ")
            line.add(Self.bar(job, columns: self.bar, now: now))
        }
        line.add(" " + TextWidth.right(JobText.percent(job).map { "\($0) %" } ?? "", to: Self.percentColumns))
        if self.sizes { line.add(" " + TextWidth.right(Self.sizes(job), to: Self.sizeColumns)) }
        if self.rate {
            let isMoving = job.phase == nil || job.phase == .transferring
            line.add(
                " " + TextWidth.right(Self.rate(job), to: Self.rateColumns),
                Look(color: isMoving ? .cyan : nil, isDim: !isMoving)
            )
        }
        if self.left {
            line.add(" " + TextWidth.right(job.etaS.map(JobText.span) ?? "", to: Self.leftColumns))
        }
        return line.cut(to: self.width)
    }

    /// The state of a job that does not run, with all that there is to say; where that does not fit, a narrow room
    /// has reason and countdown alone.
    static func status(_ job: JobDocument, room: Int, now: Timestamp) -> String {
        let whole = Self.status(job, now: now)
        guard TextWidth.columns(whole) > room, room < 40, let reason = job.reason?.shown else { return whole }
        guard job.state == .waiting else { return "\(job.state.rawValue): \(reason)" }
        let left = job.retryAt.map { JobText.span(JobText.seconds(until: $0, now: now)) }
        return left.map { "\(reason), \($0)" } ?? "waiting: \(reason)"
    }

    private static func status(_ job: JobDocument, now: Timestamp) -> String {
        switch job.state {
        case .completed: return "completed, \(JobText.size(job.bytesDone))"
        case .cancelled: return "cancelled"
        case .queued, .running, .waiting, .paused, .failed: break
        }
        var state = job.state.rawValue
        if job.state == .queued, job.priority != 0 { state += ", priority \(job.priority)" }
        var text = state + JobText.status(job, now: now).dropFirst(job.state.rawValue.count)
        if job.bytesDone > 0, job.state != .failed {
            let percent = JobText.percent(job).map { "\($0) %" }
            text += ", \(percent ?? JobText.size(job.bytesDone)) done"
        }
        return text
    }

    /// `━━━━━╸─────`; where the size is unknown a mark that moves with time.
    private static func bar(_ job: JobDocument, columns: Int, now: Timestamp) -> StyledLine {
        var line = StyledLine()
        let done = Look(color: .green)
        if let percent = JobText.percent(job) {
            let halves = columns * 2 * percent / 100
            line.add(String(repeating: "━", count: halves / 2) + (halves % 2 == 1 ? "╸" : ""), done)
        } else {
            let mark = min(3, columns)
            let span = max(1, columns - mark)
            let step = Int((now.milliseconds / 250) % Int64(span * 2))
            line.add(String(repeating: "─", count: step < span ? step : span * 2 - step), .dim)
            line.add(String(repeating: "━", count: mark), done)
        }
        line.add(String(repeating: "─", count: max(0, columns - line.columns)), .dim)
        return line
    }

    private static func sizes(_ job: JobDocument) -> String {
        if job.bytesDone == 0, job.bytesTotal == nil { return "" }
        let done = JobText.size(job.bytesDone)
        return job.bytesTotal.map { "\(done)/\(JobText.size($0))" } ?? done
    }

    private static func rate(_ job: JobDocument) -> String {
        switch job.phase {
        case .connecting, .verifying, .finishing: job.phase?.rawValue ?? ""
        case .transferring, nil: job.rateBytesPerS.map(JobText.rate) ?? ""
        }
    }
}
