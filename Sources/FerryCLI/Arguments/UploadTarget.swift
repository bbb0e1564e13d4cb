/// The URL that an upload goes to, as text: what it means is judged by the service's own parser.
enum UploadTarget {
    /// Whether the path ends in `/`, so that the file's name belongs behind it; a URL without a path is such a one.
    static func isFolder(_ url: String) -> Bool {
        let path = self.path(of: url)
        return path.isEmpty || path.utf8.last == UInt8(ascii: "/")
    }

    /// The URL with a file's name at the end of its path, before a query.
    ///
    /// All but the unreserved characters of RFC 3986 §2.3 is percent-encoded.
    static func adding(_ name: String, to url: String) -> String {
        let path = self.path(of: url)
        let slash = path.isEmpty ? "/" : ""
        return String(url[..<path.endIndex]) + slash + self.encoded(name) + String(url[path.endIndex...])
    }

    /// From the slash after host and port to the query or fragment.
    private static func path(of url: String) -> Substring {
        let end = url.firstIndex { $0 == "?" || $0 == "#" } ?? url.endIndex
        var start = url.startIndex
        if let mark = url[..<end].firstRange(of: "://") { start = mark.upperBound }
        return url[(url[start..<end].firstIndex(of: "/") ?? end)..<end]
    }

    private static func encoded(_ name: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        let kept = Array("-._~".utf8)
        var bytes: [UInt8] = []
        for byte in name.utf8 {
            switch byte {
            case 48...57, 65...90, 97...122: bytes.append(byte)
            case _ where kept.contains(byte): bytes.append(byte)
            default: bytes += [37, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
