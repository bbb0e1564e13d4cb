/// Scheme, host and port: what credentials belong to (RFC 6454 §4).
public struct Origin: Hashable, Sendable {
    /// In small letters.
    public let scheme: String
    /// In small letters; an IPv6 address without brackets.
    public let host: String
    /// The port, the scheme's own one if the URL names none.
    public let port: Int

    /// Makes an origin.
    public init(scheme: String, host: String, port: Int) {
        self.scheme = ASCII.lowercased(scheme)
        let isBracketed = host.utf8.first == UInt8(ascii: "[") && host.utf8.last == UInt8(ascii: "]")
        self.host = ASCII.lowercased(isBracketed ? host.dropFirst().dropLast() : host[...])
        self.port = port
    }
}

/// A URL as the transport's own parser read it, so that what is checked is what is requested.
public struct WebAddress: Hashable, Sendable {
    /// The whole URL, normalised by the parser.
    public let url: String
    /// Whom it goes to.
    public let origin: Origin
    /// The path, still percent-encoded.
    public let path: String
    /// Whether the URL carries a user name or password.
    public let hasUserInfo: Bool

    /// Makes an address from parts that were parsed at the edge.
    public init(url: String, origin: Origin, path: String, hasUserInfo: Bool) {
        self.url = url
        self.origin = origin
        self.path = path
        self.hasUserInfo = hasUserInfo
    }
}

/// The bytes of an IP address: 4 or 16.
struct NetworkAddress: Hashable {
    let bytes: [UInt8]

    /// Reads `a.b.c.d` or the forms of RFC 4291 §2.2, a zone or brackets left out; mapped ones become IPv4.
    init?(_ text: some StringProtocol) {
        var text = Array(text.utf8)
        if text.first == UInt8(ascii: "["), text.last == UInt8(ascii: "]") {
            text = Array(text[1..<text.count - 1])
        }
        if let zone = text.firstIndex(of: UInt8(ascii: "%")) { text = Array(text[..<zone]) }
        guard text.count <= 45 else { return nil }
        if let bytes = Self.version4(text[...]) {
            self.bytes = bytes
        } else if let bytes = Self.version6(text) {
            let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
            self.bytes = isMapped ? Array(bytes[12...]) : bytes
        } else {
            return nil
        }
    }

    /// Whether the first `bits` bits are those of `network`, which is of the same family.
    func isInside(_ network: NetworkAddress, bits: Int) -> Bool {
        guard self.bytes.count == network.bytes.count, (0...self.bytes.count * 8).contains(bits) else {
            return false
        }
        let whole = bits / 8
        guard self.bytes[..<whole] == network.bytes[..<whole] else { return false }
        let mask = UInt8(truncatingIfNeeded: 0xFF00 >> (bits % 8))
        return bits % 8 == 0 || self.bytes[whole] & mask == network.bytes[whole] & mask
    }

    private static func version4(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            guard part.count <= 3, part.count == 1 || part.first != UInt8(ascii: "0"),
                let value = ASCII.number(part), let byte = UInt8(exactly: value)
            else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    private static func version6(_ text: [UInt8]) -> [UInt8]? {
        let colon = UInt8(ascii: ":")
        guard let gap = text.indices.dropLast().first(where: { text[$0] == colon && text[$0 + 1] == colon })
        else {
            let bytes = self.groups(text[...])
            return bytes?.count == 16 ? bytes : nil
        }
        guard let head = self.groups(text[..<gap]), let tail = self.groups(text[(gap + 2)...]),
            head.count + tail.count <= 14
        else { return nil }
        return head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail
    }

    private static func groups(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard !text.isEmpty else { return [] }
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        var bytes: [UInt8] = []
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, let tail = self.version4(part) {
                bytes += tail
                continue
            }
            guard (1...4).contains(part.count) else { return nil }
            var value = 0
            for digit in part {
                guard let nibble = ASCII.hexValue(digit) else { return nil }
                value = value << 4 | Int(nibble)
            }
            bytes += [UInt8(value >> 8), UInt8(value & 0xFF)]
        }
        return bytes
    }
}
