import Testing

@testable import FerryCore

@Suite struct ResumeDataTests {
    @Test(
        arguments: [
            (0, 262_144), (1, 262_144), (1 << 30, 262_144), ((1 << 30) + 1, 524_288), (1 << 40, 1 << 28),
        ] as [(Int64, Int64)]
    )
    func `blocks grow so that there are few`(bytes: Int64, size: Int64) {
        #expect(ResumeData.blockSize(for: bytes) == size)
        let ranges = ResumeData.ranges(upTo: bytes, blockBytes: size)
        #expect(ranges.count <= 4_096 && ranges.last?.upperBound ?? 0 == bytes)
    }

    @Test(
        arguments: [
            (".file.bin.12.ferry-part", 12), (".file.12.ferry-part-2", 12), (".a.ferry-part.3.ferry-part", 3),
            ("file.12.ferry-part", nil), (".12.ferry-part", nil), (".file.ferry-part", nil),
            (".f.0.ferry-part", nil),
            (".f.1.ferry-part-1", nil), (".f.1.ferry-part-02", nil), (".f.1.ferry-parts", nil), ("", nil),
            (".f.-1.ferry-part", nil), (".f.x.ferry-part", nil), (".ferry-part", nil),
        ] as [(String, Int64?)]
    )
    func `the job is read from a partial's name`(name: String, job: Int64?) {
        #expect(FileName.job(ofPartial: name)?.rawValue == job)
    }

    @Test(arguments: [1, 2, 30])
    func `each partial's name tells its job`(generation: Int) {
        let id = JobID(rawValue: 77)
        for name in ["a", "a.b", String(repeating: "ü", count: 200)] {
            let partial = FileName.partial(name: name, job: id, generation: generation)
            #expect(FileName.job(ofPartial: partial) == id)
        }
    }

    @Test func `redacting takes the query, and a folder moves the file`() {
        let request = JobRequest(url: "https://e.org/f?sig=1", directory: "/a", output: "/a/b")
        var document = ResumeData(
            createdAt: Timestamp(milliseconds: 0),
            url: request.url,
            directory: "/a",
            remote: RemoteObject(),
            options: ResumeData.Options(request)
        )
        #expect(document.request(in: nil) == request)
        #expect(document.request(in: "/c").output == "/c/b" && document.request(in: "/c").directory == "/c")
        #expect(document.request(in: "/").output == "/b")
        document.redact()
        #expect(document.url == "https://e.org/f" && document.isRedacted)
    }

    @Test func `a report's status follows from its findings`() {
        let ok = Finding("a", .ok, "fine")
        let problem = Finding("b", .problem, "wrong", advice: "mend it")
        func status(_ findings: [Finding], damaged: Bool = false) -> FerryCore.ExitStatus {
            CheckReport(type: "check", stateDir: "/s", findings: findings, damaged: damaged).exitStatus
        }
        #expect(status([ok, Finding("c", .note, "so")]) == .success)
        #expect(status([ok, problem]) == .failed)
        #expect(status([problem], damaged: true) == .database)
        #expect(status([problem.whenRepaired("right now")]) == .success)
        #expect(problem.line == "problem: b: wrong; mend it")
        #expect(problem.whenRepaired("right now").line == "repaired: b: right now")
    }
}
