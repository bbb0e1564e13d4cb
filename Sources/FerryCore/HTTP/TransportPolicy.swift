/// Decides which addresses may be spoken to without TLS (`transport` in the configuration).
///
/// It is asked before a connection is made, for the URL and for each redirect.
public struct TransportPolicy: Hashable, Sendable {
    /// Whether plain http needs leave at all.
    public var httpsOnly: Bool
    /// The hosts with leave: a name, `*.suffix`, an address, or a network as `10.0.0.0/8` or `fd00::/8`.
    public var allowHTTP: [String]
    /// Leave for private networks, `.local` and names without a dot.
    public var allowLocalHTTP: Bool
    /// Leave for this job (`--allow-http`).
    public var jobAllowsHTTP: Bool

    /// Makes a policy; the defaults refuse all plain http but loopback.
    public init(
        httpsOnly: Bool = true,
        allowHTTP: [String] = [],
        allowLocalHTTP: Bool = false,
        jobAllowsHTTP: Bool = false
    ) {
        self.httpsOnly = httpsOnly
        self.allowHTTP = allowHTTP
        self.allowLocalHTTP = allowLocalHTTP
        self.jobAllowsHTTP = jobAllowsHTTP
    }

    /// Says why an address may not be spoken to, and what would change that; nil if it may.
    public func refusal(of address: Origin) -> String? {
        switch address.scheme {
        case "https":
            return nil
        case "http":
            let ip = NetworkAddress(address.host)
            if !self.httpsOnly || self.jobAllowsHTTP || Self.isLoopback(address.host, ip)
                || self.allowLocalHTTP && Self.isLocal(address.host, ip)
                || self.allowHTTP.contains(where: { Self.matches($0, address.host, ip) })
            {
                return nil
            }
            return "plain http to \(address.host) is refused: use https, or allow it with --allow-http"
                + " or in the configuration's transport.allow_http"
        default:
            return "the scheme \(address.scheme) is refused: use https"
        }
    }

    private static func isLoopback(_ host: String, _ ip: NetworkAddress?) -> Bool {
        guard let ip else { return host == "localhost" || host.hasSuffix(".localhost") }
        return self.contains(["127.0.0.0/8", "::1/128"], ip)
    }

    private static func isLocal(_ host: String, _ ip: NetworkAddress?) -> Bool {
        guard let ip else { return !host.isEmpty && (host.hasSuffix(".local") || !host.contains(".")) }
        return self.contains(
            ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10"],
            ip
        )
    }

    private static func contains(_ networks: [String], _ ip: NetworkAddress) -> Bool {
        networks.contains { self.matches($0, "", ip) }
    }

    private static func matches(_ entry: String, _ host: String, _ ip: NetworkAddress?) -> Bool {
        let entry = ASCII.lowercased(ASCII.trimmed(entry))
        if let ip {
            let parts = entry.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let network = parts.first.flatMap({ NetworkAddress($0) }) else { return false }
            guard parts.count == 2 else { return network == ip }
            guard let bits = ASCII.number(Array(parts[1].utf8)), bits <= 128 else { return false }
            return ip.isInside(network, bits: Int(bits))
        }
        if entry.hasPrefix("*.") {
            return entry.utf8.count > 2 && host.hasSuffix(entry.dropFirst())
                && host.utf8.count >= entry.utf8.count
        }
        return !entry.isEmpty && entry == host
    }
}
