import FerryControl
import FerryCore

/// The lines that show running and waiting jobs: a pure function of the jobs, the terminal's size and the time.
struct ProgressView {
    /// The terminal's columns; lines take one less, so that none ever wraps.
    var columns: Int
    /// The terminal's rows.
    var rows: Int

    private static let percentColumns = 5
    private static let rateColumns = 12
    private static let leftColumns = 9
    private static let sizeColumns = 21
    /// A blank and `sent` or `acked`.
    private static let countedColumns = 6
    private static let nameMinimum = 12

    /// The lines for `jobs`, at most rows − 1 of them.
    ///
    /// `more` jobs are under way as well and only counted.
    func lines(_ jobs: [JobDocument], more: Int = 0, now: Timestamp) -> [String] {
        let room = max(1, self.rows - 1)
        var shown = jobs
        var hidden = more
        if jobs.count + (more > 0 ? 1 : 0) > room {
            shown = Array(jobs.prefix(room - 1))
            hidden += jobs.count - shown.count
        }
        // One long name must not take the room of all bars and messages.
        let longest = min(
            shown.map { TextWidth.columns(JobText.shortName($0)) }.max() ?? 0,
            max(20, self.columns / 3)
        )
        var lines = shown.map { self.line($0, nameWanted: longest, now: now) }
        if hidden > 0 {
            lines.append(TextWidth.cut("… and \(hidden) more", to: max(1, self.columns - 1)))
        }
        return lines
    }

    /// One job.
    ///
    /// `nameWanted` is the width of the longest name, so that the fields of all lines stand in line.
    func line(_ job: JobDocument, nameWanted: Int, now: Timestamp) -> String {
        let width = max(1, self.columns - 1)
        let layout = Layout(width: width, nameWanted: nameWanted, isUpload: job.kind == .upload)
        let name = TextWidth.fit(JobText.shortName(job), to: layout.name)
        guard job.state == .running || job.state == .completed else {
            return Self.trim(name + " " + JobText.status(job, now: now), to: width)
        }
        var text = name
        if layout.bar > 0 { text += " " + Self.bar(job, columns: layout.bar, now: now) }
        if layout.percent {
            text +=
                " " + TextWidth.right(JobText.percent(job).map { "\($0) %" } ?? "", to: Self.percentColumns)
        }
        if layout.sizes > 0 { text += " " + TextWidth.right(Self.sizes(job), to: layout.sizes) }
        if layout.rate { text += " " + TextWidth.right(Self.rate(job), to: Self.rateColumns) }
        if layout.left { text += " " + TextWidth.right(Self.left(job), to: Self.leftColumns) }
        return Self.trim(text, to: width)
    }

    /// Which fields fit: percent, rate, time left, sizes and a bar, in this order of worth.
    private struct Layout {
        var name: Int
        var bar = 0
        var percent = false
        var rate = false
        var left = false
        var sizes = 0

        init(width: Int, nameWanted: Int, isUpload: Bool) {
            var room = width
            func takes(_ columns: Int) -> Bool {
                guard room - columns - 1 >= min(nameMinimum, max(8, nameWanted)) else { return false }
                room -= columns + 1
                return true
            }
            self.percent = takes(percentColumns)
            self.rate = self.percent && takes(rateColumns)
            self.left = self.rate && takes(leftColumns)
            let sizes = sizeColumns + (isUpload ? countedColumns : 0)
            self.sizes = self.left && takes(sizes) ? sizes : 0
            if self.left, takes(10) {
                let spare = max(0, room - max(nameMinimum, nameWanted))
                self.bar = 10 + min(30, spare)
                room -= self.bar - 10
            }
            self.name = min(room, max(nameWanted, nameMinimum))
        }
    }

    /// `[=====>    ]`; where the size is unknown a mark that moves with time.
    private static func bar(_ job: JobDocument, columns: Int, now: Timestamp) -> String {
        let inner = columns - 2
        var cells = [Character](repeating: " ", count: inner)
        if let percent = JobText.percent(job) {
            let filled = min(inner, inner * percent / 100)
            for index in 0..<filled { cells[index] = "=" }
            if filled < inner { cells[filled] = ">" }
        } else {
            let mark = Array("<=>")
            let span = max(1, inner - mark.count)
            let step = Int((now.milliseconds / 200) % Int64(span * 2))
            let start = step < span ? step : span * 2 - step
            for (index, character) in mark.enumerated() where start + index < inner {
                cells[start + index] = character
            }
        }
        return "[" + String(cells) + "]"
    }

    private static func sizes(_ job: JobDocument) -> String {
        if job.bytesDone == 0, job.bytesTotal == nil { return "" }
        let done = JobText.size(job.bytesDone)
        let sizes = job.bytesTotal.map { "\(done)/\(JobText.size($0))" } ?? done
        guard job.state != .completed, let counted = JobText.counted(job) else { return sizes }
        return sizes + (counted == "sent" ? " sent" : " acked")
    }

    private static func rate(_ job: JobDocument) -> String {
        if job.state == .completed { return "completed" }
        switch job.phase {
        case .connecting, .verifying, .finishing: return job.phase?.rawValue ?? ""
        case .transferring, nil: return job.rateBytesPerS.map(JobText.rate) ?? ""
        }
    }

    private static func left(_ job: JobDocument) -> String {
        job.state == .completed ? "" : job.etaS.map(JobText.span) ?? ""
    }

    private static func trim(_ text: String, to width: Int) -> String {
        var text = TextWidth.cut(text, to: width)
        while text.last == " " { text.removeLast() }
        return text
    }
}
