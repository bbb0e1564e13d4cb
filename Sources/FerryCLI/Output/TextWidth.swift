/// How many columns of a terminal a text takes.
///
/// East Asian wide and fullwidth characters and emoji take two (Unicode Standard Annex #11), combining marks
/// and zero-width characters none. A text is cut between characters only.
enum TextWidth {
    /// The columns of a text.
    static func columns(_ text: String) -> Int {
        // Most text is ASCII, where a byte is a column.
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text.utf8.count }
        return text.reduce(0) { $0 + Self.columns($1) }
    }

    /// The columns of one character, as its widest scalar takes them.
    static func columns(_ character: Character) -> Int {
        let scalars = character.unicodeScalars
        if scalars.contains(where: { $0.value == 0xFE0F }) { return 2 }  // emoji presentation
        return scalars.reduce(0) { max($0, Self.columns($1)) }
    }

    /// The text cut to at most `width` columns, the last one being `…` if something was cut.
    static func cut(_ text: String, to width: Int) -> String {
        guard Self.columns(text) > width else { return text }
        guard width > 0 else { return "" }
        var result = ""
        var used = 0
        for character in text {
            let columns = Self.columns(character)
            if used + columns > width - 1 { break }
            result.append(character)
            used += columns
        }
        return result + "…"
    }

    /// The text cut or filled with spaces to exactly `width` columns.
    static func fit(_ text: String, to width: Int) -> String {
        let text = Self.cut(text, to: width)
        return text + String(repeating: " ", count: max(0, width - Self.columns(text)))
    }

    /// The text filled with spaces on its left to at least `width` columns.
    static func right(_ text: String, to width: Int) -> String {
        String(repeating: " ", count: max(0, width - Self.columns(text))) + text
    }

    private static func columns(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        let value = scalar.value
        if value < 0x1100 { return 1 }
        if scalar.properties.isEmojiPresentation { return 2 }
        return Self.wide.contains { $0.contains(value) } ? 2 : 1
    }

    /// The blocks whose characters are wide as a whole (EastAsianWidth.txt, W and F).
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F,
        0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
        0x17000...0x18CFF,
        0x1B000...0x1B2FF, 0x1F200...0x1F2FF, 0x20000...0x3FFFD,
    ]
}
