public import FerryCore

/// One HTTP request as the network loop sends it: exactly these fields, no redirect followed.
public struct HTTPRequest: Sendable {
    /// The lowest TLS version that is accepted.
    public enum TLSMinimum: String, Sendable, CaseIterable {
        /// TLS 1.2.
        case v12 = "1.2"
        /// TLS 1.3.
        case v13 = "1.3"
    }

    /// The URL, http or https, without user info.
    public var url: String
    /// The method.
    public var method: String
    /// The fields to send, besides Host, Accept and User-Agent, which have defaults.
    public var fields: [ResponseHead.Field]
    /// A file of PEM certificates to trust instead of the system's.
    public var caFile: String?
    /// The proxy's URL; nil = direct, whatever the environment says.
    public var proxy: String?
    /// Hosts that are reached directly, in libcurl's notation.
    public var noProxy: String?
    /// Asks for content codings and decodes the body; else the body comes as it is sent.
    public var decodes: Bool
    /// The lowest TLS version.
    public var tlsMinimum: TLSMinimum
    /// Whether HTTP/2 may be spoken over TLS, if the server offers it; else it is HTTP/1.1.
    public var http2: Bool
    /// The size of the receive buffer, in bytes: what libcurl hands over at once at most.
    public var bufferBytes: Int
    /// Limit for resolving, connecting and the TLS handshake together.
    public var connectTimeout: Duration
    /// Without a byte for this long the exchange ends with code 28, in any phase, and after five times as long at
    /// less than 10 bytes a second (see `StallWatch`); zero is no limit.
    public var stallTimeout: Duration

    /// What is sent; nil for no body.
    public var body: (any RequestSource)?
    /// Asks the server for leave before the body is sent (`Expect: 100-continue`, RFC 9110 §10.1.1).
    ///
    /// A server that does not know it is waited for a second; one that refuses it answers 417, which ends the
    /// exchange after its head.
    public var expectsContinue: Bool
    /// Takes no connection that is open already.
    ///
    /// One of those may be dead, and libcurl then sends the request again by itself: not for requests that must
    /// not be repeated (RFC 9110 §9.2.2).
    public var freshConnection: Bool
    /// The job whose limit on bytes a second holds.
    public var job: JobID?
    /// The hosts whose limits on bytes a second hold, as `name:port`.
    public var limitHosts: [String]
    /// Told the heads of interim answers other than 100, on the loop's thread.
    public var onInterim: (@Sendable (ResponseHead) -> Void)?

    /// Makes a GET of a URL with nothing special.
    public init(url: String, method: String = "GET", fields: [ResponseHead.Field] = []) {
        self.url = url
        self.method = method
        self.fields = fields
        self.decodes = false
        self.tlsMinimum = .v12
        self.http2 = false
        self.bufferBytes = 128 * 1_024
        self.connectTimeout = .seconds(30)
        self.stallTimeout = .seconds(60)
        self.expectsContinue = false
        self.freshConnection = false
        self.limitHosts = []
    }
}
