/// The status line and header fields of one HTTP answer, as they came.
public struct ResponseHead: Hashable, Sendable {
    /// One header field line.
    public struct Field: Hashable, Sendable {
        /// The name as sent.
        public let name: String
        /// The value without white space around it, decoded as UTF-8 or else Latin-1.
        public let value: String

        /// Makes a field.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The three-digit status.
    public var status: Int
    /// `1.0`, `1.1` or `2`.
    public var httpVersion: String
    /// The reason phrase, may be empty.
    public var reasonPhrase: String
    /// The fields in order, repeated ones included.
    public var fields: [Field]

    /// Makes a head.
    public init(status: Int, httpVersion: String = "1.1", reasonPhrase: String = "", fields: [Field] = []) {
        self.status = status
        self.httpVersion = httpVersion
        self.reasonPhrase = reasonPhrase
        self.fields = fields
    }

    /// All values of a field, in order; the name is compared without case (RFC 9110 §5.1).
    public func values(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return self.fields.filter { $0.name.lowercased() == wanted }.map(\.value)
    }

    /// The first value of a field.
    public func first(_ name: String) -> String? {
        self.values(name).first
    }
}
