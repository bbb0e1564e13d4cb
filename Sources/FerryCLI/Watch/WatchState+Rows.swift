import FerryControl
import FerryCore

extension WatchState {
    /// The lines of the list: jobs without a group first, then each group below its heading.
    func listRows() -> [Row] {
        let words = self.words
        var sections: [String?: [JobDocument]] = [:]
        for job in self.jobs.values where Self.matches(job, words) {
            sections[job.group, default: []].append(job)
        }
        var rows = self.section(nil, sections[nil] ?? [])
        let names = Set(sections.keys.compactMap { $0 })
            .union(words.isEmpty ? self.groups.filter { Self.isOpen($0.value) }.keys : [:].keys)
        for name in names.sorted() {
            rows.append(.group(name))
            if !self.collapsed.contains(name) { rows += self.section(name, sections[name] ?? []) }
        }
        return rows
    }

    /// Whether all words are found in a job's name, URL, group or state.
    static func matches(_ job: JobDocument, _ words: [String]) -> Bool {
        guard !words.isEmpty else { return true }
        let texts = [job.url, job.path ?? "", JobText.shortName(job), job.group ?? "", job.state.rawValue]
            .map { $0.lowercased() }
        return words.allSatisfy { word in texts.contains { $0.contains(word) } }
    }

    /// What is at work first, then what a person has to see to, what comes next, and what has ended.
    private static func rank(_ state: JobState) -> Int {
        switch state {
        case .running: 0
        case .waiting: 1
        case .failed: 2
        case .paused: 3
        case .queued: 4
        case .completed, .cancelled: 5
        }
    }

    private static func isBefore(_ one: JobDocument, _ other: JobDocument) -> Bool {
        let ranks = (Self.rank(one.state), Self.rank(other.state))
        guard ranks.0 == ranks.1 else { return ranks.0 < ranks.1 }
        if one.state == .queued, one.priority != other.priority { return one.priority > other.priority }
        if one.state.isFinal, let ended = one.finishedAt, let otherEnded = other.finishedAt,
            ended != otherEnded
        {
            return ended > otherEnded
        }
        return one.id < other.id
    }

    private func section(_ name: String?, _ jobs: [JobDocument]) -> [Row] {
        let sorted = jobs.sorted(by: Self.isBefore)
        var rows = sorted.map { Row.job($0.id) }
        if self.hidden(in: name) != 0 {
            let place = sorted.lastIndex { !$0.state.isFinal }.map { $0 + 1 } ?? 0
            rows.insert(.more(group: name), at: place)
        }
        return rows
    }

    /// How many queued jobs of a group (nil: of none) are not among those known; nil if it cannot be told.
    func hidden(in group: String?) -> Int64? {
        guard self.jobIDs.isEmpty else { return 0 }
        let queued = self.jobs.values.filter { $0.state == .queued }
        guard self.words.isEmpty else {
            // Words change no counter: there may be more where the answer is as long as an answer gets.
            return group == nil && queued.count >= self.limit ? nil : 0
        }
        let known = Int64(queued.count { $0.group == group })
        if let group { return max(0, (self.groups[group]?[.queued] ?? 0) - known) }
        guard self.groupNames.isEmpty else { return 0 }
        let grouped = self.groups.values.reduce(0) { $0 + ($1[.queued] ?? 0) }
        return max(0, (self.counts[.queued] ?? 0) - grouped - known)
    }

    private static func isOpen(_ counts: [JobState: Int64]) -> Bool {
        counts.contains { !$0.key.isEnded && $0.value > 0 }
    }

    /// What is known of a group's jobs together.
    func totals(of group: String) -> (rate: Int64, done: Int64, total: Int64?, secondsLeft: Int64?) {
        let jobs = self.jobs.values.filter { $0.group == group && !$0.state.isEnded }
        let rate = jobs.reduce(0) { $0 + ($1.state == .running ? $1.rateBytesPerS ?? 0 : 0) }
        let done = jobs.reduce(0) { $0 + $1.bytesDone }
        // One size that is not known leaves the sum unknown.
        let isWhole = self.hidden(in: group) == 0 && jobs.allSatisfy { $0.bytesTotal != nil }
        let total = isWhole && !jobs.isEmpty ? jobs.reduce(0) { $0 + ($1.bytesTotal ?? 0) } : nil
        let left = total.flatMap { rate > 0 ? max(0, $0 - done) / rate : nil }
        return (rate, done, total, left)
    }
}
