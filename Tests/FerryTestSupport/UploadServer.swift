import Synchronization

/// A server for resumable uploads on top of ``ScriptedServer``: tus 1.0.0, or the IETF's draft in one version.
///
/// It makes uploads at `/files` and keeps them at `/files/N`. What goes wrong is the test's to say.
public final class UploadServer: Sendable {
    /// What it speaks.
    public enum Dialect: Sendable, Equatable {
        /// tus 1.0.0 with these extensions.
        case tus(extensions: String)
        /// draft-ietf-httpbis-resumable-upload with this interop number.
        case ietf(Int)
    }

    /// How it differs from a plain one.
    public struct Habits: Sendable {
        /// Whether the bytes of a piece that broke off are kept.
        public var keepsCutPieces = true
        /// How many times HEAD tells the offset from before the last piece that broke off.
        public var staleHeads = 0
        /// `Tus-Max-Size`, or `max-size`.
        public var maxSize: Int?
        /// `max-append-size`; larger pieces are refused with 413.
        public var maxAppend: Int?
        /// Sends 104 with the upload's place before a body is read.
        public var sends104 = true
        /// `Location` of a new upload; nil is a relative one.
        public var location: (@Sendable (String) -> String)?
        /// The final answer to a whole upload.
        public var answer = Reply.text(200, "stored")

        /// Makes a plain one.
        public init() {}
    }

    /// Changes an answer that is about to be given; the number counts the requests with that method from 0.
    public typealias Override = @Sendable (_ request: RecordedRequest, _ number: Int) -> Reply?

    private struct Upload: Sendable {
        var length: Int
        var bytes: [UInt8] = []
        var isComplete = false
        var staleHeads = 0
        var staleOffset = 0
        var type: String?
        var metadata: String?
    }

    private final class State: Sendable {
        struct Content {
            var uploads: [Int: Upload] = [:]
            var made = 0
            var counts: [String: Int] = [:]
        }
        let content = Mutex(Content())
    }

    /// The server beneath.
    public let server: ScriptedServer
    private let state: State

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - dialect: What it speaks.
    ///   - habits: How it differs from a plain one.
    ///   - cut: After how many bytes a body breaks off; the number counts the requests with a body from 0.
    ///   - override: Answers that are given instead of the right one.
    /// - Throws: ``TestSupportError`` if no port can be had.
    public init(
        _ dialect: Dialect,
        habits: Habits = Habits(),
        cut: @escaping @Sendable (_ number: Int) -> Int64? = { _ in nil },
        override: @escaping Override = { _, _ in nil }
    ) throws {
        let state = State()
        self.state = state
        self.server = try ScriptedServer(
            bodies: { request, _ in
                var treatment = BodyTreatment()
                let length = Int64(request.header("Content-Length") ?? "") ?? 0
                if length > 0 {
                    treatment.cutAfter = cut(state.content.withLock { $0.counts["body", default: 0] })
                    state.content.withLock { $0.counts["body", default: 0] += 1 }
                }
                guard case .ietf(let version) = dialect, habits.sends104, request.path == "/files",
                    request.header("Upload-Draft-Interop-Version") == "\(version)", length > 0
                else { return treatment }
                let number = state.content.withLock { $0.made } + 1
                treatment.interim = [
                    "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /files/\(number)"
                        + "\r\nUpload-Draft-Interop-Version: \(version)"
                ]
                return treatment
            },
            handler: { request, _ in
                let number = state.content.withLock { content in
                    defer { content.counts[request.method, default: 0] += 1 }
                    return content.counts[request.method, default: 0]
                }
                if let reply = override(request, number) { return reply }
                return switch dialect {
                case .tus(let extensions): Self.tus(request, extensions, habits, state)
                case .ietf(let version): Self.ietf(request, version, habits, state)
                }
            }
        )
    }

    /// Where uploads are made.
    public var url: String { self.server.url("files") }

    /// The bytes of the uploads that are there, by their number.
    public var uploads: [Int: [UInt8]] { self.state.content.withLock { $0.uploads.mapValues(\.bytes) } }

    /// How many uploads were made.
    public var made: Int { self.state.content.withLock { $0.made } }

    /// Forgets all uploads.
    public func forget() { self.state.content.withLock { $0.uploads = [:] } }

    /// The bodies' bytes that have come, those of broken pieces included.
    public var received: Int64 { self.server.requests.reduce(0) { $0 + $1.bodyLength } }

    // MARK: tus

    private static func tus(
        _ request: RecordedRequest,
        _ extensions: String,
        _ habits: Habits,
        _ state: State
    ) -> Reply {
        let base = ["Tus-Resumable: 1.0.0"]
        if request.method == "OPTIONS" {
            var fields = [
                "Tus-Version: 1.0.0", "Tus-Extension: \(extensions)", "Tus-Checksum-Algorithm: sha1,sha256",
            ]
            if let size = habits.maxSize { fields.append("Tus-Max-Size: \(size)") }
            return Reply(204, headers: base + fields)
        }
        guard request.header("Tus-Resumable") == "1.0.0" else {
            return Reply(412, headers: ["Tus-Version: 1.0.0"])
        }
        if request.path == "/files", request.method == "POST" {
            guard let length = request.header("Upload-Length").flatMap({ Int($0) }) else {
                return .text(400, "length")
            }
            let number = state.content.withLock { content in
                content.made += 1
                var upload = Upload(length: length)
                upload.metadata = request.header("Upload-Metadata")
                upload.bytes = request.body
                content.uploads[content.made] = upload
                return content.made
            }
            let path = "/files/\(number)"
            let offset = request.body.isEmpty ? [] : ["Upload-Offset: \(request.body.count)"]
            return Reply(201, headers: base + ["Location: \(habits.location?(path) ?? path)"] + offset)
        }
        return self.onUpload(request, state) { number, upload, content in
            switch request.method {
            case "HEAD":
                return Reply(
                    200,
                    headers: base + [
                        "Upload-Offset: \(Self.told(&upload))", "Upload-Length: \(upload.length)",
                        "Cache-Control: no-store",
                    ]
                )
            case "DELETE":
                content.uploads[number] = nil
                return Reply(204, headers: base)
            case "PATCH":
                guard request.header("Content-Type") == "application/offset+octet-stream" else {
                    return .text(415, "type")
                }
                guard request.header("Upload-Offset") == "\(upload.bytes.count)" else {
                    return Reply(409, headers: base)
                }
                if let limit = habits.maxAppend, request.bodyLength > limit {
                    return Reply(413, headers: base)
                }
                Self.append(request, to: &upload, habits)
                return Reply(204, headers: base + ["Upload-Offset: \(upload.bytes.count)"])
            default:
                return Reply(405)
            }
        }
    }

    // MARK: The IETF's

    private static func ietf(_ request: RecordedRequest, _ version: Int, _ habits: Habits, _ state: State)
        -> Reply
    {
        let mark = "Upload-Draft-Interop-Version: \(version)"
        var limits: [String] = []
        if let most = habits.maxSize { limits.append("max-size=\(most)") }
        if let most = habits.maxAppend { limits.append("max-append-size=\(most)") }
        let limit = limits.isEmpty ? "max-age=3600" : limits.joined(separator: ", ")
        let base = [mark] + (version >= 6 ? ["Upload-Limit: \(limit)"] : [])
        if request.method == "OPTIONS" { return Reply(204, headers: base) }
        guard request.header("Upload-Draft-Interop-Version") == "\(version)" else {
            return Reply(400, headers: [mark])
        }
        let name = version == 3 ? "Upload-Incomplete" : "Upload-Complete"
        func isComplete(_ missing: Bool) -> Bool {
            request.header(name).map { ($0 == "?1") == (version != 3) } ?? missing
        }
        func told(_ complete: Bool) -> String { "\(name): \(complete == (version != 3) ? "?1" : "?0")" }
        if request.path == "/files" {
            let declared = Int64(request.header("Content-Length") ?? "") ?? 0
            if let most = habits.maxAppend, declared > most { return Reply(413, headers: base) }
            let number = state.content.withLock { content in
                content.made += 1
                let length = request.header("Upload-Length").flatMap { Int($0) } ?? Int(declared)
                var upload = Upload(length: length)
                upload.type = request.header("Content-Type")
                upload.bytes = habits.keepsCutPieces || request.bodyLength == declared ? request.body : []
                upload.isComplete = isComplete(true) && request.bodyLength == declared
                content.uploads[content.made] = upload
                return content.made
            }
            let path = "/files/\(number)"
            if isComplete(true) {
                return habits.answer.with(header: told(true)).with(header: mark)
            }
            let place = "Location: \(habits.location?(path) ?? path)"
            return Reply(201, headers: base + [place, told(false), "Upload-Offset: \(request.bodyLength)"])
        }
        return self.onUpload(request, state) { number, upload, content in
            switch request.method {
            case "HEAD":
                return Reply(
                    204,
                    headers: base + ["Upload-Offset: \(Self.told(&upload))", told(upload.isComplete)]
                )
            case "DELETE":
                content.uploads[number] = nil
                return Reply(204, headers: base)
            case "PATCH":
                guard version < 6 || request.header("Content-Type") == "application/partial-upload" else {
                    return .text(415, "type")
                }
                guard request.header("Upload-Offset") == "\(upload.bytes.count)" else {
                    return Reply(409, headers: base + ["Upload-Offset: \(upload.bytes.count)"])
                }
                let declared = Int64(request.header("Content-Length") ?? "") ?? 0
                if let most = habits.maxAppend, declared > most { return Reply(413, headers: base) }
                Self.append(request, to: &upload, habits)
                upload.isComplete = isComplete(true) && request.bodyLength == declared
                let offset = "Upload-Offset: \(upload.bytes.count)"
                if upload.isComplete { return habits.answer.with(header: told(true)).with(header: offset) }
                return Reply(version >= 8 ? 204 : 201, headers: base + [offset, told(false)])
            default:
                return Reply(405)
            }
        }
    }

    private static func onUpload(
        _ request: RecordedRequest,
        _ state: State,
        _ body: (Int, inout Upload, inout State.Content) -> Reply
    ) -> Reply {
        state.content.withLock { content in
            guard let number = request.path.split(separator: "/").last.flatMap({ Int($0) }),
                var upload = content.uploads[number]
            else { return Reply(404) }
            let reply = body(number, &upload, &content)
            if content.uploads[number] != nil { content.uploads[number] = upload }
            return reply
        }
    }

    /// The offset that HEAD tells.
    private static func told(_ upload: inout Upload) -> Int {
        guard upload.staleHeads > 0 else { return upload.bytes.count }
        upload.staleHeads -= 1
        return upload.staleOffset
    }

    private static func append(_ request: RecordedRequest, to upload: inout Upload, _ habits: Habits) {
        let isCut = request.header("Content-Length") != "\(request.bodyLength)"
        guard !isCut || habits.keepsCutPieces else { return }
        if isCut, habits.staleHeads > 0 {
            upload.staleHeads = habits.staleHeads
            upload.staleOffset = upload.bytes.count
        }
        upload.bytes += request.body
    }
}
