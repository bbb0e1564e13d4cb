/// What a redirect means for a request that has a body (RFC 9110 §15.4).
public enum UploadRedirect: Hashable, Sendable {
    /// Send the same request, with its whole body, to the other address.
    case again
    /// The body was taken; the other address tells what became of it.
    case look
    /// It cannot be followed; a sentence fragment with its subject.
    case broken(String)

    /// Judges a redirect.
    ///
    /// A POST that is answered with 301, 302 or 303 becomes a GET, but only after all of its body has left: what
    /// was answered before that was no answer to the body.
    ///
    /// - Parameters:
    ///   - status: The answer's status.
    ///   - method: The request's method.
    ///   - hasContent: Whether the request has body bytes.
    ///   - sentAll: Whether all of them had left.
    /// - Returns: The meaning; nil if the status is no redirect.
    public static func judge(status: Int, method: String, hasContent: Bool, sentAll: Bool) -> UploadRedirect?
    {
        switch status {
        case 307, 308:
            return .again
        case 301, 302:
            guard method == "POST", hasContent, sentAll else { return .again }
            return .look
        case 303:
            guard hasContent else { return .again }
            return sentAll
                ? .look : .broken("the server redirected with 303 before it had the body")
        default:
            return nil
        }
    }
}
