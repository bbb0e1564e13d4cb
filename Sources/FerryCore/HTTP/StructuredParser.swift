/// The parsing algorithms of structured fields (RFC 8941 §4.2); nil is "fail parsing".
struct StructuredParser {
    private var rest: ArraySlice<UInt8>

    init(_ text: String) {
        self.rest = Array(text.utf8)[...]
    }

    /// §4.2 for an item.
    mutating func wholeItem() -> StructuredItem? {
        self.skip { $0 == UInt8(ascii: " ") }
        guard let item = self.item() else { return nil }
        self.skip { $0 == UInt8(ascii: " ") }
        return self.rest.isEmpty ? item : nil
    }

    /// §4.2 for a dictionary, §4.2.2.
    mutating func wholeDictionary() -> [String: StructuredMember]? {
        var members: [String: StructuredMember] = [:]
        self.skip { $0 == UInt8(ascii: " ") }
        while !self.rest.isEmpty {
            guard let key = self.key() else { return nil }
            if self.take("=") {
                guard let member = self.member() else { return nil }
                members[key] = member
            } else {
                guard let parameters = self.parameters() else { return nil }
                members[key] = .item(StructuredItem(.boolean(true), parameters: parameters))
            }
            let blanks = self.rest.prefix(while: ASCII.isBlank)
            self.rest = self.rest[blanks.endIndex...]
            if self.rest.isEmpty { return blanks.allSatisfy { $0 == UInt8(ascii: " ") } ? members : nil }
            guard self.take(",") else { return nil }
            self.skip(while: ASCII.isBlank)
            if self.rest.isEmpty { return nil }  // a comma at the end
        }
        return members
    }

    private mutating func member() -> StructuredMember? {
        guard self.take("(") else { return self.item().map(StructuredMember.item) }
        var items: [StructuredItem] = []  // §4.2.1.2
        while true {
            self.skip { $0 == UInt8(ascii: " ") }
            if self.take(")") {
                return self.parameters().map { .innerList(items, parameters: $0) }
            }
            guard let item = self.item() else { return nil }
            guard self.rest.first == UInt8(ascii: " ") || self.rest.first == UInt8(ascii: ")") else {
                return nil
            }
            items.append(item)
        }
    }

    private mutating func item() -> StructuredItem? {
        guard let value = self.bareItem(), let parameters = self.parameters() else { return nil }
        return StructuredItem(value, parameters: parameters)
    }

    private mutating func parameters() -> [String: StructuredValue]? {
        var parameters: [String: StructuredValue] = [:]
        while self.take(";") {
            self.skip { $0 == UInt8(ascii: " ") }
            guard let key = self.key() else { return nil }
            if self.take("=") {
                guard let value = self.bareItem() else { return nil }
                parameters[key] = value
            } else {
                parameters[key] = .boolean(true)
            }
        }
        return parameters
    }

    /// §4.2.3.3.
    private mutating func key() -> String? {
        func isSmall(_ byte: UInt8) -> Bool { (97...122).contains(byte) }
        guard let first = self.rest.first, isSmall(first) || first == UInt8(ascii: "*") else { return nil }
        return self.text { isSmall($0) || ASCII.isDigit($0) || "_-.*".utf8.contains($0) }
    }

    /// §4.2.3.1; the first character tells the type.
    private mutating func bareItem() -> StructuredValue? {
        guard let first = self.rest.first else { return nil }
        switch first {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return self.number()
        case UInt8(ascii: "\""): return self.string()
        case UInt8(ascii: ":"): return self.bytes()
        case UInt8(ascii: "?"): return self.boolean()
        case _ where ASCII.isLetter(first) || first == UInt8(ascii: "*"):
            return .token(self.text { Self.isTokenCharacter($0) })
        default: return nil
        }
    }

    /// §4.2.4.
    private mutating func number() -> StructuredValue? {
        let sign: Int64 = self.take("-") ? -1 : 1
        let whole = self.digits()
        guard !whole.isEmpty, whole.count <= 15, let value = ASCII.number(whole) else { return nil }
        guard self.take(".") else { return .integer(sign * value) }
        let fraction = self.digits()
        guard whole.count <= 12, (1...3).contains(fraction.count),
            let part = ASCII.number(fraction + [UInt8](repeating: 48, count: 3 - fraction.count))
        else { return nil }
        return .decimal(thousandths: sign * (value * 1_000 + part))
    }

    /// §4.2.5.
    private mutating func string() -> StructuredValue? {
        var value: [UInt8] = []
        self.rest = self.rest.dropFirst()
        while let byte = self.rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return .string(String(decoding: value, as: UTF8.self))
            case UInt8(ascii: "\\"):
                guard let next = self.rest.popFirst(), "\"\\".utf8.contains(next) else { return nil }
                value.append(next)
            case 0x20...0x7E: value.append(byte)
            default: return nil
            }
        }
        return nil
    }

    /// §4.2.7.
    private mutating func bytes() -> StructuredValue? {
        self.rest = self.rest.dropFirst()
        let text = self.rest.prefix { $0 != UInt8(ascii: ":") }
        self.rest = self.rest[text.endIndex...]
        guard self.take(":") else { return nil }
        return Base64.decode(text, lenient: true).map(StructuredValue.bytes)
    }

    /// §4.2.8.
    private mutating func boolean() -> StructuredValue? {
        self.rest = self.rest.dropFirst()
        if self.take("1") { return .boolean(true) }
        return self.take("0") ? .boolean(false) : nil
    }

    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || "!#$%&'*+-.^_`|~:/".utf8.contains(byte)
    }

    private mutating func digits() -> [UInt8] {
        let digits = self.rest.prefix(while: ASCII.isDigit)
        self.rest = self.rest[digits.endIndex...]
        return Array(digits)
    }

    private mutating func text(while isPart: (UInt8) -> Bool) -> String {
        let text = self.rest.prefix(while: isPart)
        self.rest = self.rest[text.endIndex...]
        return String(decoding: text, as: UTF8.self)
    }

    private mutating func skip(while isSkipped: (UInt8) -> Bool) {
        self.rest = self.rest.drop(while: isSkipped)
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard self.rest.first == UInt8(ascii: character) else { return false }
        self.rest = self.rest.dropFirst()
        return true
    }
}
