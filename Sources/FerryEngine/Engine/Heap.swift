/// A priority queue: the least element comes first, each step costs the logarithm of their number.
struct Heap<Element: Comparable> {
    private var items: [Element] = []

    /// How many there are.
    var count: Int { self.items.count }
    /// The least.
    var first: Element? { self.items.first }

    /// Adds one.
    mutating func insert(_ element: Element) {
        self.items.append(element)
        var index = self.items.count - 1
        while index > 0 {
            let parent = (index - 1) / 2
            guard self.items[index] < self.items[parent] else { return }
            self.items.swapAt(index, parent)
            index = parent
        }
    }

    /// Takes the least.
    @discardableResult
    mutating func removeFirst() -> Element? {
        guard let last = self.items.popLast() else { return nil }
        guard let first = self.items.first else { return last }
        self.items[0] = last
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < self.items.count && self.items[child] < self.items[least] {
                least = child
            }
            guard least != index else { return first }
            self.items.swapAt(index, least)
            index = least
        }
    }

    /// Takes all.
    mutating func removeAll() { self.items.removeAll() }
}
