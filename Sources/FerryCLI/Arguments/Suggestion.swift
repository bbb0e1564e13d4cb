/// Finds the word that somebody who mistyped probably meant.
enum Suggestion {
    /// The nearest of `words`, if it is near enough: up to two changes, or one in a short word.
    static func nearest(to word: String, in words: [String]) -> String? {
        let limit = word.count <= 4 ? 1 : 2
        let ranked = words.map { (word: $0, distance: Self.distance(word, $0)) }
        let best = ranked.min { $0.distance < $1.distance }
        if let best, best.distance <= limit { return best.word }
        let longer = words.filter { word.count >= 3 && $0.hasPrefix(word) }
        return longer.count == 1 ? longer.first : nil
    }

    /// The number of insertions, deletions, replacements and swaps of neighbours between two words.
    static func distance(_ left: String, _ right: String) -> Int {
        let a = Array(left)
        let b = Array(right)
        var before: [Int] = []
        var previous = Array(0...b.count)
        for i in 0..<a.count {
            var current = [i + 1]
            for j in 0..<b.count {
                var best = min(previous[j + 1] + 1, current[j] + 1, previous[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                    best = min(best, before[j - 1] + 1)
                }
                current.append(best)
            }
            before = previous
            previous = current
        }
        return previous[b.count]
    }
}
