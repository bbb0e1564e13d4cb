/// One line of the screen: pieces of text, each with its look.
struct StyledLine: Equatable, Sendable {
    /// How a piece looks; without colour the rest still holds.
    struct Look: Equatable, Sendable {
        var color: Style.Color?
        var isBold = false
        var isDim = false

        static let plain = Look()
        static let bold = Look(isBold: true)
        static let dim = Look(isDim: true)
    }

    private struct Piece: Equatable, Sendable {
        var text: String
        var look: Look
    }

    private var pieces: [Piece] = []
    /// The columns that it takes.
    private(set) var columns = 0
    /// Drawn in reverse over its whole length.
    var isReversed = false

    init() {}

    init(_ text: String, _ look: Look = .plain) {
        self.add(text, look)
    }

    /// Its text alone.
    var text: String { self.pieces.map(\.text).joined() }

    /// Adds text, which must be free of control characters.
    mutating func add(_ text: String, _ look: Look = .plain) {
        guard !text.isEmpty else { return }
        self.columns += TextWidth.columns(text)
        if let last = self.pieces.last, last.look == look {
            self.pieces[self.pieces.count - 1].text += text
        } else {
            self.pieces.append(Piece(text: text, look: look))
        }
    }

    /// Adds another line's pieces.
    mutating func add(_ line: StyledLine) {
        for piece in line.pieces { self.add(piece.text, piece.look) }
    }

    /// Adds spaces up to a column.
    mutating func pad(to columns: Int) {
        self.add(String(repeating: " ", count: max(0, columns - self.columns)))
    }

    /// Adds a line so that it ends at a column; it is left out where there is no room for it.
    mutating func add(_ line: StyledLine, endingAt columns: Int) {
        guard self.columns + line.columns < columns else { return }
        self.pad(to: columns - line.columns)
        self.add(line)
    }

    /// The line without its first column, which is a space of a line of the list.
    var withoutFirstColumn: StyledLine {
        var result = self
        guard let first = result.pieces.first, first.text.first == " " else { return result }
        result.pieces[0].text = String(first.text.dropFirst())
        result.columns -= 1
        return result
    }

    /// The line cut to at most `width` columns.
    func cut(to width: Int) -> StyledLine {
        guard self.columns > width else { return self }
        var result = StyledLine()
        result.isReversed = self.isReversed
        for piece in self.pieces {
            let room = width - result.columns
            guard TextWidth.columns(piece.text) >= room else {
                result.add(piece.text, piece.look)
                continue
            }
            // The mark of a cut has to fit even where the piece itself would.
            result.add(TextWidth.cut(piece.text + "…", to: room), piece.look)
            break
        }
        return result
    }

    /// What draws the line: its text between the sequences for its looks (ECMA-48 §8.3.117).
    func rendered(_ style: Style, ascii: Bool) -> String {
        var result = ""
        for piece in self.pieces {
            let text = ascii ? Self.ascii(piece.text) : piece.text
            var codes: [String] = []
            if piece.look.isBold { codes.append("1") }
            if piece.look.isDim, style.isOn, !self.isReversed { codes.append("2") }
            if let color = piece.look.color, style.isOn, !self.isReversed {
                codes.append("\(color.rawValue)")
            }
            if self.isReversed { codes.append("7") }
            result += codes.isEmpty ? text : "\u{1B}[\(codes.joined(separator: ";"))m\(text)\u{1B}[m"
        }
        return result
    }

    /// The text for a terminal that shows ASCII alone, as wide as it was.
    static func ascii(_ text: String) -> String {
        guard !text.utf8.allSatisfy({ $0 < 0x80 }) else { return text }
        return text.reduce(into: "") { result, character in
            if character.isASCII {
                result.append(character)
            } else if let replacement = Self.replacements[character] {
                result.append(replacement)
            } else {
                result += String(repeating: "?", count: TextWidth.columns(character))
            }
        }
    }

    private static let replacements: [Character: Character] = [
        "…": "~", "·": "-", "▾": "v", "▸": ">", "━": "=", "╸": ">", "─": "-",
        "▁": ".", "▂": ".", "▃": ":", "▄": ":", "▅": ":", "▆": "|", "▇": "|", "█": "|",
    ]
}
