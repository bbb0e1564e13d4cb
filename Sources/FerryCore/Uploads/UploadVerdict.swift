/// Judges the answer to an upload that goes up in one request.
public enum UploadVerdict {
    /// Whether a request may be sent again when nobody knows whether it was carried out (RFC 9110 §9.2.2).
    public static func isRepeatable(method: String, hasKey: Bool) -> Bool {
        hasKey || ["PUT", "DELETE", "GET", "HEAD", "OPTIONS"].contains(method)
    }

    /// Judges an answer: success only if all of the body had left.
    public static func judge(_ answer: UploadAnswer, isRepeatable: Bool, hasKey: Bool, host: String)
        -> UploadStep
    {
        let status = answer.head.status
        switch status {
        case 200...205:
            return answer.sentAll
                ? .done
                : .failed(.badResponse("the server answered \(status) before it had the whole body"))
        case 200..<300:
            return .failed(.badResponse("the server answered \(status), which says nothing about an upload"))
        case 409 where hasKey:
            return .failed(.busy("\(host) is still at work on this upload, as its idempotency key tells"))
        case 500..<600 where !isRepeatable && answer.sentAll && !Self.isRefused(answer):
            let words = answer.words.map { ": \($0)" } ?? ""
            return .failed(
                .refused(
                    .server,
                    "\(host) answered \(status)\(words); it may have the upload",
                    advice: Self.advice
                )
            )
        default:
            return answer.failure
        }
    }

    /// What becomes of a request that must not be repeated, whose body has left, and that nobody answered.
    public static func unanswered(host: String) -> TransferCause {
        .refused(
            .gaveUp,
            "the whole body was sent to \(host) and no answer came; the server may have it",
            advice: self.advice
        )
    }

    private static let advice =
        "look on the server; ferry retry JOB sends it again. With --idempotency-key auto,"
        + " or --method PUT, repeating is harmless"

    /// Answers that say by convention that nothing was done.
    private static func isRefused(_ answer: UploadAnswer) -> Bool {
        answer.head.status == 503 && answer.retryAfter != nil
    }
}
