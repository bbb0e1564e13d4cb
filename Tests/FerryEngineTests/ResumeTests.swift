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

    /// What an object is told by, and whether that proves that two answers are of one version.
    private static let validators: [(name: String, quirks: Quirks, isStrong: Bool)] = [
        ("strong tag", [], true),
        ("strong date", [.noTag], true),
        ("weak tag", [.weakTag], false),
        // Without `Date` nobody can tell that the answer was made a second later.
        ("weak date", [.noTag, .noDate], false),
        ("no validator", [.noTag, .noLastModified], false),
    ]

    /// What follows the request for the rest, which begins at the cut if a strong validator vouches for the bytes
    /// that are there, else 64 KiB earlier.
    private enum Then {
        /// The answer is taken.
        case taken
        /// It cannot be used, and the whole is asked for.
        case whole
        /// All came although nothing has changed: `If-Range`, if it was there, may be the cause.
        case withoutIfRange
        /// Nothing on the part tells its version: what a strong validator did not prove is compared.
        case overlap
        /// The rest after so many bytes.
        case rest(Int64)

        func ranges(cut: Int64, isStrong: Bool) -> [Int64?] {
            let overlapped = cut - ResumePlan.overlapBytes
            let first = isStrong ? cut : overlapped
            switch self {
            case .taken: return [nil, first]
            case .whole: return [nil, first, nil]
            case .withoutIfRange: return isStrong ? [nil, first, first] : [nil, first]
            case .overlap: return isStrong ? [nil, first, overlapped] : [nil, first]
            case .rest(let end): return [nil, first, isStrong ? end : end - ResumePlan.overlapBytes]
            }
        }
    }

    private static let quirks: [(name: String, quirks: Quirks, then: Then)] = [
        ("a correct server", [], .taken),
        ("ranges ignored", [.rangesIgnored], .withoutIfRange),
        ("all although unchanged", [.fullAlthoughUnchanged], .withoutIfRange),
        ("early start", [.earlyStart(by: 1_000)], .taken),
        ("start at 0", [.earlyStart(by: cut)], .taken),
        ("late start", [.lateStart(by: 1_000)], .whole),
        ("no Content-Range", [.noContentRange], .whole),
        ("broken Content-Range", [.contentRange("bytes abc")], .whole),
        ("Content-Range beyond the end", [.contentRange("bytes 300000-1000000/1000000")], .whole),
        ("other total", [.otherTotal(size + 5)], .whole),
        ("unknown total", [.unknownTotal], .taken),
        ("no validator on the part", [.noValidatorOnPart], .overlap),
        ("multipart", [.multipart], .whole),
        ("chunked part", [.chunked], .taken),
        ("part without length", [.noLength], .taken),
        ("content coding", [.contentCoding("gzip")], .whole),
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
                        ranges: quirk.then.ranges(cut: Self.cut, isStrong: validator.isStrong)
                    )
                )
            }
            for (what, size) in [
                ("same size", Self.size), ("larger", Self.size + 4_096), ("smaller", 200_000),
            ] {
                // Without `If-Range` the part comes, and its tag, its date, its total or its bytes differ.
                let then: Then = validator.isStrong ? .taken : .whole
                cases.append(
                    Case(
                        name: "\(validator.name): changed, \(what)",
                        always: validator.quirks,
                        changed: Self.object.changed(size: size),
                        ranges: then.ranges(cut: Self.cut, isStrong: validator.isStrong)
                    )
                )
                cases.append(
                    Case(
                        name: "\(validator.name): changed, \(what), If-Range ignored",
                        always: validator.quirks,
                        later: [.ifRangeIgnored],
                        changed: Self.object.changed(size: size),
                        ranges: Then.whole.ranges(cut: Self.cut, isStrong: validator.isStrong)
                    )
                )
                // Only the bytes can tell, where the size does not.
                cases.append(
                    Case(
                        name: "\(validator.name): changed, \(what), If-Range ignored, bare part",
                        always: validator.quirks,
                        later: [.ifRangeIgnored, .noValidatorOnPart],
                        changed: Self.object.changed(size: size),
                        ranges: validator.isStrong && size == Self.size
                            ? [nil, Self.cut, Self.cut - ResumePlan.overlapBytes, nil]
                            : Then.whole.ranges(cut: Self.cut, isStrong: validator.isStrong)
                    )
                )
            }
            cases.append(
                Case(
                    name: "\(validator.name): short end",
                    always: validator.quirks,
                    later: [.shortEnd(by: 1_000)],
                    once: true,
                    ranges: Then.rest(Self.size - 1_000).ranges(
                        cut: Self.cut,
                        isStrong: validator.isStrong
                    )
                )
            )
            // What is no more than the overlap is fetched anew.
            for cut in [ResumePlan.overlapBytes, ResumePlan.overlapBytes + 1] {
                let isCompared = cut > ResumePlan.overlapBytes
                cases.append(
                    Case(
                        name: "\(validator.name): cut after \(cut) bytes",
                        always: validator.quirks,
                        cut: cut,
                        ranges: [nil, validator.isStrong ? cut : isCompared ? 1 : nil]
                    )
                )
            }
            cases.append(
                Case(
                    name: "\(validator.name): unknown length, cut before the last chunk",
                    always: validator.quirks.union([.chunked]),
                    cut: Self.size,
                    ranges: Then.taken.ranges(cut: Self.size, isStrong: validator.isStrong)
                )
            )
        }
        let smaller = Self.object.changed(size: 200_000)
        return cases + [
            Case(name: "other tag", later: [.otherTag("\"other\"")], ranges: [nil, Self.cut, nil]),
            Case(name: "weak tag on the part", later: [.weakTag], ranges: [nil, Self.cut]),
            Case(
                name: "other bytes under the same tag, early start",
                later: [.ifRangeIgnored, .otherTag(Self.object.etag), .earlyStart(by: 1_000)],
                changed: Self.object.changed(size: Self.size),
                ranges: [nil, Self.cut, nil]
            ),
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
                name: "unknown length, cut before the last chunk, 416 without total",
                always: [.chunked, .unsatisfiablePage(contentRange: false)],
                cut: Self.size,
                ranges: [nil, Self.size, nil]
            ),
            Case(name: "coded from the start", always: [.contentCoding("gzip")], ranges: [nil, nil]),
            Case(
                name: "ranges ignored from the start",
                always: [.rangesIgnored],
                ranges: [nil, Self.cut, Self.cut]
            ),
            Case(
                name: "a bare part of a short beginning",
                later: [.noValidatorOnPart],
                cut: 50_000,
                ranges: [nil, 50_000, nil]
            ),
            Case(
                name: "the part has less than the overlap",
                always: [.noTag, .noLastModified],
                later: [.shortEnd(by: Self.size - Self.cut + 10)],
                once: true,
                ranges: [nil, Self.cut - ResumePlan.overlapBytes, nil]
            ),
            Case(
                name: "the part has one byte more than the overlap",
                always: [.noTag, .noLastModified],
                later: [.shortEnd(by: Self.size - Self.cut - 1)],
                once: true,
                ranges: [
                    nil, Self.cut - ResumePlan.overlapBytes, Self.cut + 1 - ResumePlan.overlapBytes,
                ]
            ),
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
