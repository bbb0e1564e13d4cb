/// Decides what is asked of a server for a partly fetched object, and what its answer is good for.
///
/// Two versions of an object are never put together: whatever speaks against the answer being of the stored
/// version starts the object anew (RFC 9110 §14.2, §14.4, §15.3.7).
public enum ResumePlan {
    /// Bytes that are fetched again and compared where no strong validator vouches for the object.
    ///
    /// It catches most replaced files, and no subtly patched ones.
    public static let overlapBytes: Int64 = 64 * 1_024

    /// What to ask for, to go on with an object.
    ///
    /// - Parameters:
    ///   - durable: Bytes that are there, from the beginning.
    ///   - stored: What is known of the object that they are of.
    ///   - hasBrokenIfRange: Whether this server is known to send everything although nothing has changed.
    ///   - wantsOverlap: Whether the server's word that the object is the same is not enough.
    /// - Returns: The request; from 0 if the transfer must start anew.
    public static func request(
        durable: Int64,
        stored: RemoteObject?,
        hasBrokenIfRange: Bool = false,
        wantsOverlap: Bool = false
    ) -> ResumeRequest {
        guard durable > 0, let stored, stored.contentEncoding == nil, stored.acceptsRanges != false,
            durable <= stored.totalBytes ?? .max
        else { return ResumeRequest(offset: 0, overlap: 0, condition: nil) }
        let condition = hasBrokenIfRange ? nil : stored.ifRange
        if stored.isResumable, !wantsOverlap {
            return ResumeRequest(offset: durable, overlap: 0, condition: condition)
        }
        // Where all would be compared, fetching all anew costs the same and proves more.
        guard durable > self.overlapBytes else { return ResumeRequest(offset: 0, overlap: 0, condition: nil) }
        return ResumeRequest(
            offset: durable - self.overlapBytes,
            overlap: self.overlapBytes,
            condition: condition
        )
    }

    /// Judges the head of the answer to a GET before the first byte of its body is stored.
    ///
    /// - Parameters:
    ///   - head: The final head, no 1xx.
    ///   - offset: The first byte that was asked for; 0 means that no `Range` was sent.
    ///   - overlap: Bytes from there on that are there already.
    ///   - stored: What is known of the object; nil if this is the first answer.
    ///   - now: Our clock.
    /// - Returns: What to do with the body, if there is one.
    public static func judge(
        _ head: ResponseHead,
        offset: Int64,
        overlap: Int64 = 0,
        stored: RemoteObject?,
        now: Timestamp
    ) -> AnswerVerdict {
        switch head.status {
        case 200, 203:
            self.judgeWhole(head, offset: offset, stored: stored, now: now)
        case 206:
            self.judgePart(head, offset: offset, stored: stored, now: now)
        case 304:
            .bad("the server answered 304 to a request without conditions")
        case 204, 205:
            .bad("the server answered \(head.status), which has no body")
        case 201...299:
            .bad("the server answered \(head.status) instead of sending the file")
        case 301, 302, 303, 307, 308:
            .redirect
        case 412 where offset > 0:
            .askAgain(.changed)
        case 416 where offset > 0:
            self.judgeUnsatisfied(head, offset: offset, held: offset + overlap, stored: stored, now: now)
        case 300...599:
            .refused
        default:
            .bad("the server answered with status \(head.status)")
        }
    }

    private static func judgeWhole(
        _ head: ResponseHead,
        offset: Int64,
        stored: RemoteObject?,
        now: Timestamp
    ) -> AnswerVerdict {
        let length: Int64?
        switch MessageLength(head: head) {
        case .length(let value): length = value
        case .chunked, .untilClose, .none: length = nil
        case .contradictory(let what): return .bad("the server sent \(what)")
        }
        // Content-Range means nothing in a 200 (RFC 9110 §14.4), but a server that names a part may send one.
        if case .satisfied(let first, let last, let total)? = self.contentRange(head),
            first > 0 || total.map({ last + 1 < $0 }) ?? false
        {
            return offset > 0
                ? .askAgain(.unusableRange) : .bad("the server sent a part of the file as the whole")
        }
        var object = RemoteObject(head: head, totalBytes: length, now: now)
        if object.contentEncoding != nil { object.totalBytes = nil }  // the length counts coded bytes
        let comparison = stored?.compare(object)
        if self.isUnexpectedPage(object, stored: stored), comparison != .same {
            return .bad("the server sent a web page instead of the file")
        }
        guard offset > 0 else { return .whole(object, length: length, restart: nil) }
        if object.contentEncoding != nil, stored?.contentEncoding == nil {
            return .whole(object, length: length, restart: .encoded)
        }
        return .whole(object, length: length, restart: comparison == .same ? .rangesIgnored : .changed)
    }

    private static func judgePart(
        _ head: ResponseHead,
        offset: Int64,
        stored: RemoteObject?,
        now: Timestamp
    ) -> AnswerVerdict {
        guard offset > 0 else {
            return .bad("the server sent a part of the file without being asked for one")
        }
        guard let stored else { return .askAgain(.unusableRange) }
        let bodyLength = MessageLength(head: head)
        if case .contradictory(let what) = bodyLength { return .bad("the server sent \(what)") }
        guard case .satisfied(let first, let last, let total)? = self.contentRange(head) else {
            return .askAgain(.unusableRange)
        }
        let answer = RemoteObject(head: head, totalBytes: total, now: now)
        if answer.contentType == "multipart/byteranges" { return .askAgain(.unusableRange) }
        if answer.contentEncoding != nil || stored.contentEncoding != nil { return .askAgain(.encoded) }
        let comparison = stored.compare(answer)
        if comparison == .different || last >= stored.totalBytes ?? .max || offset > total ?? .max {
            return .askAgain(.changed)
        }
        if comparison != .same, self.isUnexpectedPage(answer, stored: stored) { return .askAgain(.changed) }
        if first > offset { return .askAgain(.unusableRange) }
        if last < offset { return .askAgain(.tooShort) }
        let range = ByteRange(start: first, end: last + 1)
        // A part of which nobody knows what it holds; the whole may come as it should.
        if case .length(let length) = bodyLength, length != range.count { return .askAgain(.unusableRange) }
        return .append(
            self.merge(stored, answer, proved: comparison == .same),
            range: range,
            skip: offset - first,
            proved: comparison == .same
        )
    }

    private static func judgeUnsatisfied(
        _ head: ResponseHead,
        offset: Int64,
        held: Int64,
        stored: RemoteObject?,
        now: Timestamp
    ) -> AnswerVerdict {
        guard let stored, case .unsatisfied(let total)? = self.contentRange(head) else {
            return .askAgain(.unusableRange)
        }
        let answer = RemoteObject(head: head, totalBytes: total, now: now)
        // Fewer bytes than are there: it is another object, though it may end where the overlap begins.
        if total < held || stored.compare(answer) == .different { return .askAgain(.changed) }
        return total == offset ? .complete : .askAgain(.unusableRange)
    }

    /// The one range that the head names; nil if there is none, a broken one, or two that differ.
    private static func contentRange(_ head: ResponseHead) -> ContentRange? {
        let values = Set(head.values("Content-Range"))
        return values.count == 1 ? values.first.flatMap(ContentRange.init) : nil
    }

    /// Whether a web page came for an object that was none: portals and login pages answer 200.
    private static func isUnexpectedPage(_ answer: RemoteObject, stored: RemoteObject?) -> Bool {
        guard let stored, stored.contentType != nil || stored.validator != nil else { return false }
        return MediaType.isWebPage(answer.contentType) && !MediaType.isWebPage(stored.contentType)
    }

    /// The stored object with what a 206 adds: validators only if it is proved to be the same object.
    private static func merge(_ stored: RemoteObject, _ answer: RemoteObject, proved: Bool) -> RemoteObject {
        var object = stored
        object.totalBytes = stored.totalBytes ?? answer.totalBytes
        object.contentType = stored.contentType ?? answer.contentType
        object.acceptsRanges = true
        guard proved else { return object }
        object.entityTag = stored.entityTag ?? answer.entityTag
        if stored.lastModified == nil {
            object.lastModified = answer.lastModified
            object.lastModifiedIsStrong = answer.lastModifiedIsStrong
        }
        return object
    }
}
