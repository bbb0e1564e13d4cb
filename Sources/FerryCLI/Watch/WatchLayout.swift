import FerryControl
import FerryCore

/// The whole screen: a pure function of the state and the time.
///
/// Only lines that are seen are made.
struct WatchLayout {
    typealias Look = StyledLine.Look

    /// What is shown.
    let state: WatchState
    /// For countdowns.
    let now: Timestamp
    /// How a point in time is written.
    var time: (Timestamp) -> String = JobText.time

    private var width: Int { self.state.size.width }
    private var rowCount: Int { self.state.size.rows }

    /// One line a row of the window, none wider than it.
    func lines() -> [StyledLine] {
        guard self.state.size.isEnough else {
            let least = WatchSize.smallest
            let hint = StyledLine(
                "the window is too small: \(least.columns) columns and \(least.rows) lines are needed"
            )
            return self.filled([hint], self.rowCount)
        }
        switch self.state.mode {
        case .list, .filter, .confirm:
            return self.filled([self.header] + self.graph + self.list, self.rowCount - 1) + [self.footer]
        case .details(_, let top), .help(let top):
            let lines = Array(self.page.dropFirst(top).prefix(self.rowCount - 1))
            return self.filled(lines, self.rowCount - 1) + [self.footer]
        }
    }

    private func filled(_ lines: [StyledLine], _ rows: Int) -> [StyledLine] {
        let lines = lines.prefix(max(0, rows)).map { $0.cut(to: self.width) }
        return lines + [StyledLine](repeating: StyledLine(), count: max(0, rows - lines.count))
    }

    // MARK: Totals and graph

    private var header: StyledLine {
        var right = StyledLine()
        let rate = self.state.rate
        if rate > 0 || (self.state.counts[.running] ?? 0) > 0 {
            right.add(JobText.rate(rate), Look(color: .cyan, isBold: true))
        }
        if let left = self.state.secondsLeft, self.width >= 60 { right.add(", \(JobText.span(left)) left") }
        var line = StyledLine(" ")
        let parts = Self.counts(self.state.counts)
        let room = self.width - right.columns - 1
        for part in parts {
            let separator = line.columns > 1 ? " · " : ""
            guard line.columns + separator.count + part.columns <= room else { break }
            line.add(separator, .dim)
            line.add(part)
        }
        if parts.isEmpty { line.add("no jobs", .dim) }
        line.add(right, endingAt: self.width)
        return line
    }

    /// `3 running`, `1 failed`, … in the order of worth.
    private static func counts(_ counts: [JobState: Int64]) -> [StyledLine] {
        let order: [JobState] = [.running, .waiting, .failed, .paused, .queued]
        return order.compactMap { state in
            guard let count = counts[state], count > 0 else { return nil }
            return StyledLine(
                "\(count) \(state.rawValue)",
                Look(color: JobText.color(state), isBold: state == .running)
            )
        }
    }

    private var graph: [StyledLine] {
        let rows = self.state.size.graphRows
        guard rows > 0 else { return [] }
        let label = 12
        let columns = max(0, self.width - label - 1)
        let top = JobText.rate(self.state.graph.top(columns: columns))
        return self.state.graph.rows(rows, columns: columns).enumerated().map { row, picture in
            let text = row == 0 ? top : row == rows - 1 ? "0" : ""
            var line = StyledLine(TextWidth.right(text, to: label) + " ", .dim)
            line.add(picture, Look(color: .cyan))
            return line
        }
    }

    // MARK: The list

    private var list: [StyledLine] {
        guard !self.state.rows.isEmpty else {
            let hint =
                !self.state.filter.isEmpty
                ? "nothing has '\(self.state.filter.shown)' in its name, host, group or state"
                : "nothing is queued; 'ferry add URL' queues a download"
            return [StyledLine(), StyledLine("  \(hint)", .dim)]
        }
        let fields = JobLine(width: self.width, numberColumns: self.state.numberColumns)
        let end = min(self.state.rows.count, self.state.top + self.state.size.listRows)
        return (self.state.top..<end).map { place in
            var line = self.line(self.state.rows[place], fields)
            guard place == self.state.cursor else { return line }
            // The mark tells the chosen line where reverse video does not show.
            var chosen = StyledLine(">")
            chosen.add(line.withoutFirstColumn)
            line = chosen
            line.pad(to: self.width)
            line.isReversed = true
            return line
        }
    }

    private func line(_ row: WatchState.Row, _ fields: JobLine) -> StyledLine {
        switch row {
        case .job(let id):
            guard let job = self.state.jobs[id] else { return StyledLine() }
            return fields.line(job, indent: job.group == nil ? 0 : 2, now: self.now)
        case .more(let group):
            let indent = String(repeating: " ", count: self.state.numberColumns + (group == nil ? 2 : 4))
            let count = self.state.hidden(in: group).map { "\($0) more" } ?? "more may be"
            let hint =
                self.state.limit < WatchState.mostJobs
                ? "" : "; / finds them, and 'ferry list --state queued' shows all"
            return StyledLine("\(indent)… \(count) queued\(hint)", .dim)
        case .group(let name):
            return self.heading(name)
        }
    }

    private func heading(_ name: String) -> StyledLine {
        let sums = self.state.totals(of: name)
        var right = StyledLine()
        if let total = sums.total, self.width >= 75 {
            right.add("\(JobText.size(sums.done))/\(JobText.size(total))")
        }
        if sums.rate > 0 {
            right.add(right.columns > 0 ? "  " : "")
            right.add(JobText.rate(sums.rate), Look(color: .cyan))
        }
        if let left = sums.secondsLeft, self.width >= 60 {
            right.add(TextWidth.right(JobText.span(left), to: 10))
        }
        var line = StyledLine(self.state.collapsed.contains(name) ? " ▸ " : " ▾ ")
        line.add(TextWidth.cut(name.shown, to: max(8, self.width / 3)), .bold)
        let room = self.width - right.columns - 1
        for (index, part) in Self.counts(self.state.groups[name] ?? [:]).enumerated() {
            let separator = index == 0 ? "  " : " · "
            guard line.columns + separator.count + part.columns <= room else { break }
            line.add(separator, .dim)
            line.add(part)
        }
        line.add(right, endingAt: self.width)
        return line
    }

    // MARK: The last line

    private var footer: StyledLine {
        let place = StyledLine(self.state.cursor.map { "\($0 + 1)/\(self.state.rows.count)" } ?? "", .dim)
        var line = StyledLine()
        switch self.state.mode {
        case .filter:
            // The end of a long text is what is being typed.
            let text = self.state.filter.shown
            let room = self.width - 3
            var shown = Substring(text)
            while TextWidth.columns(String(shown)) > room { shown = shown.dropFirst() }
            line.add(" /", .bold)
            line.add(String(shown))
            line.add("█", .dim)
        case .confirm(let question, _, _):
            let choice = " y/n"
            line.add(
                " " + TextWidth.cut(question, to: self.width - choice.count - 1),
                Look(color: .yellow, isBold: true)
            )
            line.add(choice, .bold)
        case .details, .help:
            let more = self.page.count > self.rowCount - 1 ? "  arrows scroll" : ""
            line.add(" Esc back\(more)  q quit", .dim)
        case .list:
            if let notice = self.state.notice {
                line.add(" " + notice.text, Look(color: notice.isError ? .red : .yellow))
            } else if !self.state.filter.isEmpty {
                line.add(" /\(self.state.filter.shown)", .bold)
                line.add("  Esc takes the filter away", .dim)
            } else if self.state.runsNothing {
                line.add(" nothing runs these jobs; 'ferry run' does", Look(color: .yellow))
                line.add("  ? help  q quit", .dim)
            } else {
                let room = self.width - place.columns - 1
                let keys = [Self.longKeys, Self.middleKeys, Self.shortKeys].first { $0.utf8.count <= room }
                line.add(keys ?? "", .dim)
            }
            line.add(place, endingAt: self.width)
        }
        return line.cut(to: self.width)
    }

    private static let longKeys = " space pause  c cancel  r retry  / filter  Enter details  ? help  q quit"
    private static let middleKeys = " space pause  c cancel  / filter  ? help  q quit"
    private static let shortKeys = " / filter  ? help  q quit"

    // MARK: Pages

    /// All lines of the page that is shown in place of the list.
    var page: [StyledLine] {
        switch self.state.mode {
        case .help:
            let title = [StyledLine(" Keys", .bold), StyledLine()]
            let column = self.width >= 60 ? 18 : 15
            return title
                + WatchState.help.flatMap { entry in
                    self.wrapped(TextWidth.fit(" " + entry.keys, to: column), entry.what)
                }
        case .details: return self.detailsPage
        case .list, .filter, .confirm: return []
        }
    }

    private var detailsPage: [StyledLine] {
        let details = self.state.details
        guard let job = details.job else { return [StyledLine(" the job is no longer in the queue", .dim)] }
        let facts = JobDetails.lines(job, now: self.now, time: self.time).flatMap { line in
            let colon = line.firstIndex(of: ":").map { line.index(after: $0) } ?? line.startIndex
            let value = line[colon...].drop { $0 == " " }
            return self.wrapped(TextWidth.fit(" " + line[..<colon], to: 13), String(value))
        }
        let log = JobDetails.log(
            details.attempts.suffix(10),
            details.events.suffix(20),
            of: details.job?.kind ?? .download,
            time: self.time
        )
        guard !log.isEmpty else { return facts }
        return facts + [StyledLine(), StyledLine(" last attempts and events", .bold)]
            + log.flatMap { line in
                let indent = line.prefix { $0 == " " }.count + 1
                return self.wrapped(String(repeating: " ", count: indent), String(line.dropFirst(indent - 1)))
            }
    }

    /// A text in as many lines as it needs, below each other behind its key.
    private func wrapped(_ key: String, _ text: String) -> [StyledLine] {
        let room = max(8, self.width - TextWidth.columns(key))
        var lines: [StyledLine] = []
        var rest = Substring(text)
        repeat {
            var end = rest.startIndex
            var columns = 0
            while end < rest.endIndex, columns + TextWidth.columns(rest[end]) <= room {
                columns += TextWidth.columns(rest[end])
                end = rest.index(after: end)
            }
            // Words stay whole where the line is not left half empty.
            if end < rest.endIndex, rest[end] != " ", let space = rest[..<end].lastIndex(of: " "),
                rest.distance(from: rest.startIndex, to: space) > room / 2
            {
                end = space
            }
            let isFirst = lines.isEmpty
            var line = StyledLine(isFirst ? key : String(repeating: " ", count: TextWidth.columns(key)), .dim)
            line.add(String(rest[..<end]))
            lines.append(line)
            rest = rest[end...].drop { $0 == " " }
        } while !rest.isEmpty
        return lines
    }
}
