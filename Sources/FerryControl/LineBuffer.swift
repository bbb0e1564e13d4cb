import Glibc

/// Bytes from a stream, cut into lines; keeps the half line at the end.
struct LineBuffer {
    /// What ``LineBuffer/next()`` found.
    enum Next: Equatable {
        /// A line without its newline.
        case line([UInt8])
        /// No whole line is there.
        case none
        /// The line, whole or not, is longer than the limit.
        case overLimit
    }

    /// The longest line taken, in bytes; nil takes any.
    private let limit: Int?
    private var bytes: [UInt8] = []
    /// Where the next line begins.
    private var start = 0
    /// Where no newline has been looked for yet.
    private var searched = 0

    init(limit: Int?) {
        self.limit = limit
    }

    /// Whether ``next()`` would give something other than `none`.
    private(set) var hasNext = false

    /// Bytes that are held.
    var count: Int { self.bytes.count - self.start }

    /// Adds bytes at the end.
    mutating func append(_ new: UnsafeRawBufferPointer) {
        if self.start > 0, self.start == self.bytes.count || self.start > 1 << 20 {
            self.bytes.removeSubrange(0..<self.start)
            self.searched -= self.start
            self.start = 0
        }
        self.bytes.append(contentsOf: new)
        if !self.hasNext { self.search() }
    }

    /// Takes the next line out; empty lines are passed over.
    mutating func next() -> Next {
        while self.hasNext {
            let length = self.searched - self.start
            if let limit, length > limit { return .overLimit }
            let line = Array(self.bytes[self.start..<self.searched])
            self.start = self.searched + 1
            self.searched = self.start
            self.search()
            if !line.isEmpty { return .line(line) }
        }
        return .none
    }

    /// Moves ``searched`` to the next newline, or to the end where there is none.
    private mutating func search() {
        let found = self.bytes.withUnsafeBytes { bytes -> Int? in
            guard let base = bytes.baseAddress, self.searched < bytes.count else { return nil }
            let newline = Int32(UInt8(ascii: "\n"))
            return memchr(base + self.searched, newline, bytes.count - self.searched).map {
                $0 - UnsafeMutableRawPointer(mutating: base)
            }
        }
        self.searched = found ?? self.bytes.count
        let isOver = self.limit.map { self.searched - self.start > $0 } ?? false
        self.hasNext = found != nil || isOver
    }
}
