/// A host as users name it: `example.org` on any port, or `example.org:8443`.
///
/// Jobs know their host as `name:port`, IPv6 addresses in brackets.
public struct HostPattern: Hashable, Sendable {
    /// The name in small letters, IPv6 addresses in brackets.
    public let name: String
    /// The port; nil for any.
    public let port: Int?

    /// Reads a host; nil if it cannot be one.
    public init?(_ text: String) {
        let text = ASCII.lowercased(text)
        let isAddress = text.utf8.count { $0 == UInt8(ascii: ":") } > 1
        let name: Substring
        let rest: Substring
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            name = text[...end]
            rest = text[text.index(after: end)...]
        } else if isAddress {
            name = "[\(text)]"
            rest = ""
        } else {
            name = text.prefix { $0 != ":" }
            rest = text[name.endIndex...]
        }
        guard !name.isEmpty, name != "[]",
            text.utf8.allSatisfy({
                $0 > 32 && $0 != 127 && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "@")
            })
        else { return nil }
        if rest.isEmpty {
            self.port = nil
        } else {
            guard rest.hasPrefix(":"), rest.dropFirst().utf8.allSatisfy({ (48...57).contains($0) }),
                let port = Int(rest.dropFirst()), (1...65_535).contains(port)
            else { return nil }
            self.port = port
        }
        self.name = String(name)
    }

    /// Whether there is a host and port that both mean.
    public func overlaps(_ other: HostPattern) -> Bool {
        self.name == other.name && (self.port == nil || other.port == nil || self.port == other.port)
    }
}

extension HostPattern: CustomStringConvertible {
    /// `example.org`, or `example.org:8443`.
    public var description: String { self.name + (self.port.map { ":\($0)" } ?? "") }
}
