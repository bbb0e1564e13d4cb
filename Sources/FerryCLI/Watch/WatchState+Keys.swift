import FerryControl
import FerryCore

extension WatchState {
    /// The keys and what they do, as help shows them.
    static let help: [(keys: String, what: String)] = [
        ("Up Down, k j", "choose a line"),
        ("PgUp PgDn", "a screen up or down"),
        ("Home End", "the first or the last line"),
        ("Enter", "all about the job; fold or unfold the group"),
        ("Left Right", "fold or unfold the group"),
        ("space", "pause the job or the group, or go on with it"),
        ("c", "cancel it, after a question"),
        ("r", "try it again now"),
        ("+ -", "run the job before or after others"),
        ("/", "show only what has these words in name, host, group or state"),
        ("Esc", "leave; take the filter away"),
        ("Ctrl-L", "draw all anew"),
        ("? h", "this help"),
        ("q", "quit; the queue goes on as it is"),
    ]

    /// Takes a key.
    mutating func press(_ key: Key, now: Timestamp) -> [Action] {
        if key == .redraw { return [.redraw] }
        switch self.mode {
        case .list: return self.pressInList(key, now: now)
        case .filter(let before): return self.pressInFilter(key, before: before)
        case .confirm(_, let action, let selector):
            self.mode = .list
            return [.character("y"), .character("Y")].contains(key) ? [.steer(action, selector)] : []
        case .details(let job, let top):
            if let top = self.scrolled(key, from: top) {
                self.mode = .details(job, top: top)
                return []
            }
            return self.leave(key)
        case .help(let top):
            if let top = self.scrolled(key, from: top) {
                self.mode = .help(top: top)
                return []
            }
            return self.leave(key)
        }
    }

    /// What every page that is not the list does with keys that do not scroll it.
    private mutating func leave(_ key: Key) -> [Action] {
        switch key {
        case .character("q"): return [.quit]
        case .escape, .enter, .left, .backspace, .character("?"), .character("h"): self.mode = .list
        default: break
        }
        return []
    }

    /// The first line of a page after a key; nil for a key that does not scroll.
    private func scrolled(_ key: Key, from top: Int) -> Int? {
        let page = max(1, self.size.rows - 2)
        // How many lines a page has is not a matter of the time.
        let lines = WatchLayout(state: self, now: Timestamp(milliseconds: 0)).page.count
        let last = max(0, lines - (self.size.rows - 1))
        let wanted: Int
        switch key {
        case .up, .character("k"): wanted = top - 1
        case .down, .character("j"): wanted = top + 1
        case .pageUp: wanted = top - page
        case .pageDown, .character(" "): wanted = top + page
        case .home, .character("g"): wanted = 0
        case .end, .character("G"): wanted = last
        default: return nil
        }
        return min(max(0, wanted), last)
    }

    private mutating func pressInFilter(_ key: Key, before: String) -> [Action] {
        switch key {
        case .enter:
            self.mode = .list
            return []
        case .escape:
            self.mode = .list
            return self.setFilter("")
        case .backspace:
            if self.filter.isEmpty {
                self.mode = .list
                return []
            }
            return self.setFilter(String(self.filter.dropLast()))
        case .clearLine: return self.setFilter("")
        case .character(let character) where self.filter.count < 200:
            return self.setFilter(self.filter + String(character))
        case .up, .down, .pageUp, .pageDown: return self.move(key)
        default: return []
        }
    }

    private mutating func setFilter(_ text: String) -> [Action] {
        guard text != self.filter else { return [] }
        self.filter = text
        self.arrange()
        // What is known is narrowed at once; the service may know more jobs that fit.
        return [.refresh]
    }

    private mutating func pressInList(_ key: Key, now: Timestamp) -> [Action] {
        self.clearNotice()
        switch key {
        case .up, .down, .pageUp, .pageDown, .home, .end: return self.move(key)
        case .character("k"): return self.move(.up)
        case .character("j"): return self.move(.down)
        case .character("g"): return self.move(.home)
        case .character("G"): return self.move(.end)
        case .character("q"), .character("Q"): return [.quit]
        case .character("?"), .character("h"): self.mode = .help(top: 0)
        case .character("/"): self.mode = .filter(before: self.filter)
        case .escape:
            if !self.filter.isEmpty { return self.setFilter("") }
            self.choose(nil)
        case .left: self.fold(true)
        case .right: self.fold(false)
        case .enter: return self.open()
        case .character(" "): return self.pauseOrResume(now)
        case .character("c"): self.askToCancel(now)
        case .character("r"): return self.retry(now)
        case .character("+"), .character("="): return self.prioritize(1, now)
        case .character("-"): return self.prioritize(-1, now)
        case .character, .backspace, .clearLine, .redraw: break
        }
        return []
    }

    // MARK: The cursor

    private mutating func move(_ key: Key) -> [Action] {
        let page = max(1, self.size.listRows - 1)
        let last = self.rows.count - 1
        let place: Int =
            switch key {
            case .up: (self.cursor ?? 1) - 1
            case .down: (self.cursor ?? self.top - 1) + 1
            case .pageUp: (self.cursor ?? 0) - page
            case .pageDown: (self.cursor ?? self.top) + page
            case .end: last
            default: 0
            }
        self.choose(last < 0 ? nil : min(max(0, place), last))
        if case .home = key, self.limit != Self.fewJobs {
            self.limit = Self.fewJobs
            return [.refresh]
        }
        // At a line that stands for more jobs they are asked for.
        if case .some(.more) = self.chosen, self.limit < Self.mostJobs {
            self.limit = min(Self.mostJobs, self.limit * 4)
            return [.refresh]
        }
        return []
    }

    private mutating func fold(_ closes: Bool) {
        var name: String?
        switch self.chosen {
        case .group(let group): name = group
        case .job(let id): name = self.jobs[id]?.group
        case .more(let group): name = group
        case nil: break
        }
        guard let name else { return }
        if closes {
            self.collapsed.insert(name)
            self.arrange()
            self.choose(self.rows.firstIndex(of: .group(name)))
        } else {
            self.collapsed.remove(name)
            self.arrange()
        }
    }

    private mutating func open() -> [Action] {
        switch self.chosen {
        case .job(let id):
            self.details = Details(job: self.jobs[id])
            self.mode = .details(id, top: 0)
            return [.look(id)]
        case .group(let name):
            self.fold(!self.collapsed.contains(name))
        case .more, nil: break
        }
        return []
    }

    // MARK: Steering

    private mutating func pauseOrResume(_ now: Timestamp) -> [Action] {
        switch self.chosen {
        case .job(let id):
            guard let job = self.jobs[id] else { return [] }
            switch job.state {
            case .queued, .running, .waiting: return [.steer(.pause, Selector(jobs: [id]))]
            case .paused: return [.steer(.resume, Selector(jobs: [id]))]
            case .failed: self.say("job \(id) has failed; r tries it again", now: now)
            case .completed, .cancelled: self.say("job \(id) is \(job.state.rawValue)", now: now)
            }
        case .group(let name):
            let counts = self.groups[name] ?? [:]
            let isActive = [JobState.queued, .running, .waiting].contains { (counts[$0] ?? 0) > 0 }
            return [.steer(isActive ? .pause : .resume, Selector(groups: [name]))]
        case .more, nil:
            self.say("choose a job first, with the arrow keys", now: now)
        }
        return []
    }

    private mutating func askToCancel(_ now: Timestamp) {
        switch self.chosen {
        case .job(let id):
            guard let job = self.jobs[id], !job.state.isFinal else {
                return self.say("job \(id) is over already", now: now)
            }
            let question = "cancel job \(id), \(JobText.shortName(job)), and remove its partial file?"
            self.mode = .confirm(question: question, .cancel, Selector(jobs: [id]))
        case .group(let name):
            let open = (self.groups[name] ?? [:]).filter { !$0.key.isFinal }.values.reduce(0, +)
            let question = "cancel all \(open) jobs of group \(name.shown)?"
            self.mode = .confirm(question: question, .cancel, Selector(groups: [name]))
        case .more, nil:
            self.say("choose a job first, with the arrow keys", now: now)
        }
    }

    private mutating func prioritize(_ step: Int, _ now: Timestamp) -> [Action] {
        guard case .job(let id) = self.chosen, let job = self.jobs[id] else {
            self.say("choose a job first, with the arrow keys", now: now)
            return []
        }
        guard !job.state.isEnded else {
            self.say("job \(id) is \(job.state.rawValue); + and - are for jobs that are not over", now: now)
            return []
        }
        let priority = min(max(job.priority + step, -100), 100)
        guard priority != job.priority else {
            self.say("job \(id) has priority \(priority), which is as far as it goes", now: now)
            return []
        }
        self.jobs[id]?.priority = priority  // the next key counts from it, before the service has answered
        return [.prioritize(id, priority)]
    }

    private mutating func retry(_ now: Timestamp) -> [Action] {
        switch self.chosen {
        case .job(let id):
            guard let job = self.jobs[id] else { return [] }
            if job.state == .failed || job.state == .waiting {
                return [.steer(.retry, Selector(jobs: [id]))]
            }
            self.say("job \(id) is \(job.state.rawValue); r is for failed and waiting jobs", now: now)
        case .group(let name):
            return [.steer(.retry, Selector(groups: [name]))]
        case .more, nil:
            self.say("choose a job first, with the arrow keys", now: now)
        }
        return []
    }
}
