/// A key as the screen understands it.
enum Key: Hashable, Sendable {
    case character(Character)
    case up, down, left, right, pageUp, pageDown, home, end
    case enter, backspace, escape
    /// Ctrl-U: empties the line.
    case clearLine
    /// Ctrl-L: draws all anew.
    case redraw
}

/// Makes keys of the bytes that a terminal sends, wherever a read cuts them.
///
/// The sequences are those of xterm and its kin (ECMA-48 §5.4; "Xterm Control Sequences", PC-Style Function Keys)
/// and of the Linux console; unknown ones are passed over whole.
struct KeyDecoder {
    /// Bytes of a sequence or a character that has not ended.
    private var held: [UInt8] = []
    private static let escape: UInt8 = 0x1B
    /// No key's sequence is as long; what is longer is noise.
    private static let longest = 32

    /// Whether bytes are held; if none follow soon, ``flush()`` says what they meant.
    var isWaiting: Bool { !self.held.isEmpty }

    /// Takes bytes, and gives the keys that are whole.
    mutating func feed(_ bytes: some Sequence<UInt8>) -> [Key] {
        self.held += bytes
        var keys: [Key] = []
        var rest = self.held[...]
        while !rest.isEmpty, let (key, count) = Self.next(rest) {
            if let key { keys.append(key) }
            rest = rest.dropFirst(count)
        }
        self.held = Array(rest)
        return keys
    }

    /// Takes what is held for all that comes: a lone ESC is the key of that name.
    mutating func flush() -> [Key] {
        defer { self.held = [] }
        return self.held == [Self.escape] ? [.escape] : []
    }

    /// The first key, if any, and the bytes that it took; nil if more have to come.
    private static func next(_ bytes: ArraySlice<UInt8>) -> (key: Key?, count: Int)? {
        guard let first = bytes.first else { return nil }
        switch first {
        case Self.escape: return Self.sequence(bytes)
        case 0x0D, 0x0A: return (.enter, 1)
        case 0x7F, 0x08: return (.backspace, 1)
        case 0x15: return (.clearLine, 1)
        case 0x0C: return (.redraw, 1)
        case ..<0x20: return (nil, 1)
        default: return Self.character(bytes)
        }
    }

    private static func character(_ bytes: ArraySlice<UInt8>) -> (key: Key?, count: Int)? {
        guard let first = bytes.first else { return nil }
        let length =
            switch first {
            case ..<0x80: 1
            case 0xC2...0xDF: 2
            case 0xE0...0xEF: 3
            case 0xF0...0xF4: 4
            default: 0  // no first byte of UTF-8
            }
        guard length > 0 else { return (nil, 1) }
        let part = bytes.prefix(length)
        // A byte that does not go on with the character ends it.
        if let stray = part.dropFirst().firstIndex(where: { $0 & 0xC0 != 0x80 }) {
            return (nil, stray - bytes.startIndex)
        }
        guard part.count == length else { return nil }
        guard let text = String(validating: part, as: UTF8.self), let character = text.first else {
            return (nil, length)
        }
        return (.character(character), length)
    }

    private static func sequence(_ bytes: ArraySlice<UInt8>) -> (key: Key?, count: Int)? {
        let rest = bytes.dropFirst()
        guard let second = rest.first else { return nil }
        switch second {
        case UInt8(ascii: "O"):
            guard let final = rest.dropFirst().first else { return nil }
            return (Self.letters[final], 3)
        case UInt8(ascii: "["):
            let body = rest.dropFirst()
            if body.first == UInt8(ascii: "[") {
                return body.count > 1 ? (nil, 4) : nil  // a function key of the Linux console
            }
            guard let end = body.firstIndex(where: { !(0x20...0x3F).contains($0) }) else {
                return body.count > Self.longest ? (nil, bytes.count) : nil
            }
            let count = end - bytes.startIndex + 1
            // A control character breaks the sequence off and stands for itself.
            guard (0x40...0x7E).contains(bytes[end]) else { return (nil, count - 1) }
            guard bytes[end] == UInt8(ascii: "~") else { return (Self.letters[bytes[end]], count) }
            let number = String(decoding: body.prefix { (0x30...0x39).contains($0) }, as: UTF8.self)
            return (Self.numbers[number], count)
        default:
            return (.escape, 1)
        }
    }

    private static let letters: [UInt8: Key] = [
        UInt8(ascii: "A"): .up, UInt8(ascii: "B"): .down, UInt8(ascii: "C"): .right,
        UInt8(ascii: "D"): .left, UInt8(ascii: "H"): .home, UInt8(ascii: "F"): .end,
        UInt8(ascii: "M"): .enter,
    ]
    private static let numbers: [String: Key] = [
        "1": .home, "7": .home, "4": .end, "8": .end, "5": .pageUp, "6": .pageDown,
    ]
}
