import CCrypto
import CCurl
public import FerryCore

/// Parses URLs with libcurl's own parser, so that what is checked is what is requested.
public enum URLParser {
    /// A URL taken apart.
    public struct Parsed: Sendable, Equatable {
        /// The address without user info and fragment.
        public let address: WebAddress
        /// The user name in the URL, decoded.
        public let user: String?
        /// The password in the URL, decoded.
        public let password: String?
    }

    /// Why a URL cannot be used; a sentence fragment that fits after "the URL …".
    public struct Failure: Error, Sendable, Equatable {
        /// The fragment.
        public let reason: String
    }

    /// Parses an absolute URL of any scheme; spaces and bytes outside ASCII are encoded.
    public static func parse(_ text: String) throws(Failure) -> Parsed {
        let bytes = text.utf8
        guard !bytes.isEmpty else { throw Failure(reason: "is empty") }
        guard !bytes.contains(where: { $0 < 32 || $0 == 127 }) else {
            throw Failure(reason: "holds control characters")
        }
        guard text.contains("://") else {
            throw Failure(reason: "has no scheme; write https://\(URLRedaction.redact(text))")
        }
        guard let url = curl_url() else { throw Failure(reason: "could not be read: out of memory") }
        defer { curl_url_cleanup(url) }
        try self.set(url, text)
        return try self.read(url)
    }

    /// Resolves a `Location` against the URL that was asked (RFC 3986 §5); an empty one leads nowhere.
    public static func resolve(_ location: String, against base: WebAddress) -> WebAddress? {
        guard !location.isEmpty, let url = curl_url() else { return nil }
        defer { curl_url_cleanup(url) }
        do {
            try self.set(url, base.url)
            try self.set(url, location)
            return try self.read(url).address
        } catch {
            return nil
        }
    }

    /// The SHA-256 of a URL in hexadecimal: tells whether two URLs are the same without keeping either.
    public static func fingerprint(_ url: String) -> String {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        let text = Array(url.utf8)
        guard EVP_Digest(text, text.count, &digest, &length, EVP_sha256(), nil) == 1 else {
            preconditionFailure("libcrypto cannot compute SHA-256")
        }
        return digest.prefix(Int(length)).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }

    private static func set(_ url: OpaquePointer, _ text: String) throws(Failure) {
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE)
        let code = curl_url_set(url, CURLUPART_URL, text, flags)
        guard code == CURLUE_OK else {
            throw Failure(reason: "does not parse: \(String(cString: curl_url_strerror(code)))")
        }
    }

    private static func read(_ url: OpaquePointer) throws(Failure) -> Parsed {
        let scheme = self.part(url, CURLUPART_SCHEME)?.lowercased() ?? ""
        let user = self.part(url, CURLUPART_USER, flags: UInt32(CURLU_URLDECODE))
        let password = self.part(url, CURLUPART_PASSWORD, flags: UInt32(CURLU_URLDECODE))
        guard var host = self.part(url, CURLUPART_HOST)?.lowercased(), !host.isEmpty else {
            throw Failure(reason: "names no host")
        }
        let fallback = scheme == "https" ? 443 : 80
        let port = self.part(url, CURLUPART_PORT).flatMap { Int($0) } ?? fallback
        guard (1...65_535).contains(port) else { throw Failure(reason: "names port \(port)") }
        for part in [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_FRAGMENT] {
            _ = curl_url_set(url, part, nil, 0)  // clearing a part cannot fail (curl_url_set(3))
        }
        guard let whole = self.part(url, CURLUPART_URL) else { throw Failure(reason: "does not parse") }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        let address = WebAddress(
            url: whole,
            origin: Origin(scheme: scheme, host: host, port: port),
            path: self.part(url, CURLUPART_PATH) ?? "/",
            hasUserInfo: user != nil || password != nil
        )
        return Parsed(address: address, user: user, password: password)
    }

    private static func part(_ url: OpaquePointer, _ part: CURLUPart, flags: UInt32 = 0) -> String? {
        var value: UnsafeMutablePointer<CChar>?
        guard ferry_curl_url_get(url, part, &value, flags) == CURLUE_OK, let value else { return nil }
        defer { curl_free(value) }
        return String(cString: value)
    }
}
