/// The number of a job: given once, in order of acceptance, and never reused.
public struct JobID: RawRepresentable, Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The number as the database and the user see it, from 1.
    public let rawValue: Int64

    /// Wraps a number; whether such a job exists is the store's matter.
    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Reads a number as a user types it: decimal digits only, from 1.
    public init?(_ text: String) {
        guard let value = Int64(text), value > 0, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        self.rawValue = value
    }

    /// Decodes the bare number.
    public init(from decoder: any Decoder) throws {
        self.rawValue = try decoder.singleValueContainer().decode(Int64.self)
    }

    /// Encodes the bare number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.rawValue)
    }

    /// The decimal digits.
    public var description: String { String(self.rawValue) }

    /// Orders by acceptance.
    public static func < (left: JobID, right: JobID) -> Bool { left.rawValue < right.rawValue }
}
