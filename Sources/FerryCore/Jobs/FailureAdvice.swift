/// What helps after a failure: for every cause and every reason one sentence without a final full stop.
///
/// `JOB` stands for the job's number, which ``naming(_:_:)`` puts in.
public enum FailureAdvice {
    /// What helps where no more is known than the reason.
    public static func text(_ reason: FailureReason) -> String {
        switch reason {
        case .notFound:
            "check the address; if the file has moved: ferry set JOB --url NEW-URL"
        case .forbidden:
            "the server wants other rights: give credentials with ferry set JOB -H 'Authorization: …', or ask "
                + "its owner for access"
        case .unauthorized:
            "give credentials: ferry set JOB -H 'Authorization: …'"
        case .linkExpired:
            "get a fresh link, then: ferry set JOB --url NEW-URL goes on with what is there; --renew PROGRAM "
                + "has a program do that"
        case .changed:
            "try again when the file is at rest: ferry retry JOB"
        case .sourceChanged:
            "ferry cancel JOB, then put the file anew as it is now"
        case .checksum:
            "what came is kept beside the destination; ferry retry JOB fetches it anew"
        case .tooLarge:
            "look at the size of the file and at --size-limit; the server may have a limit of its own"
        case .policy:
            "use an address that begins with https://, or look at --allow-http and the transport settings that "
                + "ferry config shows"
        case .tls:
            "check this machine's clock, the server's certificate and --cacert, then: ferry retry JOB"
        case .badResponse:
            "check the address; ferry log JOB shows what was answered, ferry retry JOB asks again"
        case .localIO:
            "look at the disk and the folder's permissions, then: ferry retry JOB"
        case .exists:
            "give another name with ferry set JOB -o FILE, or add it anew with --if-exists"
        case .unsupported:
            "the server cannot do what was asked; ferry log JOB shows its answers"
        case .dependency:
            "see to the job that it comes after, then: ferry retry JOB; ferry set JOB --after none waits for it "
                + "no longer"
        case .gaveUp:
            "look at the cause, then: ferry retry JOB"
        case .server:
            "ferry log JOB shows what was answered; when that is put right: ferry retry JOB"
        }
    }

    /// What helps against a cause that led to a reason.
    public static func text(_ cause: TransferCause, reason: FailureReason) -> String {
        let special: String? =
            switch cause {
            case .status(let status, _, _, _): self.text(status: status, reason)
            case .transport(let code, _, _): self.text(code: code, reason)
            case .local(let errno, _): self.text(errno: errno, reason)
            case .tooLarge: "a larger file needs a larger --size-limit: cancel the job and add it anew"
            case .webPage: "open the address in a browser: the server or the network wants a login"
            case .redirect:
                "the server sends the request round in a circle or nowhere; open the address in a browser"
            case .refused(_, _, let advice): advice
            case .network: "check this machine's network, then: ferry retry JOB"
            case .shortBody, .badResponse, .changed, .checksum, .tlsTruncated, .exists, .policy, .busy,
                .hostPaused:
                nil
            }
        return special ?? self.text(reason)
    }

    private static func text(status: Int, _ reason: FailureReason) -> String? {
        switch (status, reason) {
        case (_, .linkExpired), (_, .gaveUp): nil
        case (407, _): "the proxy wants credentials; put them into the proxy's address and add the job anew"
        case (410, _): "the file is gone for good; if there is another address: ferry set JOB --url NEW-URL"
        case (451, _): "the server may not give the file out for legal reasons; look for another source"
        case (413, _): "the server takes less than this at once; ask its owner for the limit"
        case (405, _):
            "the address takes no such request; check it, and the --method and --protocol of an upload"
        case (501, _), (505, _): "the server is too old for this request, or the address is not meant for it"
        case (300..<400, _): "the server redirects without saying where to; open the address in a browser"
        case (500..<600, .server):
            "the server has a fault of its own; tell its owner, or try later: ferry retry JOB"
        default: nil
        }
    }

    /// The codes of libcurl-errors(3).
    private static func text(code: Int32, _ reason: FailureReason) -> String? {
        switch (code, reason) {
        case (5, .gaveUp), (97, .gaveUp): "check the proxy's address, then: ferry retry JOB"
        case (6, .gaveUp): "check the host's name and this machine's name service, then: ferry retry JOB"
        case (7, .gaveUp), (28, .gaveUp):
            "check the address, the network and any firewall, then: ferry retry JOB"
        case (58, _), (77, _), (82, _): "check the files of the certificates, then: ferry retry JOB"
        case (90, _): "the server's key has changed: find out why before it is trusted"
        case (63, _): self.text(.tooLarge, reason: .tooLarge)
        case (2, _), (27, _), (45, _), (99, _):
            "look at this machine's memory and limits, then: ferry retry JOB"
        default: nil
        }
    }

    /// The numbers are Linux's (errno(3)).
    private static func text(errno: Int32, _ reason: FailureReason) -> String? {
        guard reason == .localIO else { return nil }
        return switch errno {
        case 1, 13, 30:
            "make the folder writable or give another one with ferry set JOB -o FILE, then: "
                + "ferry retry JOB"
        case 2, 20:
            "make the folder anew, or give another one with ferry set JOB -o FILE, then: ferry retry JOB"
        case 5: "the disk reports errors: look at the kernel's log, save what matters, then: ferry retry JOB"
        case 12, 23, 24: "look at this machine's memory and limits, then: ferry retry JOB"
        case 27: "the file system takes no file as large as this; use another: ferry set JOB -o FILE"
        case 36: "give a shorter name: ferry set JOB -o FILE"
        default: nil
        }
    }

    /// The advice with the job's number in the place of `JOB`.
    public static func naming(_ job: JobID, _ advice: String) -> String {
        advice.split(separator: " ", omittingEmptySubsequences: false).map { word in
            let name = word.prefix { $0.isLetter }
            return name == "JOB" ? "\(job)\(word.dropFirst(name.count))" : String(word)
        }.joined(separator: " ")
    }
}
