/// Tells a login page from the file that was asked for.
public enum WebPagePlan {
    /// The extensions under which a web page is what one expects.
    private static let pageExtensions: Set<String> = [
        "html", "htm", "xhtml", "shtml", "php", "asp", "aspx", "jsp", "cgi",
    ]

    /// Whether a web page came, after a temporary redirect, for a name that is not a web page's.
    ///
    /// Captive portals and sign-on services answer so, with status 200 in the end; such a page is never saved.
    ///
    /// - Parameters:
    ///   - requestedURLPath: The path of the URL that the user gave.
    ///   - outputName: The file name of `-o`, if given; its extension says more than the path's.
    ///   - contentType: The answer's `Content-Type`.
    ///   - redirectStatuses: The status of each hop on the way.
    /// - Returns: True if the page must not be saved.
    public static func isSuspicious(
        requestedURLPath: String,
        outputName: String?,
        contentType: String?,
        redirectStatuses: [Int]
    ) -> Bool {
        guard MediaType.isWebPage(contentType.flatMap(MediaType.essence)),
            redirectStatuses.contains(where: { $0 == 302 || $0 == 303 || $0 == 307 })
        else { return false }
        let path = Array(requestedURLPath.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        let asked = ASCII.percentDecoded(self.lastComponent(path)) ?? path
        let names = [outputName.map { Array($0.utf8) }, asked].compactMap { $0 }
        guard let ending = names.lazy.compactMap(self.fileExtension).first else { return false }
        return !self.pageExtensions.contains(ending)
    }

    /// The extension of a name in small letters, without the dot; nil if there is none.
    private static func fileExtension(_ name: [UInt8]) -> String? {
        let component = self.lastComponent(name)
        guard let dot = component.lastIndex(of: UInt8(ascii: ".")), dot > component.startIndex else {
            return nil
        }
        let ending = ASCII.lowercased(String(decoding: component[(dot + 1)...], as: UTF8.self))
        return ending.isEmpty ? nil : ending
    }

    private static func lastComponent(_ path: [UInt8]) -> ArraySlice<UInt8> {
        let start = path.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? path.startIndex
        return path[start...]
    }
}
