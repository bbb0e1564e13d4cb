/// Takes out of a URL what nobody may see.
///
/// It works on any text, also on what is no URL: an error about a broken URL must not show its password.
public enum URLRedaction {
    /// The URL without user info and fragment, each query value replaced by `***`.
    ///
    /// Keys stay; an item without `=` is a value, since tokens are sent like that.
    public static func redact(_ url: String) -> String {
        let bytes = Array(self.withoutUserInfo(url).utf8.prefix { $0 != UInt8(ascii: "#") })
        guard let mark = bytes.firstIndex(of: UInt8(ascii: "?")) else {
            return String(decoding: bytes, as: UTF8.self)
        }
        let items = bytes[(mark + 1)...].split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        let shown = items.map { item in
            guard let equals = item.firstIndex(of: UInt8(ascii: "=")) else {
                return item.isEmpty ? "" : "***"
            }
            return String(decoding: item[...equals], as: UTF8.self) + "***"
        }
        return String(decoding: bytes[...mark], as: UTF8.self) + shown.joined(separator: "&")
    }

    /// Whether the query names a time after which the link is dead, as presigned ones do.
    public static func linkMayExpire(_ url: String) -> Bool {
        let bytes = Array(url.utf8.prefix { $0 != UInt8(ascii: "#") })
        guard let mark = bytes.firstIndex(of: UInt8(ascii: "?")) else { return false }
        let items = bytes[(mark + 1)...].split { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: ";") }
        return items.contains { item in
            let key = item.prefix { $0 != UInt8(ascii: "=") }
            guard key.endIndex < item.endIndex else { return false }
            let name = String(decoding: ASCII.percentDecoded(key) ?? Array(key), as: UTF8.self)
            return self.expiryKeys.contains(ASCII.lowercased(name))
        }
    }

    /// In small letters: S3 and its kin, Google, Azure (`se`), CloudFront (`policy`), Akamai, plain ones.
    private static let expiryKeys: Set<String> = [
        "expires", "expire", "expiry", "expiration", "expires_at", "expires_in", "exp", "se", "x-amz-expires",
        "x-goog-expires", "x-oss-expires", "x-obs-expires", "x-ms-expires", "q-sign-time", "policy", "hdnts",
        "hdnea", "valid_until", "validuntil",
    ]

    /// Cuts all up to the last `@` of the authority; of the whole text if its port is no number.
    private static func withoutUserInfo(_ url: String) -> String {
        let bytes = Array(url.utf8)
        let slashes = [UInt8(ascii: "/"), UInt8(ascii: "\\")]
        let at = UInt8(ascii: "@")
        let colon = UInt8(ascii: ":")
        var start = bytes.startIndex
        if let mark = bytes.firstIndex(of: colon), let next = bytes[mark...].dropFirst().first,
            slashes.contains(next),
            bytes[..<mark].allSatisfy({
                ASCII.isLetter($0) || ASCII.isDigit($0) || [43, 45, 46].contains($0)
            })
        {
            start = mark + 1
        }
        while start < bytes.endIndex, slashes.contains(bytes[start]) { start += 1 }
        var end = bytes.endIndex
        if let stop = bytes[start...].firstIndex(where: { slashes.contains($0) || $0 == 35 || $0 == 63 }) {
            end = stop
        }
        var cut = bytes[start..<end].lastIndex(of: at)
        if cut == nil, let port = bytes[start..<end].lastIndex(of: colon),
            port + 1 == end
                || !bytes[(port + 1)..<end].allSatisfy({ ASCII.isDigit($0) || $0 == UInt8(ascii: "]") })
        {
            let isAddress = bytes[start] == UInt8(ascii: "[") && bytes[end - 1] == UInt8(ascii: "]")
            cut = isAddress ? nil : bytes[end...].lastIndex(of: at)
        }
        guard let cut else { return url }
        return String(decoding: bytes[..<start] + bytes[(cut + 1)...], as: UTF8.self)
    }
}
