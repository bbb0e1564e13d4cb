/// The rate of the last minutes, a sample a second, and its picture in block characters.
struct RateGraph: Equatable, Sendable {
    /// As many as the widest screen shows.
    private static let capacity = 512
    private static let blocks: [Character] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// Bytes a second, oldest first.
    private(set) var samples: [Int64] = []

    /// Whether nothing but zeros is known, so that time does not change the picture.
    var isFlat: Bool { self.samples.allSatisfy { $0 == 0 } }

    /// Adds a sample; `seconds` since the last one in which nothing was looked at count as zero.
    mutating func add(_ rate: Int64, after seconds: Int64 = 1) {
        let missed = Int(min(max(0, seconds - 1), Int64(Self.capacity)))
        self.samples += [Int64](repeating: 0, count: missed) + [max(0, rate)]
        self.samples.removeFirst(max(0, self.samples.count - Self.capacity))
    }

    /// The rate at the top of the picture: a power of two, so that it seldom changes.
    func top(columns: Int) -> Int64 {
        let highest = min(self.samples.suffix(columns).max() ?? 0, Int64.max / 4)
        var top: Int64 = 1_024
        while top < highest { top *= 2 }
        return top
    }

    /// The picture, its newest sample at the right end; each row is `columns` wide.
    func rows(_ rows: Int, columns: Int) -> [String] {
        let shown = self.samples.suffix(max(0, columns))
        let top = self.top(columns: columns)
        let steps = rows * 8
        let heights = shown.map { sample in
            // What is not nothing is seen.
            sample == 0 ? 0 : max(1, Int(Double(sample) / Double(top) * Double(steps)))
        }
        return (0..<rows).map { row in
            let base = (rows - 1 - row) * 8
            let empty = String(repeating: " ", count: max(0, columns - heights.count))
            return empty + String(heights.map { Self.blocks[min(8, max(0, $0 - base))] })
        }
    }
}
