/// Whether and how text is coloured.
struct Style: Equatable, Sendable {
    /// When `--color` asks for colour.
    enum When: String, Sendable {
        case auto, always, never
    }

    /// A colour, as its SGR number (ECMA-48 §8.3.117).
    enum Color: Int, Sendable {
        case red = 31
        case green = 32
        case yellow = 33
        case cyan = 36
    }

    /// Whether colour is used.
    let isOn: Bool

    /// Decides: `--color`, else off if `NO_COLOR` is not empty, on `TERM=dumb`, and away from a terminal.
    init(when: When, isTerminal: Bool, environment: [String: String]) {
        switch when {
        case .always: self.isOn = true
        case .never: self.isOn = false
        case .auto:
            let refused = !(environment["NO_COLOR"] ?? "").isEmpty || environment["TERM"] == "dumb"
            self.isOn = isTerminal && !refused
        }
    }

    /// The text in a colour.
    func paint(_ text: String, _ color: Color?) -> String {
        guard self.isOn, let color else { return text }
        return "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
    }
}
