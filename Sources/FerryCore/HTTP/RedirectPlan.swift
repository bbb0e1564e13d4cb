/// Follows redirects by our own rules (RFC 9110 §15.4): one value for each try of a job.
///
/// libcurl is told not to follow, since it takes custom headers with secrets along to other hosts.
public struct RedirectPlan: Sendable {
    /// What to do about one redirect.
    public enum Step: Hashable, Sendable {
        /// Ask there.
        ///
        /// With `dropsCredentials` the origin has changed, now or at an earlier hop: only the user's fields
        /// that ``RedirectPlan/mayCross(header:)`` names go along.
        case follow(WebAddress, dropsCredentials: Bool)
        /// Not allowed, reason `policy`; a sentence.
        case refuse(String)
        /// Cannot be followed, reason `bad-response`; a sentence fragment with its subject.
        case broken(String)
    }

    private let limit: Int
    private var hops = 0
    private var visited: Set<String> = []
    private var hasCrossed = false

    /// Starts at the original URL, where no hop has been made.
    public init(limit: Int = 10) {
        self.limit = limit
    }

    /// Judges the next redirect.
    ///
    /// - Parameters:
    ///   - status: The answer's status.
    ///   - from: The address that was asked.
    ///   - to: Its `Location`, resolved against `from`; nil if missing or no URL.
    ///   - policy: What may be spoken to.
    /// - Returns: The step; after any other than `follow` this value is of no more use.
    public mutating func next(
        status: Int,
        from: WebAddress,
        to: WebAddress?,
        policy: TransportPolicy
    ) -> Step {
        guard [301, 302, 303, 307, 308].contains(status) else {
            return .broken("the server answered \(status), which is no redirect")
        }
        guard let to else {
            return .broken("the server redirects to nowhere: its Location is missing or no URL")
        }
        if from.origin.scheme == "https", to.origin.scheme != "https" {
            return .refuse(
                "\(from.origin.host) redirects from https to \(to.origin.scheme), which is refused"
            )
        }
        if let refusal = policy.refusal(of: to.origin) {
            return .refuse("\(from.origin.host) redirects: \(refusal)")
        }
        if to.hasUserInfo {
            return .refuse("\(from.origin.host) redirects to an address with a user name, which is refused")
        }
        self.visited.insert(Self.withoutFragment(from.url))
        guard !self.visited.contains(Self.withoutFragment(to.url)) else {
            return .broken("the server redirects in a circle")
        }
        guard self.hops < self.limit else {
            return .broken("the server redirects more than \(self.limit) times")
        }
        self.hops += 1
        if from.origin != to.origin { self.hasCrossed = true }
        return .follow(to, dropsCredentials: self.hasCrossed)
    }

    /// Whether a field that the user gave may go to another origin: a short list of plain ones.
    public static func mayCross(header name: String) -> Bool {
        ["accept", "accept-language", "user-agent"].contains(ASCII.lowercased(name))
    }

    private static func withoutFragment(_ url: String) -> String {
        String(url.prefix { $0 != "#" })
    }
}
