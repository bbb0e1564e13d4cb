extension RetryPlan {
    /// Says in one sentence what happened, without a final full stop and fit for a terminal.
    ///
    /// - Parameters:
    ///   - cause: Why the transfer ended.
    ///   - host: The host that it was about, as in the URL.
    /// - Returns: The sentence.
    public static func message(_ cause: TransferCause, host: String) -> String {
        let sentence =
            switch cause {
            case .status(let status, let wish, _, _):
                "\(host) answered \(status)" + (self.phrase(status).map { " (\($0))" } ?? "")
                    + (wish.map { $0 > .zero ? ", and asks to wait \(DurationText.format($0))" : "" } ?? "")
            case .transport(let code, let detail, let handshakeAlert):
                self.transport(code, alert: handshakeAlert, host: host)
                    + (detail.isEmpty ? "" : ": \(detail)")
            case .hostPaused(let target, _): "\(host) redirects to \(target), which is left alone for a while"
            case .shortBody: "the connection to \(host) ended before the file did"
            case .badResponse(let what), .redirect(let what): "\(host): \(what)"
            case .webPage: "\(host) sent a web page instead of the file"
            case .changed: "the file on \(host) changed again and again while it was fetched"
            case .checksum(let what): "what \(host) sends does not have the expected \(what)"
            case .tooLarge: "the file on \(host) is larger than the size limit"
            case .tlsTruncated: "\(host) ended TLS without saying that the file was whole"
            case .local(let errno, let path): "\(path): \(self.local(errno))"
            case .network(.network): "no network: \(host) cannot be reached"
            case .network(.route): "no route to \(host)"
            case .network(.nameService): "no name service: the name \(host) cannot be looked up"
            case .exists(let path): "\(path) exists already"
            case .policy(let what), .busy(let what), .refused(_, let what, _): what
            }
        return FileName.display(sentence)
    }

    private static func transport(_ code: Int32, alert: Bool, host: String) -> String {
        switch code {
        case 5: "the proxy's name could not be resolved"
        case 6: "the name \(host) could not be resolved"
        case 7: "no connection to \(host) could be made"
        case 28: "\(host) did not answer or sent nothing for too long"
        case 16, 18, 52, 55, 56, 92, 95, 96: "the connection to \(host) broke"
        case 97: "the proxy refused the connection to \(host)"
        case 35:
            alert
                ? "\(host) refused the TLS handshake" : "the connection to \(host) broke in the TLS handshake"
        case 60, 83, 91: "the certificate of \(host) could not be verified"
        case 90: "the key of \(host) is none of the pinned ones"
        case 53, 54, 58, 59, 64, 66, 77, 80, 82, 98: "TLS with \(host) failed"
        case 63: "the file on \(host) is larger than the size limit"
        case 67, 94: "\(host) did not accept the credentials"
        case 23, 26, 42, 65: "a local file could not be used"
        case 2, 27, 45, 99: "this machine lacks what the transfer needs (libcurl code \(code))"
        case 1, 3, 4, 43, 48, 49: "the transfer from \(host) is not supported (libcurl code \(code))"
        case 8, 22, 33, 47, 61: "\(host) sent an answer that cannot be used"
        default: "the transfer from \(host) failed (libcurl code \(code))"
        }
    }

    private static func local(_ errno: Int32) -> String {
        switch errno {
        case 1: "not permitted"
        case 2: "no such file or folder"
        case 5: "the disk reported an error"
        case 12: "out of memory"
        case 13: "permission denied"
        case 17: "exists already"
        case 20: "not a folder"
        case 21: "is a folder"
        case 23, 24: "too many open files"
        case 27: "larger than the file system allows"
        case 28: "no space left on the device"
        case 30: "the file system is read-only"
        case 36: "the name is too long"
        case 40: "too many links"
        case 122: "the disk quota is used up"
        default: "error \(errno)"
        }
    }

    /// The reason phrases of RFC 9110 §15 and RFC 6585 that a user may meet.
    private static func phrase(_ status: Int) -> String? {
        switch status {
        case 400: "bad request"
        case 401: "credentials wanted"
        case 403: "forbidden"
        case 404: "not found"
        case 405: "method not allowed"
        case 407: "the proxy wants credentials"
        case 408: "request time-out"
        case 410: "gone"
        case 413: "too large"
        case 416: "range not satisfiable"
        case 421: "misdirected request"
        case 429: "too many requests"
        case 451: "unavailable for legal reasons"
        case 500: "internal server error"
        case 501: "not implemented"
        case 502: "bad gateway"
        case 503: "service unavailable"
        case 504: "gateway time-out"
        case 507: "no space on the server"
        case 509: "bandwidth limit exceeded"
        default: nil
        }
    }
}
