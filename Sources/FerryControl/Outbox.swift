/// Lines that a client has not yet been sent.
///
/// A client that does not read costs a bounded amount of memory: of progress only the latest unsent notification
/// is kept, and where events outgrow the limit all of them give way to one line that says so. Answers are not
/// counted: there is one at a time.
struct Outbox {
    /// What a line is to the limit.
    enum Kind {
        /// An answer, an error or a greeting.
        case answer
        /// A notification that must not be lost unsaid.
        case event
        /// A notification that a later one replaces.
        case progress
    }

    /// Bytes of events that may wait.
    private let limit: Int
    /// The line that stands for events that were left out.
    private let overrun: [UInt8]
    private var lines: [(kind: Kind, bytes: [UInt8])] = []
    private var eventBytes = 0
    /// The place of the one progress line in ``lines``.
    private var progress: Int?
    /// Whether ``overrun`` waits; what happens until it is sent, the client learns when it asks again.
    private(set) var isOverrun = false
    /// Whether the connection ends when all is sent.
    var closesWhenSent = false

    init(limit: Int, overrun: [UInt8]) {
        self.limit = limit
        self.overrun = overrun
    }

    /// Whether nothing waits.
    var isEmpty: Bool { self.lines.isEmpty }

    /// Adds a line with its newline.
    mutating func add(_ bytes: [UInt8], _ kind: Kind) {
        switch kind {
        case .answer:
            break
        case .event:
            guard !self.isOverrun else { return }
            self.eventBytes += bytes.count
            guard self.eventBytes <= self.limit else { return self.giveWay() }
        case .progress:
            guard !self.isOverrun else { return }
            if let progress, progress == self.lines.count - 1 {
                self.lines.removeLast()
            } else if let progress {
                self.lines[progress].bytes = []  // later events must not come before it
            }
            self.progress = self.lines.count
        }
        self.lines.append((kind, bytes))
    }

    private mutating func giveWay() {
        self.lines.removeAll { $0.kind != .answer }
        self.lines.append((.event, self.overrun))
        self.progress = nil
        self.isOverrun = true
    }

    /// Takes out all lines, one after the other.
    mutating func take() -> [UInt8] {
        defer {
            self.lines = []
            self.eventBytes = 0
            self.progress = nil
            self.isOverrun = false
        }
        if self.lines.count == 1 { return self.lines[0].bytes }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(self.lines.reduce(0) { $0 + $1.bytes.count })
        for line in self.lines { bytes += line.bytes }
        return bytes
    }
}
