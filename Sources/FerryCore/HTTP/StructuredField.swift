/// A bare item of a structured field (RFC 8941 §3.3).
public enum StructuredValue: Hashable, Sendable {
    /// Up to 15 digits with a sign.
    case integer(Int64)
    /// Up to 12 digits before the point and 3 behind it, times 1,000.
    case decimal(thousandths: Int64)
    /// Printable ASCII, without its quotes and escapes.
    case string(String)
    /// A word without quotes.
    case token(String)
    /// What stood between colons, decoded.
    case bytes([UInt8])
    /// `?1` or `?0`.
    case boolean(Bool)
}

/// An item with its parameters, and the value of a field that is one item (RFC 8941 §3.3).
public struct StructuredItem: Hashable, Sendable {
    /// The item itself.
    public let value: StructuredValue
    /// Its parameters; one without a value is true.
    public let parameters: [String: StructuredValue]

    /// Makes an item.
    public init(_ value: StructuredValue, parameters: [String: StructuredValue] = [:]) {
        self.value = value
        self.parameters = parameters
    }

    /// Reads a field that is one item; nil if it is broken, and then counts as not sent (RFC 8941 §4.2).
    public init?(text: String) {
        var parser = StructuredParser(text)
        guard let item = parser.wholeItem() else { return nil }
        self = item
    }
}

/// A member of a dictionary (RFC 8941 §3.2).
public enum StructuredMember: Hashable, Sendable {
    /// One item; a key without a value is true.
    case item(StructuredItem)
    /// Items in parentheses, and the parameters of the list.
    case innerList([StructuredItem], parameters: [String: StructuredValue])
}

/// The value of a structured field that is a dictionary (RFC 8941 §3.2), read strictly.
public struct StructuredDictionary: Hashable, Sendable {
    /// The members; of several with one key the last one counts.
    public let members: [String: StructuredMember]

    /// Reads the field lines of one section, in order; nil if they are broken: then the field counts as not sent.
    public init?(lines: [String]) {
        var parser = StructuredParser(lines.joined(separator: ", "))
        guard let members = parser.wholeDictionary() else { return nil }
        self.members = members
    }

    /// Reads a field of one line.
    public init?(text: String) {
        self.init(lines: [text])
    }

    /// The value of a member that is an item, without its parameters.
    public subscript(_ key: String) -> StructuredValue? {
        guard case .item(let item) = self.members[key] else { return nil }
        return item.value
    }
}
