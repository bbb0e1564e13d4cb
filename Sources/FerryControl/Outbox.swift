/// Lines that a client has not yet been sent.
///
/// A client that does not read costs a bounded amount of memory: of progress only the latest unsent notification
/// is kept, and where events outgrow the limit the box is given up. Answers are not counted: there is one at a
/// time.
struct Outbox {
    /// What a line is to the limit.
    enum Kind {
        /// An answer, an error or a greeting.
        case answer
        /// A notification that must not be lost.
        case event
        /// A notification that a later one replaces.
        case progress
    }

    /// Bytes of events that may wait.
    private let limit: Int
    private var lines: [[UInt8]] = []
    private var eventBytes = 0
    /// The place of the one progress line in ``lines``.
    private var progress: Int?
    /// Whether events were lost, so that the connection is of no use.
    private(set) var isOverflown = false
    /// Whether the connection ends when all is sent.
    var closesWhenSent = false

    init(limit: Int) {
        self.limit = limit
    }

    /// Whether nothing waits.
    var isEmpty: Bool { self.lines.isEmpty }

    /// Adds a line with its newline.
    mutating func add(_ bytes: [UInt8], _ kind: Kind) {
        guard !self.isOverflown else { return }
        switch kind {
        case .answer:
            break
        case .event:
            self.eventBytes += bytes.count
        case .progress:
            if let progress, progress == self.lines.count - 1 {
                self.lines.removeLast()
            } else if let progress {
                self.lines[progress] = []  // later events must not come before it
            }
            self.progress = self.lines.count
        }
        self.lines.append(bytes)
        if self.eventBytes > self.limit {
            self.isOverflown = true
            self.lines = []
            self.progress = nil
        }
    }

    /// Takes out all lines, one after the other.
    mutating func take() -> [UInt8] {
        defer {
            self.lines = []
            self.eventBytes = 0
            self.progress = nil
        }
        if self.lines.count == 1 { return self.lines[0] }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(self.lines.reduce(0) { $0 + $1.count })
        for line in self.lines { bytes += line }
        return bytes
    }
}
