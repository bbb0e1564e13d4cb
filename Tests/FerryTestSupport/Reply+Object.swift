import Glibc

/// One way in which a server of files is not as it should be.
public enum Quirk: Sendable, Hashable {
    /// Every request gets 200 and everything; `Accept-Ranges` is left out.
    case rangesIgnored
    /// The 206 starts so many bytes before what was asked for, and says so.
    case earlyStart(by: Int64)
    /// The 206 starts so many bytes after what was asked for, and says so.
    case lateStart(by: Int64)
    /// The 206 ends so many bytes before what was asked for, and says so.
    case shortEnd(by: Int64)
    /// The 206 has no `Content-Range`.
    case noContentRange
    /// The `Content-Range` of a 206 is this value.
    case contentRange(String)
    /// The `Content-Range` of a 206 names this total.
    case otherTotal(Int64)
    /// The `Content-Range` of a 206 names `*` as the total.
    case unknownTotal
    /// The 206 has this entity tag.
    case otherTag(String)
    /// The 206 has neither entity tag nor date.
    case noValidatorOnPart
    /// The 206 is a `multipart/byteranges` of one part.
    case multipart
    /// Bodies come in chunks, without a length.
    case chunked
    /// Bodies end with the connection, without a length.
    case noLength
    /// Answers carry this `Content-Encoding`; the bytes stay as they are.
    case contentCoding(String)
    /// The 416 has an HTML body and, unless it is true here, no `Content-Range`.
    case unsatisfiablePage(contentRange: Bool)
    /// The 416 says that the object has this size.
    case unsatisfiableTotal(Int64)
    /// The entity tag is weak.
    case weakTag
    /// There is no entity tag.
    case noTag
    /// Each request gets another entity tag.
    case newTagEachRequest
    /// There is no `Last-Modified`.
    case noLastModified
    /// There is no `Date`.
    case noDate
    /// `Last-Modified` is the moment of the request, so it is weak.
    case justModified
    /// A part is sent whatever `If-Range` says.
    case ifRangeIgnored
    /// `If-Match` plays no part.
    case ifMatchIgnored
    /// A request for a part gets 200 although nothing changed.
    case fullAlthoughUnchanged
    /// A request for a part gets 200 although nothing changed if it has `If-Range`.
    case fullWithIfRange
}

/// The quirks of a server; `[]` is a correct one.
public typealias Quirks = Set<Quirk>

extension Reply {
    /// Answers a GET or HEAD as a correct server of files does (RFC 9110 §13 and §14), but for the quirks.
    public static func object(
        _ object: TestObject,
        for request: RecordedRequest,
        quirks: Quirks = []
    ) -> Reply {
        ObjectReply(object: object, request: request, quirks: quirks).reply
    }
}

/// The decisions of a server of files for one request.
private struct ObjectReply {
    let object: TestObject
    let request: RecordedRequest
    let quirks: Quirks

    var reply: Reply {
        guard self.request.method == "GET" || self.request.method == "HEAD" else {
            return Reply(405, headers: ["Allow: GET, HEAD"])
        }
        if let wanted = self.request.header("If-Match"), !self.quirks.contains(.ifMatchIgnored),
            !self.matchesTag(list: wanted)
        {
            return Reply(412, headers: self.commonHeaders + self.validators)
        }
        guard let range = self.request.range, self.request.method == "GET",
            !self.quirks.contains(.rangesIgnored), !self.quirks.contains(.fullAlthoughUnchanged),
            self.ifRangeHolds
        else { return self.whole }
        guard range.start < self.object.size else { return self.unsatisfiable }
        return self.part(range)
    }

    // MARK: The three answers

    private var whole: Reply {
        self.finish(
            Reply(
                200,
                headers: self.commonHeaders + self.validators + [Self.type],
                body: .slice(self.object, 0..<self.object.size)
            )
        )
    }

    private func part(_ range: (start: Int64, end: Int64?)) -> Reply {
        var first = range.start
        var last = min(range.end ?? self.object.size - 1, self.object.size - 1)
        var total = "\(self.object.size)"
        var contentRange: String?
        var validators = self.validators
        for quirk in self.quirks {
            switch quirk {
            case .earlyStart(let count): first = max(0, first - count)
            case .lateStart(let count): first = min(first + count, last)
            case .shortEnd(let count): last = max(first, last - count)
            case .otherTotal(let other): total = "\(other)"
            case .unknownTotal: total = "*"
            case .contentRange(let value): contentRange = value
            case .noValidatorOnPart: validators = []
            case .otherTag(let tag):
                validators = validators.filter { !$0.hasPrefix("ETag:") } + ["ETag: \(tag)"]
            default: break
            }
        }
        let field = "Content-Range: \(contentRange ?? "bytes \(first)-\(last)/\(total)")"
        var body = BodySource.slice(self.object, first..<(last + 1))
        var headers = self.commonHeaders + validators
        if self.quirks.contains(.multipart) {
            headers.append("Content-Type: multipart/byteranges; boundary=FERRY")
            let opening = "--FERRY\r\n\(Self.type)\r\n\(field)\r\n\r\n"
            body = .sequence([.bytes(Array(opening.utf8)), body, .bytes(Array("\r\n--FERRY--\r\n".utf8))])
        } else {
            headers.append(Self.type)
            if !self.quirks.contains(.noContentRange) { headers.append(field) }
        }
        return self.finish(Reply(206, headers: headers, body: body))
    }

    private var unsatisfiable: Reply {
        var total = self.object.size
        var page: Bool?
        for quirk in self.quirks {
            switch quirk {
            case .unsatisfiableTotal(let other): total = other
            case .unsatisfiablePage(let hasContentRange): page = hasContentRange
            default: break
            }
        }
        var reply =
            page == nil
            ? Reply(416) : Reply.text(416, "<html><h1>Range not satisfiable</h1></html>", type: "text/html")
        reply.headers = self.commonHeaders + self.validators + reply.headers
        if page != false { reply.headers.append("Content-Range: bytes */\(total)") }
        return reply
    }

    // MARK: Fields

    private static let type = "Content-Type: application/octet-stream"

    private var now: Int64 {
        Int64(time(nil))
    }

    private var tag: String? {
        if self.quirks.contains(.noTag) { return nil }
        if self.quirks.contains(.newTagEachRequest) { return "\"ferry-request-\(self.request.index)\"" }
        return self.quirks.contains(.weakTag) ? "W/\(self.object.etag)" : self.object.etag
    }

    private var lastModified: String {
        self.quirks.contains(.justModified) ? httpDate(self.now) : self.object.lastModified
    }

    private var commonHeaders: [String] {
        var lines: [String] = []
        if !self.quirks.contains(.noDate) { lines.append("Date: \(httpDate(self.now))") }
        if !self.quirks.contains(.rangesIgnored) { lines.append("Accept-Ranges: bytes") }
        return lines
    }

    private var validators: [String] {
        var lines: [String] = []
        if let tag = self.tag { lines.append("ETag: \(tag)") }
        if !self.quirks.contains(.noLastModified) { lines.append("Last-Modified: \(self.lastModified)") }
        return lines
    }

    /// RFC 9110 §13.1.1: strong comparison, any of a list.
    private func matchesTag(list: String) -> Bool {
        if list == "*" { return true }
        guard let tag = self.tag, !tag.hasPrefix("W/") else { return false }
        return list.split(separator: ",").contains { $0.drop { $0 == " " } == tag }
    }

    /// RFC 9110 §13.1.5: a strong tag or an equal date.
    private var ifRangeHolds: Bool {
        if self.quirks.contains(.fullWithIfRange) { return self.request.header("If-Range") == nil }
        guard let condition = self.request.header("If-Range"), !self.quirks.contains(.ifRangeIgnored) else {
            return true
        }
        if condition.hasPrefix("\"") { return condition == self.tag }
        return condition == self.lastModified && !self.quirks.contains(.noLastModified)
    }

    private func finish(_ reply: Reply) -> Reply {
        var reply = reply
        for quirk in self.quirks {
            switch quirk {
            case .chunked: reply.declaredLength = .chunked
            case .noLength: reply.declaredLength = .none
            case .contentCoding(let coding): reply.headers.append("Content-Encoding: \(coding)")
            default: break
            }
        }
        return reply
    }
}
