import FerryControl
import FerryCore

/// The lines of `ferry list`: a pure function of the jobs, the width and the time.
struct JobTable {
    /// The columns that a line may take; nil where nothing has to fit (a pipe).
    var width: Int?
    /// Colours of the states.
    var style: Style

    private struct Cell {
        var text: String
        var isRight = false
        var color: Style.Color?
    }

    /// A header, one line a job, and the counts.
    func lines(_ jobs: [JobDocument], counts: CountsDocument, now: Timestamp) -> [String] {
        let header = ["JOB", "STATE", "DONE", "SIZE", "RATE", "NAME", ""].enumerated().map { index, title in
            Cell(text: title, isRight: [0, 2, 3, 4].contains(index))
        }
        let rows = [header] + jobs.map { Self.cells($0, now: now) }
        var widths = header.indices.map { column in
            rows.map { TextWidth.columns($0[column].text) }.max() ?? 0
        }
        if let width {
            func room() -> Int { width - widths[..<5].reduce(0) { $0 + ($1 > 0 ? $1 + 2 : 0) } }
            // Rate, size and share give way to the name.
            for column in [4, 3, 2] where room() < 24 { widths[column] = 0 }
            // The name may take half of what is left, or what the remarks do not need.
            if widths[5] + 2 + widths[6] > room() { widths[5] = min(widths[5], max(10, room() / 2)) }
        }
        let lines = jobs.isEmpty ? [] : rows.map { self.line($0, widths) }
        return lines + [Self.counts(counts)]
    }

    private func line(_ cells: [Cell], _ widths: [Int]) -> String {
        var text = ""
        var used = 0
        for (column, cell) in cells.enumerated() {
            let isLast = column == cells.count - 1
            guard widths[column] > 0 else { continue }
            var wanted = isLast ? TextWidth.columns(cell.text) : widths[column]
            if let width { wanted = min(wanted, width - used) }
            guard wanted > 0 else { break }
            let aligned = cell.isRight ? TextWidth.right(cell.text, to: wanted) : cell.text
            let cut = TextWidth.cut(aligned, to: wanted)
            text +=
                self.style.paint(cut, cell.color)
                + String(repeating: " ", count: wanted - TextWidth.columns(cut))
            used += wanted
            if !isLast {
                text += "  "
                used += 2
            }
        }
        while text.last == " " { text.removeLast() }
        return text
    }

    private static func cells(_ job: JobDocument, now: Timestamp) -> [Cell] {
        let remark = Self.remark(job, now: now)
        return [
            Cell(text: "\(job.id)", isRight: true),
            Cell(text: job.state.rawValue, color: JobText.color(job.state)),
            Cell(text: JobText.percent(job).map { "\($0) %" } ?? "", isRight: true),
            Cell(text: job.bytesTotal.map(JobText.size) ?? Self.done(job), isRight: true),
            Cell(text: job.state == .running ? job.rateBytesPerS.map(JobText.rate) ?? "" : "", isRight: true),
            Cell(text: JobText.name(job)),
            Cell(text: remark),
        ]
    }

    private static func done(_ job: JobDocument) -> String {
        job.bytesDone > 0 ? JobText.size(job.bytesDone) : ""
    }

    private static func remark(_ job: JobDocument, now: Timestamp) -> String {
        guard job.state != .completed else { return "" }
        var text = job.reason?.shown ?? ""
        if let time = job.retryAt, !job.state.isEnded {
            let countdown = "again in \(JobText.span(JobText.seconds(until: time, now: now)))"
            text += text.isEmpty ? countdown : ", \(countdown)"
        }
        if let message = job.message {
            text += text.isEmpty ? message.shown : ": \(message.shown)"
        }
        return text
    }

    /// `3 queued, 1 running`, in the order of the states.
    static func counts(_ counts: CountsDocument) -> String {
        let parts = JobState.allCases.compactMap { state -> String? in
            guard let number = counts.states[state.rawValue], number > 0 else { return nil }
            return "\(number) \(state.rawValue)"
        }
        return parts.isEmpty ? "no jobs" : parts.joined(separator: ", ")
    }
}
