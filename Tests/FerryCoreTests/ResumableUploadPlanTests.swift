import Testing

@testable import FerryCore

/// The IETF's resumable uploads, for each version that is spoken.
@Suite struct ResumableUploadPlanTests {
    private let facts = UploadFacts(
        size: 20 << 20,
        fileName: "a.iso",
        contentType: "text/x",
        host: "example.org"
    )
    private static let place = "https://example.org/up/1"
    static let versions = [8, 6, 5, 3]

    private func answer(
        _ status: Int,
        _ fields: [String: String] = [:],
        location: String? = nil,
        sentAll: Bool = true,
        text: String = ""
    ) -> UploadAnswer {
        UploadAnswer(
            head: Self.head(status, fields),
            location: location,
            sentAll: sentAll,
            elapsed: .seconds(4),
            text: text
        )
    }

    private static func head(_ status: Int, _ fields: [String: String] = [:]) -> ResponseHead {
        ResponseHead(
            status: status,
            fields: fields.sorted { $0.key < $1.key }.map {
                ResponseHead.Field(name: $0.key, value: $0.value)
            }
        )
    }

    private func plan(_ version: Int?, url: String? = nil, offset: Int64 = 0, size: Int64? = nil)
        -> ResumableUploadPlan
    {
        var memory = UploadMemory()
        memory.version = version
        memory.isSupported = version != nil
        memory.url = url
        memory.offset = offset
        memory.creations = url == nil ? 0 : 1
        var facts = self.facts
        if let size { facts.size = size }
        return ResumableUploadPlan(facts: facts, memory: memory)
    }

    private func word(_ step: UploadStep) -> String {
        switch step {
        case .done: "done"
        case .call(let call): call.method + (call.body.map { " \($0.lowerBound)-\($0.upperBound)" } ?? "")
        case .failed(.refused(let reason, _, _)): reason.rawValue
        case .failed(.busy): "busy"
        case .failed(.badResponse): "bad"
        case .failed(.status(let status, _, _, _)): "\(status)"
        case .failed(let cause): "\(cause)"
        }
    }

    @Test(arguments: versions) func `a careful upload from its creation to its end`(version: Int) throws {
        var plan = self.plan(version)
        let creation = try #require(plan.begin().call)
        #expect(creation.method == "POST")
        #expect(creation.body == 0..<0)
        #expect(creation.field("Upload-Draft-Interop-Version") == "\(version)")
        #expect(
            creation.field(version == 3 ? "Upload-Incomplete" : "Upload-Complete")
                == (version == 3 ? "?1" : "?0")
        )
        #expect(creation.field("Upload-Length") == (version >= 6 ? "\(self.facts.size)" : nil))
        #expect(creation.field("Content-Type") == "text/x")
        #expect(creation.field("Content-Disposition") == "inline; filename=\"a.iso\"")
        var step = plan.take(self.answer(201, location: Self.place))
        #expect(plan.memory.url == Self.place)
        var offset: Int64 = 0
        while let range = step.range {
            let call = try #require(step.call)
            let isLast = range.upperBound == self.facts.size
            #expect(range.lowerBound == offset)
            #expect(call.field("Upload-Offset") == "\(offset)")
            #expect(call.field("Content-Type") == "application/partial-upload")
            #expect(
                call.field(version == 3 ? "Upload-Incomplete" : "Upload-Complete")
                    == (isLast == (version == 3) ? "?0" : "?1")
            )
            offset = range.upperBound
            var fields = ["Upload-Offset": "\(offset)"]
            if version == 8 { fields["Upload-Complete"] = isLast ? "?1" : "?0" }
            // What servers of the older drafts say by mistake.
            if version == 3 { fields["Upload-Incomplete"] = "?1" }
            if version == 5 { fields["Upload-Complete"] = isLast ? "?0" : "?1" }
            step = plan.take(self.answer(isLast ? 200 : 201, fields))
        }
        #expect(step == .done)
        #expect(offset == self.facts.size)
    }

    @Test(
        arguments: [
            (["Upload-Limit": "max-age=3"], 8, "POST 0-0"), ([:], 8, "POST 0-20971520"),
            (["Upload-Draft-Interop-Version": "6"], 6, "POST 0-0"),
            (["Upload-Draft-Interop-Version": "3"], 3, "POST 0-0"),
            (["Upload-Draft-Interop-Version": "7"], 8, "POST 0-20971520"),
            (["Tus-Version": "1.0.0"], 6, "POST 0-20971520"),
            (["Accept-Patch": "application/partial-upload"], 8, "POST 0-0"),
            (["Upload-Limit": "max-size=10"], 8, "too-large"),
            (["Upload-Limit": "min-size=99999999"], 8, "unsupported"),
            (["Upload-Limit": "max-size=\"10\""], 8, "POST 0-20971520"),
            (["Upload-Limit": "max-age=3", "Allow": "PUT, OPTIONS"], 8, "PUT 0-0"),
            (["Upload-Limit": "max-age=3", "Allow": "PUT, POST"], 8, "POST 0-0"),
        ] as [([String: String], Int, String)]
    )
    func `what OPTIONS tells`(fields: [String: String], version: Int, expected: String) {
        var plan = self.plan(nil)
        let question = plan.begin()
        #expect(question.method == "OPTIONS")
        #expect(question.call?.field("Upload-Draft-Interop-Version") == "8")
        #expect(self.word(plan.take(self.answer(204, fields))) == expected)
        #expect(plan.memory.version == version)
    }

    @Test(
        arguments: [
            (400, ["Upload-Draft-Interop-Version": "6"], 6, "POST 0-100"),
            (400, ["Upload-Draft-Interop-Version": "3"], 3, "POST 0-100"),
            (412, ["Tus-Version": "1.0.0"], 6, "POST 0-100"),
            (400, ["Upload-Draft-Interop-Version": "9"], 8, "400"), (400, [:], 8, "400"),
        ] as [(Int, [String: String], Int, String)]
    )
    func `a server that speaks another version is met there`(
        status: Int,
        fields: [String: String],
        version: Int,
        expected: String
    ) {
        var plan = self.plan(8, size: 100)
        #expect(self.word(plan.begin()) == "POST 0-100")
        #expect(self.word(plan.take(self.answer(status, fields))) == expected)
        #expect(plan.memory.version == version)
        #expect(plan.memory.creations == 1)
    }

    @Test(
        arguments: [
            (200, [:], nil, true, "done"), (201, [:], place, true, "done"),
            (200, [:], nil, false, "bad"),
            (201, ["Upload-Complete": "?0"], place, true, "HEAD"),
            (201, ["Upload-Complete": "?0"], nil, true, "bad"),
            (200, ["Upload-Complete": "?1"], nil, true, "done"),
            (200, ["Upload-Complete": "?1", "Upload-Offset": "101"], nil, true, "bad-response"),
            (200, ["Upload-Offset": "50"], place, true, "HEAD"),
            (413, [:], nil, false, "too-large"),
            (413, ["Upload-Limit": "max-append-size=40"], nil, false, "POST 0-0"),
            (413, ["Upload-Limit": "max-size=40"], nil, false, "too-large"),
            (403, [:], nil, true, "403"), (423, [:], nil, true, "busy"), (503, [:], nil, true, "503"),
        ] as [(Int, [String: String], String?, Bool, String)]
    )
    func `what follows the answer to a whole body`(
        status: Int,
        fields: [String: String],
        location: String?,
        sentAll: Bool,
        expected: String
    ) {
        var memory = UploadMemory()
        memory.version = 8
        var facts = self.facts
        facts.size = 100
        var plan = ResumableUploadPlan(facts: facts, memory: memory)
        #expect(self.word(plan.begin()) == "POST 0-100")
        let step = plan.take(self.answer(status, fields, location: location, sentAll: sentAll))
        #expect(self.word(step) == expected)
    }

    @Test func `an empty creation that is taken for the upload is told`() {
        var plan = self.plan(8)
        _ = plan.begin()
        #expect(self.word(plan.take(self.answer(200))) == "bad-response")
    }

    @Test(
        arguments: [
            (204, ["Upload-Offset": "5", "Upload-Complete": "?0"], "PATCH 5-8388613"),
            (204, ["Upload-Offset": "20971520", "Upload-Complete": "?1"], "done"),
            (204, ["Upload-Offset": "20971521", "Upload-Complete": "?1"], "bad-response"),
            (204, ["Upload-Offset": "20971520", "Upload-Complete": "?0"], "PATCH 20971520-20971520"),
            (200, ["Upload-Offset": "20971521", "Upload-Complete": "?0"], "bad-response"),
            (200, [:], "bad"), (200, ["Upload-Offset": "five"], "bad"),
            (200, ["Upload-Offset": "5", "Upload-Length": "7"], "source-changed"),
            (404, [:], "POST 0-0"), (410, [:], "POST 0-0"), (403, [:], "403"), (423, [:], "busy"),
            (500, [:], "500"),
        ] as [(Int, [String: String], String)]
    )
    func `what follows the answer to HEAD`(status: Int, fields: [String: String], expected: String) {
        var plan = self.plan(8, url: Self.place, offset: 5)
        let call = plan.begin().call
        #expect(call?.method == "HEAD")
        #expect(call?.fields.map(\.name) == ["Upload-Draft-Interop-Version"])
        #expect(self.word(plan.take(self.answer(status, fields))) == expected)
    }

    /// A plan of version 8 that has just sent a piece: the last one or not.
    private func appending(_ version: Int, isLast: Bool) -> ResumableUploadPlan {
        let size: Int64 = isLast ? 1_000 : 20 << 20
        var plan = self.plan(version, url: Self.place, size: size)
        _ = plan.begin()
        let step = plan.take(self.answer(200, ["Upload-Offset": "0"]))
        #expect(self.word(step) == "PATCH 0-\(isLast ? 1_000 : 8 << 20)")
        return plan
    }

    @Test(
        arguments: [
            (false, 204, ["Upload-Complete": "?0"], "PATCH 8388608-16777216"),
            (false, 204, ["Upload-Complete": "?0", "Upload-Offset": "7"], "PATCH 7-8388615"),
            (true, 200, ["Upload-Complete": "?1"], "done"), (true, 200, [:], "done"),
            (true, 200, ["Upload-Complete": "?1", "Upload-Offset": "20971521"], "bad-response"),
            (true, 200, ["Upload-Complete": "?0"], "HEAD"), (true, 200, ["Upload-Offset": "900"], "HEAD"),
            (true, 422, ["Upload-Complete": "?1"], "server"),
            (true, 500, ["Upload-Complete": "?1"], "server"),
            (true, 500, [:], "500"), (false, 409, [:], "HEAD"), (false, 404, [:], "POST 0-0"),
            (false, 413, [:], "HEAD"), (false, 423, [:], "busy"), (false, 415, [:], "415"),
        ] as [(Bool, Int, [String: String], String)]
    )
    func `what follows the answer to PATCH`(
        isLast: Bool,
        status: Int,
        fields: [String: String],
        expected: String
    ) {
        var plan = self.appending(8, isLast: isLast)
        #expect(self.word(plan.take(self.answer(status, fields))) == expected)
    }

    @Test func `a complete upload that is appended to is asked about`() {
        var plan = self.appending(6, isLast: true)
        let text = #"{"type":"https://iana.org/assignments/http-problem-types#completed-upload"}"#
        #expect(self.word(plan.take(self.answer(400, text: text))) == "HEAD")
        #expect(
            self.word(plan.take(self.answer(204, ["Upload-Offset": "1000", "Upload-Complete": "?1"])))
                == "done"
        )
    }

    @Test(arguments: [6, 5, 3]) func `older servers' word on completeness is not believed`(version: Int) {
        var plan = self.appending(version, isLast: true)
        #expect(
            self.word(plan.take(self.answer(200, ["Upload-Complete": "?0", "Upload-Incomplete": "?1"])))
                == "done"
        )
    }

    @Test(
        arguments: [
            (["Upload-Draft-Interop-Version": "8"], place, true, place),
            (["Upload-Draft-Interop-Version": "8", "Upload-Offset": "50"], place, true, place),
            (["Upload-Draft-Interop-Version": "6"], place, true, nil), ([:], place, true, nil),
            (
                ["Upload-Draft-Interop-Version": "8"], "https://example.org/up/2", true,
                "https://example.org/up/2"
            ),
        ] as [([String: String], String, Bool, String?)]
    )
    func `104 names the place, if it is of our version`(
        fields: [String: String],
        location: String,
        goesOn: Bool,
        expected: String?
    ) {
        var plan = self.plan(8, size: 100)
        _ = plan.begin()
        #expect(plan.take(interim: Self.head(104, fields), location: location) == goesOn)
        #expect(plan.memory.url == expected)
        #expect(plan.memory.offset == (fields["Upload-Offset"] == nil ? 0 : 50))
    }

    @Test func `a second 104 with another place ends the call`() {
        var plan = self.plan(8, size: 100)
        _ = plan.begin()
        let head = Self.head(104, ["Upload-Draft-Interop-Version": "8"])
        let answers = [Self.place, Self.place, "https://example.org/up/2"].map { place in
            plan.take(interim: head, location: place)
        }
        #expect(answers == [true, true, false])
    }

    @Test func `pieces keep to the server's limits`() {
        var plan = self.plan(8)
        _ = plan.begin()
        let limits = ["Upload-Limit": "max-append-size=1000, min-append-size=10"]
        #expect(self.word(plan.take(self.answer(201, limits, location: Self.place))) == "PATCH 0-1000")
        #expect(self.word(plan.take(self.answer(413, ["Upload-Limit": "max-append-size=500"]))) == "HEAD")
        let offset = ["Upload-Offset": "0", "Upload-Complete": "?0"]
        #expect(self.word(plan.take(self.answer(204, offset))) == "PATCH 0-500")
        #expect(self.word(plan.take(self.answer(413))) == "HEAD")
        #expect(self.word(plan.take(self.answer(204, offset))) == "PATCH 0-250")
    }

    @Test(
        arguments: [
            ("a.iso", "inline; filename=\"a.iso\""), ("a b.iso", "inline; filename=\"a b.iso\""),
            ("a\"b", "inline; filename*=UTF-8''a%22b"), ("ü", "inline; filename*=UTF-8''%C3%BC"),
            ("a\r\nb", "inline; filename*=UTF-8''a%0D%0Ab"),
        ]
    )
    func `a name cannot end its field`(name: String, expected: String) {
        #expect(ResumableUploadPlan.disposition(name) == expected)
    }
}
