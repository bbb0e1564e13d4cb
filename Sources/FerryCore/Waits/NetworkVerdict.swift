/// What this machine lacks to reach anybody.
public enum NetworkLack: String, Hashable, Sendable, CaseIterable {
    /// No interface but loopback is up and has an address.
    case network
    /// There is a network, but no route to any address of the host.
    case route
    /// No name server answers.
    case nameService
}

/// Tells, after a failure, whether it was this machine's network that failed and not the server.
///
/// It is never asked before a first try: a try is the proof, and what looks like no network from here may be one
/// (a proxy, a tunnel, a name in the hosts file). For a server on this machine the network plays no part.
public enum NetworkVerdict {
    /// What can be found out about the machine; asked only as far as a verdict needs it.
    public struct Facts {
        /// Whether packets to a numeric address have a way out; nil if it cannot be told.
        public var hasRoute: (String) -> Bool?
        /// Whether any interface but loopback is up and has an address.
        public var hasNetwork: () -> Bool
        /// Whether a name server answers.
        public var answersNames: () -> Bool

        /// Makes a set.
        public init(
            hasRoute: @escaping (String) -> Bool?,
            hasNetwork: @escaping () -> Bool,
            answersNames: @escaping () -> Bool
        ) {
            self.hasRoute = hasRoute
            self.hasNetwork = hasNetwork
            self.answersNames = answersNames
        }
    }

    /// Whether a failure may be the network's at all: a name that was not resolved, a connection that was not
    /// made, broke or fell silent (libcurl-errors(3)).
    public static func isSuspect(_ cause: TransferCause) -> Bool {
        guard case .transport(let code, _, let handshakeAlert) = cause, !handshakeAlert else { return false }
        return switch code {
        case 5, 6, 7, 16, 18, 28, 35, 52, 55, 56, 92, 95, 96, 97: true
        default: false
        }
    }

    /// Judges a failure.
    ///
    /// Where addresses were tried, the routes to them decide: one that has a way out is enough for the failure
    /// to be another's. Where none was, a name was looked up in vain, and the name service decides.
    ///
    /// - Parameters:
    ///   - cause: Why the transfer ended.
    ///   - host: The name or address that the request went to.
    ///   - addresses: The numeric addresses that a connection was tried to, the proxy's if there is one.
    ///   - facts: What the machine looks like now.
    /// - Returns: What is lacking; nil if the failure is to be judged as any other.
    public static func judge(
        _ cause: TransferCause,
        host: String,
        addresses: [String],
        facts: Facts
    ) -> NetworkLack? {
        guard self.isSuspect(cause), case .transport(let code, _, _) = cause else { return nil }
        if addresses.isEmpty {
            let isName = code == 5 || code == 6 || code == 28
            guard isName, !Loopback.contains(host: host), NetworkAddress(host) == nil else { return nil }
            guard !facts.answersNames() else { return nil }
            return facts.hasNetwork() ? .nameService : .network
        }
        guard !addresses.contains(where: { Loopback.contains(host: $0) || facts.hasRoute($0) ?? true }) else {
            return nil
        }
        return facts.hasNetwork() ? .route : .network
    }
}

/// The addresses of this machine itself, which no network is needed for.
enum Loopback {
    /// Whether a name or numeric address is one (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
    static func contains(host: String) -> Bool {
        guard let ip = NetworkAddress(host) else {
            return host == "localhost" || host.hasSuffix(".localhost")
        }
        return ["127.0.0.0", "::1"].contains { text in
            NetworkAddress(text).map { ip.isInside($0, bits: text == "::1" ? 128 : 8) } ?? false
        }
    }
}
