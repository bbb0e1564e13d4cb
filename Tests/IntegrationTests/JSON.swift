import FerryTestSupport
import FoundationEssentials

/// Any JSON value, to look into what commands print.
enum JSON: Decodable, Equatable, Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSON].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }

    /// Parses the one line that a command printed.
    init(line: String) throws {
        guard line.hasSuffix("\n"), !line.dropLast().contains("\n") else {
            throw TestSupportError("this is not one line: \(line)")
        }
        self = try JSONDecoder().decode(JSON.self, from: Data(line.utf8))
    }

    /// Parses a line for each document.
    static func lines(_ text: String) throws -> [JSON] {
        try text.split(separator: "\n").map { try JSON(line: "\($0)\n") }
    }

    /// A member of an object; null where it is missing.
    subscript(_ key: String) -> JSON {
        guard case .object(let members) = self else { return .null }
        return members[key] ?? .null
    }

    /// The keys of an object.
    var keys: Set<String> {
        guard case .object(let members) = self else { return [] }
        return Set(members.keys)
    }

    /// The elements of an array.
    var elements: [JSON] {
        guard case .array(let elements) = self else { return [] }
        return elements
    }

    /// A text.
    var text: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    /// A whole number.
    var int: Int64? {
        guard case .number(let number) = self else { return nil }
        return Int64(exactly: number)
    }
}
