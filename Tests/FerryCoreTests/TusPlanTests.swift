import Testing

@testable import FerryCore

/// The rules of tus 1.0.0 for a client, row by row.
@Suite struct TusPlanTests {
    private static let mebibyte: Int64 = 1 << 20
    private let facts = UploadFacts(
        size: 20 << 20,
        fileName: "a ü.iso",
        contentType: "application/x-iso9660-image",
        host: "example.org"
    )

    private func answer(
        _ status: Int,
        _ fields: [String: String] = [:],
        location: String? = nil,
        sentAll: Bool = true
    ) -> UploadAnswer {
        UploadAnswer(
            head: ResponseHead(
                status: status,
                fields: fields.sorted { $0.key < $1.key }.map {
                    ResponseHead.Field(name: $0.key, value: $0.value)
                }
            ),
            location: location,
            sentAll: sentAll,
            elapsed: .seconds(4)
        )
    }

    /// A plan whose upload exists, and that has just asked for its offset.
    private func asking(offset: Int64 = 0, size: Int64? = nil) -> TusPlan {
        var memory = UploadMemory()
        memory.url = "https://example.org/files/1"
        memory.offset = offset
        memory.creations = 1
        memory.tus = TusFeatures()
        var facts = self.facts
        if let size { facts.size = size }
        var plan = TusPlan(facts: facts, memory: memory)
        #expect(plan.begin().method == "HEAD")
        return plan
    }

    /// A plan that has just sent the piece from an offset on.
    private func appending(at offset: Int64 = 0) -> TusPlan {
        var plan = self.asking(offset: offset)
        let step = plan.take(self.answer(200, ["Upload-Offset": "\(offset)"]))
        #expect(step.method == "PATCH")
        #expect(step.range?.lowerBound == offset)
        return plan
    }

    @Test func `an upload is made, filled piece by piece, and done`() throws {
        var plan = TusPlan(facts: self.facts)
        #expect(plan.begin().method == "OPTIONS")
        let creation = plan.take(
            self.answer(204, ["Tus-Version": "0.2.2, 1.0.0", "Tus-Extension": "creation,termination"])
        )
        let call = try #require(creation.call)
        #expect(call.method == "POST")
        #expect(call.target == .endpoint)
        #expect(call.body == 0..<0)
        #expect(call.field("Tus-Resumable") == "1.0.0")
        #expect(call.field("Upload-Length") == "\(self.facts.size)")
        #expect(
            call.field("Upload-Metadata")
                == "filename YSDDvC5pc28=,filetype YXBwbGljYXRpb24veC1pc285NjYwLWltYWdl"
        )
        var step = plan.take(self.answer(201, location: "https://example.org/files/1"))
        #expect(plan.memory.url == "https://example.org/files/1")
        var offset: Int64 = 0
        while let range = step.range {
            #expect(range.lowerBound == offset)
            #expect(step.call?.field("Upload-Offset") == "\(offset)")
            #expect(step.call?.field("Content-Type") == "application/offset+octet-stream")
            #expect(step.call?.target == .upload)
            offset = range.upperBound
            step = plan.take(self.answer(204, ["Upload-Offset": "\(offset)"]))
        }
        #expect(step == .done)
        #expect(offset == self.facts.size)
    }

    @Test(arguments: [0, 1, TusPlan.tiny, TusPlan.tiny + 1], [true, false])
    func `a tiny file goes along with the creation where that is offered`(size: Int64, isOffered: Bool) throws
    {
        var facts = self.facts
        facts.size = size
        var memory = UploadMemory()
        memory.tus = TusFeatures(extensions: isOffered ? ["creation-with-upload"] : [])
        var plan = TusPlan(facts: facts, memory: memory)
        let body = try #require(plan.begin().call?.body)
        #expect(body == 0..<(isOffered && size <= TusPlan.tiny ? size : 0))
        let fields = body.isEmpty ? [:] : ["Upload-Offset": "\(size)"]
        let step = plan.take(self.answer(201, fields, location: "https://example.org/1"))
        #expect((step == .done) == (size == 0 || !body.isEmpty))
    }

    /// What follows an answer, in a word.
    private func word(_ step: UploadStep) -> String {
        switch step {
        case .done: "done"
        case .call(let call): call.method + (call.body.map { " \($0.lowerBound)" } ?? "")
        case .failed(.refused(let reason, _, _)): reason.rawValue
        case .failed(.busy): "busy"
        case .failed(.badResponse): "bad"
        case .failed(.status(let status, _, _, _)): "\(status)"
        case .failed(let cause): "\(cause)"
        }
    }

    @Test(
        arguments: [
            (204, ["Upload-Offset": "5"], "PATCH 5"), (200, ["Upload-Offset": "20971520"], "done"),
            (200, ["Upload-Offset": "20971521"], "bad-response"), (200, [:], "bad"),
            (200, ["Upload-Offset": "-1"], "bad"),
            (200, ["Upload-Offset": "5", "Upload-Length": "7"], "source-changed"),
            (200, ["Upload-Offset": "5", "Upload-Length": "20971520"], "PATCH 5"),
            (404, [:], "POST 0"), (410, [:], "POST 0"), (403, [:], "403"), (412, [:], "unsupported"),
            (423, [:], "busy"), (500, [:], "500"), (503, [:], "503"), (401, [:], "401"),
        ] as [(Int, [String: String], String)]
    )
    func `what follows the answer to HEAD`(status: Int, fields: [String: String], expected: String) {
        var plan = self.asking(offset: 5)
        #expect(self.word(plan.take(self.answer(status, fields))) == expected)
    }

    @Test(
        arguments: [
            (204, ["Upload-Offset": "8388608"], "PATCH 8388608"), (204, ["Upload-Offset": "7"], "PATCH 7"),
            (204, ["Upload-Offset": "0"], "PATCH 0"), (204, [:], "HEAD"), (409, [:], "HEAD"),
            (404, [:], "POST 0"), (410, [:], "POST 0"), (412, [:], "unsupported"), (423, [:], "busy"),
            (413, [:], "HEAD"), (411, [:], "HEAD"), (460, [:], "HEAD"), (400, [:], "400"), (415, [:], "415"),
            (403, [:], "403"), (500, [:], "500"), (503, [:], "503"),
        ] as [(Int, [String: String], String)]
    )
    func `what follows the answer to PATCH`(status: Int, fields: [String: String], expected: String) {
        var plan = self.appending()
        #expect(self.word(plan.take(self.answer(status, fields))) == expected)
    }

    @Test(
        arguments: [
            (201, "bad-response"), (413, "too-large"), (412, "unsupported"), (404, "unsupported"),
            (405, "unsupported"), (401, "401"), (503, "503"), (400, "400"),
        ]
    )
    func `what follows an answer to POST that names no place`(status: Int, expected: String) {
        var memory = UploadMemory()
        memory.tus = TusFeatures()
        var plan = TusPlan(facts: self.facts, memory: memory)
        #expect(plan.begin().method == "POST")
        #expect(self.word(plan.take(self.answer(status))) == expected)
    }

    @Test func `a file above the server's limit is not begun`() {
        var plan = TusPlan(facts: self.facts)
        _ = plan.begin()
        let step = plan.take(self.answer(200, ["Tus-Version": "1.0.0", "Tus-Max-Size": "1000"]))
        #expect(self.word(step) == "too-large")
    }

    @Test func `an upload that the server forgets is made anew twice, from the beginning`() {
        var plan = self.asking(offset: 9_000_000)
        for _ in 1...2 {
            #expect(self.word(plan.take(self.answer(404))) == "POST 0")
            #expect(plan.memory.url == nil)
            #expect(plan.memory.offset == 0)
            _ = plan.take(self.answer(201, location: "https://example.org/files/2"))
            _ = plan.take(self.answer(409))
        }
        #expect(self.word(plan.take(self.answer(404))) == "server")
    }

    @Test func `409 without end is waited out, 409 after progress is not`() {
        var plan = self.appending()
        for turn in 1...20 {
            #expect(self.word(plan.take(self.answer(409))) == "HEAD")
            let step = plan.take(self.answer(200, ["Upload-Offset": "\(turn)"]))
            #expect(self.word(step) == "PATCH \(turn)")
        }
        var words: [String] = []
        while words.count < 50, words.last != "busy" {
            words.append(self.word(plan.take(self.answer(409))))
            if words.last == "HEAD" { _ = plan.take(self.answer(200, ["Upload-Offset": "20"])) }
        }
        #expect(words.last == "busy")
        #expect(words.count == TusPlan.stallLimit)
    }

    @Test func `a server that takes and takes and has nothing is given up for now`() {
        var plan = self.appending()
        var words: [String] = []
        while words.count < 50, words.last != "bad" {
            words.append(self.word(plan.take(self.answer(204, ["Upload-Offset": "0"]))))
        }
        #expect(words.count == TusPlan.stallLimit)
    }

    @Test func `413 halves the pieces down to a limit`() throws {
        var plan = self.appending()
        var sizes: [Int64] = []
        while sizes.count < 50 {
            guard self.word(plan.take(self.answer(413))) == "HEAD" else { break }
            let range = try #require(plan.take(self.answer(200, ["Upload-Offset": "0"])).range)
            sizes.append(range.upperBound)
        }
        #expect(sizes == [4, 2, 1].map { $0 * Self.mebibyte } + [Self.mebibyte / 2, Self.mebibyte / 4])
    }

    @Test func `a checksum that differs twice is a failure, one that differs once is not`() {
        var memory = UploadMemory()
        memory.url = "https://example.org/files/1"
        memory.tus = TusFeatures(checksum: .sha1)
        var plan = TusPlan(facts: self.facts, memory: memory)
        _ = plan.begin()
        #expect(plan.take(self.answer(200, ["Upload-Offset": "0"])).call?.checksum == .sha1)
        #expect(self.word(plan.take(self.answer(460))) == "HEAD")
        #expect(plan.take(self.answer(200, ["Upload-Offset": "0"])).range?.lowerBound == 0)
        #expect(self.word(plan.take(self.answer(460))) == "checksum")
    }

    @Test(
        arguments: [
            ("sha1,md5", DigestAlgorithm.sha1), ("md5, sha256, sha1", .sha256), ("crc32", nil), ("", nil),
        ] as [(String, DigestAlgorithm?)]
    )
    func `the best of the offered checksums is taken`(offered: String, expected: DigestAlgorithm?) throws {
        let head = ResponseHead(
            status: 204,
            fields: [
                ResponseHead.Field(name: "Tus-Version", value: "1.0.0"),
                ResponseHead.Field(name: "Tus-Extension", value: "creation, checksum"),
                ResponseHead.Field(name: "Tus-Checksum-Algorithm", value: offered),
            ]
        )
        #expect(try #require(TusFeatures(head)).checksum == expected)
    }

    @Test(arguments: [200, 204, 404, 405, 500]) func `OPTIONS without a version is no tus server's`(
        status: Int
    ) {
        #expect(TusFeatures(ResponseHead(status: status)) == nil)
    }

    @Test func `pieces follow the speed of the line and get smaller when it breaks`() throws {
        var plan = self.appending()
        #expect(plan.memory.chunk == nil)
        var fast = self.answer(204, ["Upload-Offset": "\(8 * Self.mebibyte)"])
        fast.elapsed = .milliseconds(10)
        _ = plan.take(fast)
        #expect(plan.memory.chunk == 16 * Self.mebibyte)
        plan.lost()
        #expect(plan.memory.chunk == 8 * Self.mebibyte)
        for _ in 1...10 { plan.lost() }
        #expect(plan.memory.chunk == UploadChunk.smallest)
    }

    @Test(arguments: [(2, 4, 1), (3, 8, 8)] as [(Int64, Int64, Int64)])
    func `an attempt that finds nothing of the last piece probes, and sends smaller ones`(
        offset: Int64,
        chunk: Int64,
        first: Int64
    ) throws {
        var memory = UploadMemory()
        memory.url = "https://example.org/files/1"
        memory.offset = 2 * Self.mebibyte
        memory.chunk = 8 * Self.mebibyte
        var plan = TusPlan(facts: self.facts, memory: memory)
        _ = plan.begin()
        let step = plan.take(self.answer(200, ["Upload-Offset": "\(offset * Self.mebibyte)"]))
        let range = try #require(step.range)
        #expect(range == offset * Self.mebibyte..<(offset + first) * Self.mebibyte)
        #expect(plan.memory.chunk == chunk * Self.mebibyte)
        var answer = self.answer(204, ["Upload-Offset": "\(range.upperBound)"])
        answer.elapsed = .seconds(4)
        let next = try #require(plan.take(answer).range)
        #expect(next.upperBound - next.lowerBound == chunk * Self.mebibyte)
    }

    @Test(
        arguments: [
            (8 << 20, 8 << 20, 4_000, 8 << 20, 4 << 20), (8 << 20, 8 << 20, 8_000, 4 << 20, 4 << 20),
            (8 << 20, 8 << 20, 0, 16 << 20, 16 << 20), (256 << 20, 256 << 20, 1, 256 << 20, 64 << 20),
            (1 << 20, 1 << 20, 60_000, 1 << 20, 1 << 20), (8 << 20, 1 << 20, 4_000, 4 << 20, 4 << 20),
            (8 << 20, 8 << 20, 1_000, 16 << 20, 8 << 20),
        ] as [(Int64, Int64, Int64, Int64, Int64)]
    )
    func `a piece is about four seconds' worth, and with a checksum one second's`(
        size: Int64,
        sent: Int64,
        ms: Int64,
        expected: Int64,
        isChecked: Int64
    ) {
        let elapsed = Duration.milliseconds(ms)
        #expect(UploadChunk.next(after: size, sent: sent, elapsed: elapsed) == expected)
        #expect(UploadChunk.next(after: size, sent: sent, elapsed: elapsed, isChecked: true) == isChecked)
    }
}

extension UploadStep {
    var call: UploadCall? {
        if case .call(let call) = self { call } else { nil }
    }
    var method: String? { self.call?.method }
    /// The bytes that a call sends, if it sends any.
    var range: Range<Int64>? { self.call?.body.flatMap { $0.isEmpty ? nil : $0 } }
}

extension UploadCall {
    func field(_ name: String) -> String? { self.fields.first { $0.name == name }?.value }
}
