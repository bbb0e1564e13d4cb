import FerryCore
import Testing

@testable import FerryControl

/// The document of `ferry resume-data`: what is written is read again, and nothing else is.
@Suite struct ResumeDataTests {
    private static var document: ResumeData {
        var remote = RemoteObject()
        remote.totalBytes = 900_000
        remote.entityTag = "\"a\""
        remote.lastModified = "Mon, 30 Nov 2026 12:00:00 GMT"
        remote.lastModifiedIsStrong = true
        remote.acceptsRanges = true
        remote.digests = Checksum(text: "md5:d41d8cd98f00b204e9800998ecf8427e").map { [.user($0)] }
        var request = JobRequest(url: "https://e.org/f?key=1", directory: "/data", output: "/data/f")
        request.ifExists = .overwrite
        request.attempts = 3
        request.checksum = Checksum(text: "md5:d41d8cd98f00b204e9800998ecf8427e")
        request.sizeLimitBytes = 1 << 40
        request.group = "nightly"
        request.priority = -7
        request.remoteTime = true
        var document = ResumeData(
            createdAt: Timestamp(milliseconds: 1_800_000_000_000),
            url: request.url,
            directory: request.directory,
            remote: remote,
            options: ResumeData.Options(request)
        )
        document.finalURL = "https://cdn.e.org/f"
        document.name = "f"
        document.partialName = ".f.1.ferry-part"
        document.offsetBytes = 300_000
        document.blocks = [0, .max]
        return document
    }

    @Test func `a document survives the way through a file`() throws {
        let document = Self.document
        let bytes = try ControlJSON.encode(document)
        #expect(try ControlJSON.decode(ResumeData.self, from: bytes) == document)
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains(#""format":"ferry-resume-data""#) && text.contains(#""version":1"#))
        #expect(text.contains(#""blocks":["0000000000000000","ffffffffffffffff"]"#))
        #expect(bytes.count < ResumeData.sizeLimit)
    }

    @Test func `the largest document fits the limit`() throws {
        var document = Self.document
        document.remote.totalBytes = nil
        document.offsetBytes = 100 << 40
        document.blockBytes = ResumeData.blockSize(for: document.offsetBytes)
        document.blocks = document.blockRanges.map { _ in .max }
        let bytes = try ControlJSON.encode(document)
        #expect(document.blocks.count <= 4_096 && bytes.count < ResumeData.sizeLimit)
        #expect(try ControlJSON.decode(ResumeData.self, from: bytes) == document)
    }

    /// A part of the document, what stands there instead, and what is said of it.
    struct Wrong: Sendable {
        let part: String
        let instead: String
        let says: String

        init(_ part: String, _ instead: String, _ says: String) {
            self.part = part
            self.instead = instead
            self.says = says
        }
    }

    @Test(arguments: [
        Wrong(#""ferry-resume-data""#, #""other""#, "is something else"),
        Wrong(#""version":1"#, #""version":2"#, "is of version 2, and this Ferry reads version 1"),
        Wrong(#""version":1"#, #""version":"1""#, "wrong type in version"),
        Wrong(#""version":1"#, #""version":1.5"#, "a number that cannot be used"),
        Wrong(#""created_at":"#, #""created":"#, "lacks the field created_at"),
        Wrong(#""offset_bytes":300000"#, #""offset_bytes":"300000""#, "wrong type in offset_bytes"),
        Wrong(#""offset_bytes":300000"#, #""offset_bytes":-1"#, "offset_bytes"),
        Wrong(
            #""offset_bytes":300000"#,
            #""offset_bytes":99999999999999999999"#,
            "a number that cannot be used"
        ),
        Wrong(#""offset_bytes":300000"#, #""offset_bytes":9223372036854775807"#, "offset_bytes"),
        Wrong(
            #""offset_bytes":300000"#,
            #""offset_bytes":600000"#,
            "has 2 hashes, which do not fit its offset"
        ),
        Wrong(#""block_bytes":262144"#, #""block_bytes":0"#, "block_bytes"),
        Wrong(#""block_bytes":262144"#, #""block_bytes":300000"#, "block_bytes"),
        Wrong(#""block_bytes":262144"#, #""block_bytes":4611686018427387904"#, "block_bytes"),
        Wrong(
            #""0000000000000000""#,
            #""000000000000000""#,
            "a block hash that is not 16 hexadecimal digits"
        ),
        Wrong(
            #""0000000000000000""#,
            #""+000000000000000""#,
            "a block hash that is not 16 hexadecimal digits"
        ),
        Wrong(#""total_bytes":900000"#, #""total_bytes":-5"#, "remote.total_bytes"),
        Wrong(#""total_bytes":900000"#, #""total_bytes":200000"#, "remote.total_bytes"),
        Wrong(#"https://e.org/f?key=1"#, "file:///etc/passwd", "neither https nor http"),
        Wrong(#"https://e.org/f?key=1"#, "javascript:alert(1)", "neither https nor http"),
        Wrong(
            #"https://e.org/f?key=1"#,
            #"https://e.org/\r\nHost: evil"#,
            "in url that holds control characters"
        ),
        Wrong(#""directory":"/data""#, #""directory":"data""#, "in directory that is no absolute path"),
        Wrong(
            #""directory":"/data""#,
            #""directory":"/data/../etc""#,
            "in directory that is no absolute path"
        ),
        Wrong(
            #""directory":"/data""#,
            #""directory":"/data\u0000""#,
            "in directory that is no absolute path"
        ),
        Wrong(#""output":"/data/f""#, #""output":"/data/..""#, "in options.output"),
        Wrong(#""output":"/data/f""#, #""output":"/""#, "in options.output that is no file's name"),
        Wrong(#""name":"f""#, #""name":"../f""#, "in name that is no file's name"),
        Wrong(#""name":"f""#, #""name":"..""#, "in name that is no file's name"),
        Wrong(#""name":"f""#, #""name":"a\u001bb""#, "in name that is no file's name"),
        Wrong(#"".f.1.ferry-part""#, #""passwords""#, "in partial_name that is no partial's name"),
        Wrong(#"".f.1.ferry-part""#, #""/etc/.f.1.ferry-part""#, "in partial_name that is no file's name"),
        Wrong(#"".f.1.ferry-part""#, "null", "has an offset and no partial"),
        Wrong(#""entity_tag":"\"a\"""#, #""entity_tag":"a\r\nHost: evil""#, "in remote.entity_tag"),
        Wrong(#""priority":-7"#, #""priority":101"#, "in options.priority"),
        Wrong(#""attempts":3"#, #""attempts":-3"#, "in options.attempts"),
        Wrong(
            #""if_exists":"overwrite""#,
            #""if_exists":"erase""#,
            "in options.if_exists that cannot be used"
        ),
        Wrong(#""is_redacted":false"#, #""is_redacted":0"#, "wrong type in is_redacted"),
    ])
    func `what is wrong or hostile is refused with a sentence`(wrong: Wrong) throws {
        let text = String(decoding: try ControlJSON.encode(Self.document), as: UTF8.self)
        try #require(text.contains(wrong.part), "\(text)")
        let broken = text.replacing(wrong.part, with: wrong.instead)
        #expect(Self.refusal(broken)?.contains(wrong.says) == true, "\(Self.refusal(broken) ?? "read")")
    }

    @Test(arguments: ["", "{", "[]", "7", "null", "not json", "\u{0}", "{\"format\":7}", "{}"])
    func `what is no document is refused with a sentence`(text: String) {
        let refusal = Self.refusal(text)
        #expect(
            refusal?.hasPrefix("is ") == true || refusal?.hasPrefix("has ") == true,
            "\(refusal ?? "read")"
        )
    }

    @Test func `unknown fields are left to later versions`() throws {
        let text = String(decoding: try ControlJSON.encode(Self.document), as: UTF8.self)
        let more = "{\"later\":[1]," + text.dropFirst()
        #expect(try ControlJSON.decode(ResumeData.self, from: Array(more.utf8)) == Self.document)
    }

    private static func refusal(_ text: String) -> String? {
        do {
            _ = try ControlJSON.decode(ResumeData.self, from: Array(text.utf8))
            return nil
        } catch {
            return ResumeData.Refusal(error).reason
        }
    }
}
