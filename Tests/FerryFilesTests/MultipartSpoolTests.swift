import FerryCore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryFiles

/// A form with its files; the body that must come of it is in Fixtures/multipart.
struct FormSample: Sendable, CustomTestStringConvertible {
    let name: String
    /// The files, by name, and what is in them.
    var files: [(name: String, content: [UInt8])] = []
    /// The parts; a file's path is its name alone.
    let parts: [FormPart]

    var testDescription: String { self.name }

    /// Writes the files into a folder and gives the parts with their paths.
    func parts(in folder: TemporaryFolder) throws -> [FormPart] {
        for file in self.files { try writeFile(folder.file(file.name), file.content) }
        return self.parts.map { part in
            guard case .file(let name) = part.content else { return part }
            var part = part
            part.content = .file(path: folder.file(name))
            return part
        }
    }

    /// What a server must find, by the rules of browsers for names.
    func found() throws -> [FormReader.Part] {
        try self.parts.map { part in
            let content: [UInt8]
            var fileName: String?
            var type: String?
            switch part.content {
            case .value(let text): content = Array(text.utf8)
            case .file(let path):
                content = self.files.first { $0.name == path }?.content ?? []
                fileName = MultipartBody.escaped(part.fileName ?? path)
                type = part.contentType ?? Self.types.type(of: path)
            }
            return FormReader.Part(
                name: MultipartBody.escaped(part.name),
                fileName: fileName,
                type: type,
                size: Int64(content.count),
                sha256: try sha256(content)
            )
        }.sorted { $0.description.utf8.lexicographicallyPrecedes($1.description.utf8) }
    }

    static let types = MediaTypes("text/plain txt\nimage/png png\napplication/gzip gz\n".utf8)

    static let all: [FormSample] = [
        FormSample(name: "text", parts: [FormPart(name: "greeting", content: .value("hello"))]),
        FormSample(
            name: "texts",
            parts: [
                FormPart(name: "a", content: .value("")),
                FormPart(name: "a", content: .value("line\nline\r\n")),
                FormPart(name: "b", content: .value("--ferry\r\n--\r\n\r\nContent-Disposition: form-data")),
                FormPart(name: "c", content: .value("Grüße, 世界 🚢")),
            ]
        ),
        FormSample(
            name: "files",
            files: [
                ("empty", []), ("note.txt", Array("a note\n".utf8)),
                ("PHOTO.PNG", [0x89, 0x50, 13, 10, 26, 10]),
            ],
            parts: [
                FormPart(name: "title", content: .value("three")),
                FormPart(name: "file", content: .file(path: "empty")),
                FormPart(name: "file", content: .file(path: "note.txt")),
                FormPart(name: "file", content: .file(path: "PHOTO.PNG")),
                FormPart(name: "last", content: .value("text")),
            ]
        ),
        FormSample(
            name: "names",
            files: [
                ("a\"b;c.txt", [49]), ("two\r\nlines.txt", [50]), ("naïve 文.txt", [51]),
                ("100%25 '=.gz", [52]),
            ],
            parts: [
                FormPart(name: "f\"1\"", content: .file(path: "a\"b;c.txt")),
                FormPart(name: "f\r\n2", content: .file(path: "two\r\nlines.txt")),
                FormPart(name: "文", content: .file(path: "naïve 文.txt")),
                FormPart(name: "%", content: .file(path: "100%25 '=.gz")),
                FormPart(
                    name: "named",
                    content: .file(path: "100%25 '=.gz"),
                    contentType: "application/x-own",
                    fileName: "other \"name\".bin"
                ),
            ]
        ),
        FormSample(
            name: "bytes",
            files: [
                ("all.bin", Array(0...255)), ("crlf.bin", Array("\r\n--ferry\r\n\r\n--ferry--\r\n".utf8)),
                ("dashes.bin", Array("--".utf8)),
            ],
            parts: [
                FormPart(name: "f", content: .file(path: "all.bin")),
                FormPart(name: "f", content: .file(path: "crlf.bin")),
                FormPart(name: "f", content: .file(path: "dashes.bin")),
            ]
        ),
    ]
}

/// Builds a form in a folder with fixed media types.
private func build(
    _ parts: [FormPart],
    in folder: TemporaryFolder,
    calls: FileCalls = .real,
    progress: (Int64, Int64) -> Void = { _, _ in },
    isStopped: () -> Bool = { false }
) throws(MultipartSpool.Failure) -> MultipartSpool.Built {
    try MultipartSpool.build(
        parts,
        as: "1.form",
        in: folder.file("spool"),
        mediaTypes: FormSample.types,
        calls: calls,
        progress: progress,
        isStopped: isStopped
    )
}

@Suite(.timeLimit(.minutes(5))) struct MultipartSpoolTests {
    /// Stands in the fixtures where a body has random digits.
    static let fixedBoundary = "ferry" + String(repeating: "0", count: 40)

    /// `FERRY_RECORD_FIXTURES=1` writes the bodies anew.
    @Test(arguments: FormSample.all)
    func `the body is the recorded one, byte for byte`(sample: FormSample) throws {
        try withTemporaryFolder { folder in
            let built = try build(try sample.parts(in: folder), in: folder)
            let body = try folder.read("spool/1.form")
            #expect(built.path == folder.file("spool/1.form"))
            #expect(built.length == Int64(body.count))
            let boundary = try #require(built.contentType.split(separator: "=").last)
            #expect(built.contentType == "multipart/form-data; boundary=\(boundary)")
            let text = String(decoding: body.map { $0 < 128 ? $0 : 63 }, as: UTF8.self)
            #expect(text.utf8.count == body.count)
            let fixed = replacing(Array(boundary.utf8), with: Array(Self.fixedBoundary.utf8), in: body)
            let path = Fixtures.file("multipart/\(sample.name).body")
            if getenv("FERRY_RECORD_FIXTURES") != nil { try writeFile(path, fixed) }
            #expect(try fixed == readFile(path))
        }
    }

    @Test(arguments: FormSample.all, FormReader.allCases)
    func `two frameworks find each part in it`(sample: FormSample, reader: FormReader) async throws {
        let found = try await reader.parts(
            of: Fixtures.file("multipart/\(sample.name).body"),
            contentType: "multipart/form-data; boundary=\(Self.fixedBoundary)"
        )
        #expect(try found == sample.found())
    }

    @Test func `no two bodies have the same boundary, and all is private`() throws {
        try withTemporaryFolder { folder in
            let parts = [FormPart(name: "a", content: .value("1"))]
            let first = try build(parts, in: folder)
            let second = try build(parts, in: folder)
            #expect(first.contentType != second.contentType)
            #expect(first.contentType.utf8.count == "multipart/form-data; boundary=".utf8.count + 45)
            #expect(mode(of: folder.file("spool")) == 0o700)
            #expect(mode(of: second.path) == 0o600)
            #expect(try folder.names(in: "spool") == ["1.form"])
        }
    }

    @Test func `what a killed build left is replaced`() throws {
        try withTemporaryFolder { folder in
            try folder.makeFolder("spool")
            try folder.write("spool/\(SpoolName.unfinished("1.form"))", "half of it")
            try folder.write("spool/1.form", "an old one")
            let built = try build([FormPart(name: "a", content: .value("1"))], in: folder)
            #expect(try Int64(folder.read("spool/1.form").count) == built.length)
            #expect(try folder.names(in: "spool") == ["1.form"])
        }
    }

    /// Sizes around the steps of the copy.
    static let sizes: [Int64] = [0, 1, 262_143, 262_145, 8_388_608, 8_388_609, 20_971_523]

    /// With and without the kernel's help.
    @Test(arguments: sizes)
    func `a file of any size is copied whole`(size: Int64) throws {
        let object = TestObject(size: size)
        var refusing = FileCalls.real
        refusing.copyRange = { _, _, _, _, _ in
            errno = EXDEV
            return -1
        }
        var empty = FileCalls.real
        empty.copyRange = { _, _, _, _, _ in 0 }
        var short = FileCalls.real
        short.copyRange = { from, start, to, place, count in
            FileCalls.real.copyRange(from, start, to, place, min(count, 1_000_001))
        }
        let interrupted = Mutex(0)
        var once = FileCalls.real
        once.copyRange = { from, start, to, place, count in
            let number = interrupted.withLock { number in
                number += 1
                return number
            }
            guard number == 1 else { return FileCalls.real.copyRange(from, start, to, place, count) }
            errno = EINTR
            return -1
        }
        for calls in [.real, refusing, empty, short, once] {
            try withTemporaryFolder { folder in
                try writeFile(folder.file("f"), object.bytes(0..<size))
                var steps: [Int64] = []
                let built = try build(
                    [FormPart(name: "f", content: .file(path: folder.file("f")))],
                    in: folder,
                    calls: calls,
                    progress: { done, total in
                        steps.append(done)
                        #expect(total >= done)
                    }
                )
                let body = try folder.read("spool/1.form")
                let head = body.count - Int(size) - (2 + "--\(Self.fixedBoundary)--\r\n".utf8.count)
                #expect(Array(body[head..<(head + Int(size))]) == object.bytes(0..<size))
                #expect(Int64(body.count) == built.length)
                #expect(steps.last == built.length)
                #expect(steps == steps.sorted())
                #expect(steps.count == Int((size + MultipartSpool.step - 1) / MultipartSpool.step) + 1)
                #expect(try built.sources == [OpenFile.source(folder.file("f")).identity()])
            }
        }
    }

    @Test func `it is synced before it has its name, and the name after it`() throws {
        try withTemporaryFolder { folder in
            let log = Mutex<[String]>([])
            let note: @Sendable (String) -> Void = { step in log.withLock { $0.append(step) } }
            var calls = FileCalls.real
            calls.pwrite = {
                note("write")
                return FileCalls.real.pwrite($0, $1, $2, $3)
            }
            calls.fsync = {
                note("sync")
                return FileCalls.real.fsync($0)
            }
            calls.rename = {
                note("rename")
                return FileCalls.real.rename($0, $1, $2)
            }
            _ = try build([FormPart(name: "a", content: .value("1"))], in: folder, calls: calls)
            #expect(log.withLock { $0 } == ["sync", "write", "sync", "rename", "sync"])
        }
    }

    static let badSources: [(String, @Sendable (String) throws -> Void, String)] = [
        ("missing", { _ in }, "cannot open PATH: No such file or directory"),
        ("folder", { _ = mkdir($0, 0o755) }, "cannot use (it is not a regular file) PATH: Invalid argument"),
        ("pipe", { _ = mkfifo($0, 0o644) }, "cannot use (it is not a regular file) PATH: Invalid argument"),
        (
            "device", { _ = symlink("/dev/zero", $0) },
            "cannot use (it is not a regular file) PATH: Invalid argument"
        ),
    ]

    @Test(arguments: badSources.indices)
    func `a source that is no readable file is named`(index: Int) throws {
        let (name, make, message) = Self.badSources[index]
        try withTemporaryFolder { folder in
            let path = folder.file(name)
            try make(path)
            let error = #expect(throws: MultipartSpool.Failure.self) {
                try build([FormPart(name: "f", content: .file(path: path))], in: folder)
            }
            #expect(error?.code == .sourceUnusable)
            #expect(error?.message.contains(path) == true)
            #expect(
                error?.message
                    == message.split(separator: "PATH", omittingEmptySubsequences: false).joined(
                        separator: path
                    )
            )
            #expect(!folder.exists("spool"))
        }
    }

    /// What happens to the file between two steps of its copy.
    static let changes: [@Sendable (String) -> Void] = [
        { _ = truncate($0, 100) },
        { _ = truncate($0, 0) },
        { _ = truncate($0, 30 << 20) },
        { path in
            let file = open(path, O_WRONLY)
            _ = write(file, "changed", 7)
            close(file)
            var times = [timespec(tv_sec: 5, tv_nsec: 5), timespec(tv_sec: 5, tv_nsec: 5)]
            utimensat(AT_FDCWD, path, &times, 0)
        },
    ]

    @Test(arguments: changes.indices, [true, false])
    func `a source that changes while it is read fails the build`(index: Int, inKernel: Bool) throws {
        try withTemporaryFolder { folder in
            let path = folder.file("f")
            try writeFile(path, TestObject(size: 20 << 20).bytes(0..<(20 << 20)))
            var calls = FileCalls.real
            if !inKernel { calls.copyRange = { _, _, _, _, _ in 0 } }
            var isChanged = false
            let error = #expect(throws: MultipartSpool.Failure.self) {
                try build(
                    [FormPart(name: "f", content: .file(path: path))],
                    in: folder,
                    calls: calls,
                    progress: { done, _ in
                        if !isChanged, done < 20 << 20 { Self.changes[index](path) }
                        isChanged = true
                    }
                )
            }
            #expect(error?.code == .sourceChanged)
            #expect(error?.message == "the file \(path) changed while the form's body was built from it")
            #expect(try folder.names(in: "spool").isEmpty)
        }
    }

    @Test func `a source that was replaced before its turn fails the build`() throws {
        try withTemporaryFolder { folder in
            try writeFile(folder.file("first"), [1])
            try writeFile(folder.file("second"), [2])
            let error = #expect(throws: MultipartSpool.Failure.self) {
                try build(
                    [
                        FormPart(name: "f", content: .file(path: folder.file("first"))),
                        FormPart(name: "f", content: .file(path: folder.file("second"))),
                    ],
                    in: folder,
                    progress: { _, _ in
                        _ = try? folder.write("new", "3")
                        rename(folder.file("new"), folder.file("second"))
                    }
                )
            }
            #expect(error?.code == .sourceChanged)
        }
    }

    @Test func `a build can be stopped between two steps`() throws {
        try withTemporaryFolder { folder in
            try writeFile(folder.file("f"), TestObject(size: 20 << 20).bytes(0..<(20 << 20)))
            var done: Int64 = 0
            let error = #expect(throws: MultipartSpool.Failure.self) {
                try build(
                    [FormPart(name: "f", content: .file(path: folder.file("f")))],
                    in: folder,
                    progress: { now, _ in done = now },
                    isStopped: { done > 8 << 20 }
                )
            }
            #expect(error?.code == .stopped)
            #expect(done < 20 << 20)
            #expect(try folder.names(in: "spool").isEmpty)
        }
    }

    /// Which call fails, how, and what it is then called.
    static let faults: [(FileCalls, MultipartSpool.Failure.Code)] = {
        func calls(_ change: (inout FileCalls) -> Void) -> FileCalls {
            var calls = FileCalls.real
            calls.copyRange = { _, _, _, _, _ in 0 }
            change(&calls)
            return calls
        }
        return [
            (calls { $0.fallocate = failing(ENOSPC) }, .diskFull),
            (calls { $0.fallocate = failing(EDQUOT) }, .diskFull),
            (
                calls {
                    $0.pwrite = { _, _, _, _ in
                        errno = ENOSPC
                        return -1
                    }
                }, .diskFull
            ),
            (
                calls {
                    $0.pwrite = { _, _, _, _ in
                        errno = EIO
                        return -1
                    }
                }, .storage
            ),
            (
                calls {
                    $0.pread = { _, _, _, _ in
                        errno = EIO
                        return -1
                    }
                }, .sourceUnusable
            ),
            (calls { $0.rename = failing(EACCES) }, .storage),
        ]
    }()

    @Test(arguments: faults.indices)
    func `a failed call is told by its cause and leaves nothing`(index: Int) throws {
        let (calls, code) = Self.faults[index]
        try withTemporaryFolder { folder in
            try writeFile(folder.file("f"), [1, 2, 3])
            let error = #expect(throws: MultipartSpool.Failure.self) {
                try build(
                    [FormPart(name: "f", content: .file(path: folder.file("f")))],
                    in: folder,
                    calls: calls
                )
            }
            #expect(error?.code == code)
            if code == .diskFull {
                #expect(error?.message.contains(" B in \(folder.file("spool")): ") == true)
            }
            #expect(try folder.names(in: "spool").isEmpty)
        }
    }

    @Test func `a sync that fails leaves no body, whichever it is`() throws {
        try withTemporaryFolder { folder in
            try folder.makeFolder("spool")
            for failing in 1...2 {
                let number = Mutex(0)
                var calls = FileCalls.real
                calls.fsync = { descriptor in
                    let now = number.withLock { number in
                        number += 1
                        return number
                    }
                    guard now == failing else { return FileCalls.real.fsync(descriptor) }
                    errno = EIO
                    return -1
                }
                let error = #expect(throws: MultipartSpool.Failure.self) {
                    try build([FormPart(name: "a", content: .value("1"))], in: folder, calls: calls)
                }
                #expect(error?.code == .storage)
            }
        }
    }

    @Test func `a spool folder that cannot be one is named`() throws {
        try withTemporaryFolder { folder in
            try folder.write("spool", "a file")
            let error = #expect(throws: MultipartSpool.Failure.self) {
                try build([FormPart(name: "a", content: .value("1"))], in: folder)
            }
            #expect(error?.code == .storage)
            #expect(error?.message.contains(folder.file("spool")) == true)
        }
    }

    @Test func `the system's table is read, and a missing one is empty`() {
        #expect(MediaTypes(MediaTypes.contents(of: "/nowhere/mime.types")) == MediaTypes([]))
        #expect(MediaTypes.contents(of: "/dev/zero").isEmpty)
        if access("/etc/mime.types", R_OK) == 0 {
            #expect(MediaTypes.system.type(of: "a.png") == "image/png")
        }
    }
}

/// The digest of bytes, as hexadecimal digits.
private func sha256(_ bytes: [UInt8]) throws -> String {
    let digester = try Digester([.sha256])
    try bytes.withUnsafeBytes { try digester.update($0) }
    return try #require(try digester.finish()[.sha256]).hex
}

/// The bytes with each run of some replaced.
private func replacing(_ old: [UInt8], with new: [UInt8], in bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
        if rest.starts(with: old) {
            result += new
            rest = rest.dropFirst(old.count)
        } else {
            result.append(rest.removeFirst())
        }
    }
    return result
}
