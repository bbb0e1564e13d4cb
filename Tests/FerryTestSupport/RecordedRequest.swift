/// A request as the scripted server saw it.
public struct RecordedRequest: Sendable {
    /// The method, such as `GET`.
    public let method: String
    /// The request target as sent.
    public let target: String
    /// The header fields in order, names as sent.
    public let headers: [(String, String)]
    /// How many requests the server had seen before.
    public let index: Int
    /// The number of the connection it came on, from 0.
    public let connection: Int
    /// The body's length in bytes.
    public let bodyLength: Int64
    /// The body's first bytes, at most 16 MiB.
    public let body: [UInt8]

    /// The target without its query.
    public var path: String {
        String(self.target.prefix { $0 != "?" })
    }

    /// The value of the first field of a name, in whatever case.
    public func header(_ name: String) -> String? {
        let wanted = name.lowercased()
        return self.headers.first { $0.0.lowercased() == wanted }?.1
    }

    /// The first byte that a `Range: bytes=N-` or `bytes=N-M` asks for; nil without such a field.
    public var rangeStart: Int64? {
        self.range?.start
    }

    /// The last byte that a `Range: bytes=N-M` asks for; nil where the range is open or there is none.
    public var rangeEnd: Int64? {
        self.range?.end
    }

    var range: (start: Int64, end: Int64?)? {
        guard let value = self.header("Range"), value.hasPrefix("bytes=") else { return nil }
        let parts = value.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let start = Int64(parts[0]) else { return nil }
        if parts[1].isEmpty { return (start, nil) }
        guard let end = Int64(parts[1]), end >= start else { return nil }
        return (start, end)
    }
}
