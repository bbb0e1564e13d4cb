/// The lines at the bottom of a terminal that are drawn over and over; makes the control sequences for it.
struct LiveArea {
    /// The columns of each line on the screen.
    private var drawn: [Int] = []

    /// Whether something is on the screen.
    var isDrawn: Bool { !self.drawn.isEmpty }

    /// What removes the lines, so that other text can be printed in their place.
    ///
    /// `columns` is the terminal's present width: lines drawn before it shrank have wrapped.
    mutating func erase(columns: Int) -> String {
        guard self.isDrawn else { return "" }
        defer { self.drawn = [] }
        return self.up(columns) + "\u{1B}[J"
    }

    /// What draws `lines` in place of the present ones.
    mutating func draw(_ lines: [String], columns: Int) -> String {
        var text = self.isDrawn ? self.up(columns) : ""
        for line in lines { text += line + "\u{1B}[K\n" }
        if self.isDrawn { text += "\u{1B}[J" }
        self.drawn = lines.map(TextWidth.columns)
        return text
    }

    private func up(_ columns: Int) -> String {
        let rows = self.drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
        return "\r\u{1B}[\(rows)A"
    }
}
