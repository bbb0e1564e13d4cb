/// What brings the terminal from one picture to the next: only lines that differ are written.
struct ScreenWriter {
    /// Colours.
    let style: Style
    /// Whether the terminal shows ASCII alone.
    let isASCII: Bool
    private var shown: [StyledLine] = []

    init(style: Style, isASCII: Bool) {
        self.style = style
        self.isASCII = isASCII
    }

    /// Takes over a terminal: the alternate screen, no cursor, no line that wraps (xterm's private modes 1049,
    /// 25 and 7).
    static let enter = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[H\u{1B}[2J"
    /// Gives it back.
    ///
    /// One without an alternate screen is left empty; a picture that was being sent is ended.
    static let leave = "\u{1B}[?2026l\u{1B}[m\u{1B}[H\u{1B}[2J\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

    /// Forgets what is on the screen, so that the next picture is drawn whole.
    mutating func forget() {
        self.shown = []
    }

    /// What draws a picture in place of the last one; empty where they are the same.
    ///
    /// Several lines come as one update for a terminal that can (private mode 2026).
    mutating func draw(_ lines: [StyledLine]) -> String {
        var text = ""
        var changes = 0
        if self.shown.count != lines.count {
            text += "\u{1B}[m\u{1B}[2J"
            self.shown = [StyledLine](repeating: StyledLine(), count: lines.count)
        }
        for (row, line) in lines.enumerated() where line != self.shown[row] {
            text += "\u{1B}[\(row + 1);1H" + line.rendered(self.style, ascii: self.isASCII)
            if line.columns < self.shown[row].columns || self.shown[row].isReversed { text += "\u{1B}[K" }
            changes += 1
        }
        self.shown = lines
        return changes > 1 ? "\u{1B}[?2026h\(text)\u{1B}[?2026l" : text
    }
}
