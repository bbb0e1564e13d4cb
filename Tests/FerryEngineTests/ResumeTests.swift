import FerryCore
import FerryStore
import FerryTestSupport
import Testing

@testable import FerryEngine

/// A body is cut, and the server answers strangely to the request for the rest.
@Suite(.timeLimit(.minutes(5))) struct ResumeTests {
    private static let size: Int64 = 1_000_000
    private static let cut: Int64 = 300_000
    private static let object = TestObject(size: size, seed: 5)

    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        /// What is strange about every answer.
        var always: Quirks = []
        /// What is strange about the later ones.
        var later: Quirks = []
        /// Whether only the second one is strange.
        var once = false
        /// What the object has become when it is asked for again.
        var changed: TestObject?
        var cut = ResumeTests.cut
        /// The first byte of each request.
        let ranges: [Int64?]
        var testDescription: String { self.name }
    }

    private static let validators: [(name: String, quirks: Quirks, isStrong: Bool)] = [
        ("strong tag", [], true),
        ("strong date", [.noTag], true),
        ("weak tag", [.weakTag], false),
        ("weak date", [.noTag, .justModified], false),
        ("no validator", [.noTag, .noLastModified], false),
    ]

    private static let quirks: [(name: String, quirks: Quirks, ranges: [Int64?])] = [
        ("a correct server", [], [nil, cut]),
        ("ranges ignored", [.rangesIgnored], [nil, cut]),
        ("all although unchanged", [.fullAlthoughUnchanged], [nil, cut]),
        ("early start", [.earlyStart(by: 1_000)], [nil, cut]),
        ("start at 0", [.earlyStart(by: cut)], [nil, cut]),
        ("late start", [.lateStart(by: 1_000)], [nil, cut, nil]),
        ("no Content-Range", [.noContentRange], [nil, cut, nil]),
        ("broken Content-Range", [.contentRange("bytes abc")], [nil, cut, nil]),
        ("Content-Range beyond the end", [.contentRange("bytes 300000-1000000/1000000")], [nil, cut, nil]),
        ("other total", [.otherTotal(size + 5)], [nil, cut, nil]),
        ("unknown total", [.unknownTotal], [nil, cut]),
        ("no validator on the part", [.noValidatorOnPart], [nil, cut]),
        ("multipart", [.multipart], [nil, cut, nil]),
        ("chunked part", [.chunked], [nil, cut]),
        ("part without length", [.noLength], [nil, cut]),
        ("content coding", [.contentCoding("gzip")], [nil, cut, nil]),
    ]

    private static let cases: [Case] = {
        var cases: [Case] = []
        for validator in Self.validators {
            for quirk in Self.quirks {
                cases.append(
                    Case(
                        name: "\(validator.name): \(quirk.name)",
                        always: validator.quirks,
                        later: quirk.quirks,
                        ranges: validator.isStrong ? quirk.ranges : [nil, nil]
                    )
                )
            }
            for (what, size) in [
                ("same size", Self.size), ("larger", Self.size + 4_096), ("smaller", 200_000),
            ] {
                cases.append(
                    Case(
                        name: "\(validator.name): changed, \(what)",
                        always: validator.quirks,
                        changed: Self.object.changed(size: size),
                        ranges: validator.isStrong ? [nil, Self.cut] : [nil, nil]
                    )
                )
                guard validator.isStrong else { continue }
                cases.append(
                    Case(
                        name: "\(validator.name): changed, \(what), If-Range ignored",
                        always: validator.quirks,
                        later: [.ifRangeIgnored],
                        changed: Self.object.changed(size: size),
                        ranges: [nil, Self.cut, nil]
                    )
                )
            }
            cases.append(
                Case(
                    name: "\(validator.name): short end",
                    always: validator.quirks,
                    later: [.shortEnd(by: 1_000)],
                    once: true,
                    ranges: validator.isStrong ? [nil, Self.cut, Self.size - 1_000] : [nil, nil]
                )
            )
        }
        let smaller = Self.object.changed(size: 200_000)
        return cases + [
            Case(name: "other tag", later: [.otherTag("\"other\"")], ranges: [nil, Self.cut, nil]),
            Case(name: "weak tag on the part", later: [.weakTag], ranges: [nil, Self.cut]),
            Case(name: "new tag each time", always: [.newTagEachRequest], ranges: [nil, Self.cut]),
            Case(
                name: "new tag each time, If-Range ignored",
                always: [.newTagEachRequest, .ifRangeIgnored],
                ranges: [nil, Self.cut, nil]
            ),
            Case(
                name: "416 with a page and a total",
                later: [.ifRangeIgnored, .unsatisfiablePage(contentRange: true)],
                changed: smaller,
                ranges: [nil, Self.cut, nil]
            ),
            Case(
                name: "416 with a page alone",
                later: [.ifRangeIgnored, .unsatisfiablePage(contentRange: false)],
                changed: smaller,
                ranges: [nil, Self.cut, nil]
            ),
            Case(
                name: "416 with the old total",
                later: [.ifRangeIgnored, .unsatisfiableTotal(Self.size)],
                changed: smaller,
                ranges: [nil, Self.cut, nil]
            ),
            Case(name: "unknown length, cut in the middle", always: [.chunked], ranges: [nil, Self.cut]),
            Case(
                name: "unknown length, cut before the last chunk",
                always: [.chunked],
                cut: Self.size,
                ranges: [nil, Self.size]
            ),
            Case(
                name: "unknown length, cut before the last chunk, 416 without total",
                always: [.chunked, .unsatisfiablePage(contentRange: false)],
                cut: Self.size,
                ranges: [nil, Self.size, nil]
            ),
            Case(name: "coded from the start", always: [.contentCoding("gzip")], ranges: [nil, nil]),
            Case(name: "ranges refused from the start", always: [.rangesIgnored], ranges: [nil, Self.cut]),
            Case(name: "cut before the first byte", cut: 0, ranges: [nil, nil]),
        ]
    }()

    @Test(arguments: cases)
    func `the file is of one version and whole`(_ item: Case) async throws {
        let server = try ScriptedServer { request, number in
            if number == 0 {
                return .object(Self.object, for: request, quirks: item.always).with(.cut(after: item.cut))
            }
            let quirks = item.once && number > 1 ? item.always : item.always.union(item.later)
            return .object(item.changed ?? Self.object, for: request, quirks: quirks)
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.restarts <= DownloadTransfer.restartLimit)
            #expect(job.attempts == 2)
            let wanted = item.changed ?? Self.object
            #expect(try wanted.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
            #expect(job.bytesTotal == wanted.size)
            #expect(job.bytesDurable == wanted.size)
            #expect(server.ranges == item.ranges)
        }
    }

    @Test func `an object that is another one each time is given up after three restarts`() async throws {
        let server = try ScriptedServer { request, _ in
            .object(Self.object, for: request, quirks: [.newTagEachRequest]).with(.cut(after: Self.cut))
        }
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            let job = try await scope.end(of: id)
            #expect(job.state == .failed)
            #expect(job.failureReason == .changed)
            #expect(server.requests.count == 5)
            // What was fetched is kept, and a person may try again as often.
            let partial = scope.folder.file("data/.file.bin.\(id).ferry-part-4")
            #expect(try Self.object.matchesStart(partial) == nil)
            try await scope.steer(.retry, id)
            #expect(try await scope.end(of: id).failureReason == .changed)
            #expect(server.requests.count == 9)
        }
    }

    @Test(arguments: [[.rangesIgnored], [.weakTag], [.noTag, .noLastModified]] as [Quirks])
    func `an object that is the same may start over as often as it takes`(quirks: Quirks) async throws {
        let server = try ScriptedServer { request, number in
            let reply = Reply.object(Self.object, for: request, quirks: quirks)
            return number < 6 ? reply.with(.cut(after: Self.cut)) : reply
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed, "\(job.message ?? "")")
            #expect(job.restarts == 0)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(try scope.names == ["file.bin"])
        }
    }

    @Test func `a body without length is taken and told to be unproved`() async throws {
        let server = try ScriptedServer { request, _ in
            .object(Self.object, for: request, quirks: [.noLength])
        }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.lengthProved == false)
            #expect(job.bytesTotal == Self.size)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test(arguments: [0, 1, 262_143, 262_144, 262_145] as [Int64])
    func `every size arrives`(size: Int64) async throws {
        let object = TestObject(size: size, seed: 9)
        let server = try ScriptedServer { request, _ in .object(object, for: request) }
        try await withEngine { scope in
            let job = try await scope.fetch(server.url("file.bin"))
            #expect(job.state == .completed)
            #expect(job.lengthProved == true)
            #expect(try object.matches(scope.folder.file("data/file.bin")) == nil)
        }
    }

    @Test func `a partial that somebody changed is not believed`() async throws {
        let server = try script([
            { .object(Self.object, for: $0).with(.cut(after: Self.cut)) }, { .object(Self.object, for: $0) },
        ])
        try await withEngine { scope in
            let id = try await scope.add(server.url("file.bin"))
            let waiting = try await scope.next(id, .waiting)
            #expect(waiting.bytesDurable == Self.cut)
            let name = "data/.file.bin.\(id).ferry-part"
            #expect(try Self.object.matchesStart(scope.folder.file(name)) == nil)
            try scope.folder.write(name, "short")
            try await scope.passWait(of: waiting)
            #expect(try await scope.end(of: id).state == .completed)
            #expect(try Self.object.matches(scope.folder.file("data/file.bin")) == nil)
            #expect(server.ranges == [nil, nil])
        }
    }
}
