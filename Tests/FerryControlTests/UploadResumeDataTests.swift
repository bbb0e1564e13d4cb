import FerryControl
import FerryCore
import Testing

/// Resume data of uploads as text: what is written is read, and what is wrong is refused.
@Suite struct UploadResumeDataTests {
    private static var document: UploadResumeData {
        let order = UploadOrder(
            body: .file(path: "/data/a.bin"),
            method: "POST",
            contentType: "image/png",
            idempotencyKey: "key",
            responsePath: "/data/answer",
            nameWasAdded: true
        )
        let request = JobRequest(
            kind: .upload,
            url: "https://e.org/f?key=1",
            directory: "/",
            headers: [RequestHeader(name: "Authorization", value: "s3cret")],
            attempts: 3,
            group: "g",
            priority: -7,
            upload: order
        )
        var document = UploadResumeData(
            createdAt: Timestamp(milliseconds: 1_000),
            request: request,
            order: order,
            source: SourceIdentity(
                path: "/data/a.bin",
                device: 1,
                inode: 2,
                size: 300_000,
                modifiedNanoseconds: 5
            )
        )
        document.blocks = [0, .max]
        var memory = UploadMemory()
        memory.url = "https://e.org/files/7?token=t0k"
        memory.offset = 1_000
        memory.version = 6
        document.note(transport: .ietf, memory: memory)
        return document
    }

    private static func read(_ text: String) throws -> ResumeDocument {
        try ControlJSON.decode(ResumeDocument.self, from: Array(text.utf8))
    }

    private static var text: String {
        get throws {
            String(decoding: try ControlJSON.encode(ResumeDocument.upload(Self.document)), as: UTF8.self)
        }
    }

    @Test func `what is written is read, without header fields`() throws {
        let text = try Self.text
        #expect(try Self.read(text) == .upload(Self.document))
        #expect(!text.contains("s3cret") && text.contains(#""kind":"upload""#))
        let request = Self.document.request(in: "/new/")
        #expect(request.upload?.body == .file(path: "/new/a.bin") && request.upload?.method == "POST")
        #expect(request.attempts == 3 && request.group == "g" && request.priority == -7)
        #expect(Self.document.request(in: nil).upload == Self.document.order)
        #expect(Self.document.memory.url == "https://e.org/files/7?token=t0k")
        #expect(Self.document.memory.offset == 0 && Self.document.memory.version == 6)
    }

    @Test func `redacted, it says nothing of the server's upload`() throws {
        var document = ResumeDocument.upload(Self.document)
        document.redact()
        let text = String(decoding: try ControlJSON.encode(document), as: UTF8.self)
        #expect(document.isRedacted && !text.contains("t0k") && !text.contains("key=1"))
        #expect(try Self.read(text) == document)
    }

    @Test(arguments: [UploadProtocol.put, .post, .auto])
    func `a protocol that knows no going on leaves nothing to go on with`(transport: UploadProtocol) {
        var document = Self.document
        document.redact()
        var memory = UploadMemory()
        memory.url = "https://e.org/x"
        memory.offset = 5
        document.note(transport: transport, memory: memory)
        #expect(document.uploadURL == nil && document.offsetBytes == 0 && document.memory == UploadMemory())
    }

    @Test(arguments: [
        (#""kind":"upload""#, #""kind":"other""#, "has a kind that this Ferry does not know"),
        (#""ferry-resume-data""#, #""other""#, "is something else"),
        (#""version":1"#, #""version":2"#, "is of version 2"),
        (#""offset_bytes":1000"#, #""offset_bytes":-1"#, "offset_bytes"),
        (#""offset_bytes":1000"#, #""offset_bytes":300001"#, "offset_bytes"),
        (#""upload_url":"https://e.org/files/7?token=t0k","#, "", "offset_bytes"),
        (#""protocol":"ietf""#, #""protocol":"put""#, "no protocol that has such"),
        (#""protocol":"ietf""#, #""protocol":"ftp""#, "in protocol that cannot be used"),
        ("https://e.org/files/7?token=t0k", "file:///etc/passwd", "neither https nor http"),
        ("https://e.org/files/7?token=t0k", #"https://e.org/\r\nX: y"#, "upload_url"),
        (#""size":300000"#, #""size":-1"#, "does not fit its source"),
        (#""size":300000"#, #""size":9223372036854775807"#, "does not fit its source"),
        (#""size":300000"#, #""size":600000"#, "has 2 hashes"),
        (#""block_bytes":262144"#, #""block_bytes":0"#, "block_bytes"),
        (#""path":"/data/a.bin""#, #""path":"/data/../a.bin""#, "no absolute path"),
        (
            #""file":{"path":"/data/a.bin"}"#, #""file":{"path":"/etc/passwd"}"#,
            "something else than its source"
        ),
        (#""file":{"path":"/data/a.bin"}"#, #""form":{"_0":[]}"#, "something else than its source"),
        (#""method":"POST""#, #""method":"PO ST""#, "order.method"),
        (#""response_path":"/data/answer""#, #""response_path":"answer""#, "order.response_path"),
        (#""content_type":"image/png""#, #""content_type":"a\r\nb""#, "order.content_type"),
        (#""server":{"version":6}"#, #""server":{"version":99}"#, "server.version"),
        (#""priority":-7"#, #""priority":101"#, "options.priority"),
    ])
    func `what is wrong or hostile is refused with a sentence`(part: String, instead: String, says: String)
        throws
    {
        let text = try Self.text
        try #require(text.contains(part), "\(text)")
        do {
            _ = try Self.read(text.replacing(part, with: instead))
            Issue.record("was read")
        } catch {
            #expect(ResumeData.Refusal(error).reason.contains(says), "\(ResumeData.Refusal(error).reason)")
        }
    }
}
