/// What the scripted server answers; everything can be wrong on purpose.
public struct Reply: Sendable {
    /// The status code.
    public var status: Int
    /// The reason phrase; nil takes the usual one.
    public var reason: String?
    /// Header lines as sent, in order, without line ends; `Content-Length` and the like come from
    /// ``declaredLength``.
    public var headers: [String]
    /// The body.
    public var body: BodySource
    /// What the head says of the body's length.
    public var declaredLength: DeclaredLength
    /// What goes wrong.
    public var fault: Fault?
    /// Whether the connection goes on after this reply; it ends anyway where the body's end is its close.
    public var keepsConnection: Bool

    /// Makes a reply.
    public init(
        _ status: Int,
        headers: [String] = [],
        body: BodySource = .bytes([]),
        declaredLength: DeclaredLength = .exact,
        fault: Fault? = nil,
        keepsConnection: Bool = true
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.declaredLength = declaredLength
        self.fault = fault
        self.keepsConnection = keepsConnection
    }

    /// A reply with a text as its body.
    public static func text(_ status: Int, _ text: String, type: String = "text/plain") -> Reply {
        Reply(status, headers: ["Content-Type: \(type)"], body: .bytes(Array(text.utf8)))
    }

    /// A redirect.
    public static func redirect(_ status: Int = 302, to location: String) -> Reply {
        Reply(status, headers: ["Location: \(location)"])
    }

    /// The same reply with a fault.
    public func with(_ fault: Fault) -> Reply {
        var reply = self
        reply.fault = fault
        return reply
    }

    /// The same reply with one more header line.
    public func with(header line: String) -> Reply {
        var reply = self
        reply.headers.append(line)
        return reply
    }

    /// The head as it goes over the wire.
    var head: String {
        var lines = ["HTTP/1.1 \(self.status) \(self.reason ?? Self.usualReason(self.status))"]
        lines += self.headers
        switch self.declaredLength {
        case .exact:
            // RFC 9110 §8.6: none on 1xx and 204.
            if self.status != 204 && self.status >= 200 { lines.append("Content-Length: \(self.body.size)") }
        case .lie(let length): lines.append("Content-Length: \(length)")
        case .raw(let raw): lines += raw
        case .chunked: lines.append("Transfer-Encoding: chunked")
        case .none: break
        }
        if !self.keepsConnection || self.declaredLength.endsWithConnection {
            lines.append("Connection: close")
        }
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static func usualReason(_ status: Int) -> String {
        let reasons = [
            200: "OK", 201: "Created", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently",
            302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect",
            308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
            404: "Not Found", 410: "Gone", 412: "Precondition Failed", 416: "Range Not Satisfiable",
            429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable",
        ]
        return reasons[status] ?? "Status"
    }
}

/// What a reply says of its body's length.
public enum DeclaredLength: Sendable, Equatable {
    /// The true `Content-Length`.
    case exact
    /// Another `Content-Length`; the body is sent as it is, then the connection is closed.
    case lie(Int64)
    /// These header lines instead; the connection is closed after the body.
    case raw([String])
    /// Nothing: the body ends with the connection.
    case none
    /// `Transfer-Encoding: chunked`.
    case chunked

    var endsWithConnection: Bool {
        switch self {
        case .exact, .chunked: false
        case .lie, .raw, .none: true
        }
    }
}

/// What goes wrong with a reply; byte counts are body bytes.
public enum Fault: Sendable {
    /// Closes the connection after so many bytes.
    case cut(after: Int64)
    /// Resets the connection after so many bytes, once all of them have reached the client's kernel.
    case reset(after: Int64)
    /// Sends nothing more after so many bytes until the gate opens; without a gate until the server stops.
    case stall(after: Int64, until: Gate? = nil)
    /// Sends the body in small pieces with a pause after each.
    case trickle(chunk: Int, every: Duration)
    /// Sends half of the head and closes.
    case truncateHead
    /// Closes before anything is sent.
    case closeBeforeHead
    /// Waits for the gate before the head is sent.
    case hold(Gate)
    /// Sends everything, then ends the TLS connection without close_notify; a reset without TLS.
    case noCloseNotify

    /// The body bytes after which it strikes.
    var limit: Int64? {
        switch self {
        case .cut(let limit), .reset(let limit), .stall(let limit, _): limit
        case .trickle, .truncateHead, .closeBeforeHead, .hold, .noCloseNotify: nil
        }
    }
}
