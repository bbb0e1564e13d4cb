public import FerryCore

/// The one line that a service writes to its status descriptor (`--status-fd`) before it closes it.
public enum StartupReport: Sendable, Equatable, Codable {
    /// Signals and socket are in place: `{"ready":true}`.
    case ready
    /// It cannot start: an ``ErrorDocument``; code `busy` if another service owns the queue.
    case failed(FerryError)

    private enum CodingKeys: CodingKey {
        case ready
    }

    /// The line with its newline.
    public var line: [UInt8] {
        let newline = [UInt8(ascii: "\n")]
        guard let bytes = try? ControlJSON.encode(self) else { return newline }  // strings and small numbers
        return bytes + newline
    }

    /// Decodes either form.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if try container.decodeIfPresent(Bool.self, forKey: .ready) == true {
            self = .ready
        } else {
            self = .failed(try ErrorDocument(from: decoder).error)
        }
    }

    /// Encodes the form of the case.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .ready:
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(true, forKey: .ready)
        case .failed(let error):
            try ErrorDocument(error).encode(to: encoder)
        }
    }
}
