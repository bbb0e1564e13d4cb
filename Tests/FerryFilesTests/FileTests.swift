import FerryTestSupport
import Glibc
import Testing

@testable import FerryFiles

@Suite struct OpenFileTests {
    @Test func `short and interrupted writes are carried on`() throws {
        try withTemporaryFolder { folder in
            let log = WriteLog()
            let calls = log.calls { number, count in
                switch number {
                case 1: -Int(EINTR)
                case 2: 1
                case 3: count / 2
                case 4: -Int(EINTR)
                default: count
                }
            }
            let file = try Folder(folder.path, calls: calls).create("file", mode: 0o600)
            let bytes = TestObject(size: 1_000).bytes(0..<1_000)
            try bytes.withUnsafeBytes { try file.write($0, at: 5) }
            #expect(
                log.writes == [
                    Write(offset: 5, count: 1_000), Write(offset: 5, count: 1_000),
                    Write(offset: 6, count: 999),
                    Write(offset: 505, count: 500), Write(offset: 505, count: 500),
                ]
            )
            #expect(try folder.read("file") == [0, 0, 0, 0, 0] + bytes)
        }
    }

    @Test func `nothing to write calls nothing`() throws {
        try withTemporaryFolder { folder in
            let log = WriteLog()
            let file = try Folder(folder.path, calls: log.calls()).create("file", mode: 0o600)
            try file.write(UnsafeRawBufferPointer(start: nil, count: 0), at: 5)
            #expect(log.writes.isEmpty)
        }
    }

    @Test func `a call that fails is named`() throws {
        try withTemporaryFolder { folder in
            var calls = FileCalls.real
            calls.fdatasync = failing(EIO)
            calls.fsync = failing(EIO)
            calls.ftruncate = failing(EFBIG)
            let file = try Folder(folder.path, calls: calls).create("file", mode: 0o600)
            let path = folder.file("file")
            func error(_ errno: Int32, _ action: String) -> SystemError {
                SystemError(errno: errno, action: action, path: path)
            }
            #expect(throws: error(EIO, "sync")) { try file.syncData() }
            #expect(throws: error(EIO, "sync")) { try file.sync() }
            #expect(throws: error(EFBIG, "resize")) { try file.truncate(to: 1) }
        }
    }

    @Test(arguments: [
        (0, 1, 1), (-1, 5, -999_999_995), (253_402_300_799, 0, .max), (9_223_372_036, 854_775_808, .max),
        (-62_135_596_800, 0, .min), (.max, 999_999_999, .max), (.min, 0, .min),
    ])
    func `a date that nanoseconds cannot hold is the last or the first one`(
        seconds: Int,
        rest: Int,
        expected: Int64
    ) {
        #expect(OpenFile.Identity.nanoseconds(timespec(tv_sec: seconds, tv_nsec: rest)) == expected)
    }

    @Test(arguments: [ENOSPC, EDQUOT, EFBIG])
    func `a full disk is found when space is reserved`(code: Int32) throws {
        try withTemporaryFolder { folder in
            var calls = FileCalls.real
            calls.fallocate = failing(code)
            let file = try Folder(folder.path, calls: calls).create("file", mode: 0o600)
            #expect(throws: SystemError(errno: code, action: "reserve 5 bytes for", path: file.path)) {
                try file.reserve(5)
            }
            try file.reserve(0)
        }
    }

    @Test(arguments: [EOPNOTSUPP, ENOSYS, EINVAL])
    func `a file system that cannot reserve is left alone`(code: Int32) throws {
        try withTemporaryFolder { folder in
            var calls = FileCalls.real
            calls.fallocate = failing(code)
            try Folder(folder.path, calls: calls).create("file", mode: 0o600).reserve(5)
        }
    }

    @Test func `reserving and resizing`() throws {
        try withTemporaryFolder { folder in
            let file = try Folder(folder.path).create("file", mode: 0o600)
            try file.reserve(100_000)
            #expect(try file.identity().size == 0)
            try file.truncate(to: 7)
            try file.sync()
            try file.syncData()
            let identity = try file.identity()
            #expect(identity.size == 7)
            #expect(identity.isRegular)
            #expect(identity.isSameFile(inode: identity.inode))
            #expect(!identity.isSameFile(inode: nil))
        }
    }
}

@Suite struct FolderTests {
    @Test func `a folder that cannot be opened is named`() throws {
        try withTemporaryFolder { folder in
            try folder.write("file", "x")
            #expect(throws: SystemError(errno: ENOENT, action: "open the folder", path: folder.file("none")))
            {
                try Folder(folder.file("none"))
            }
            #expect(throws: SystemError(errno: ENOTDIR, action: "open the folder", path: folder.file("file")))
            {
                try Folder(folder.file("file"))
            }
        }
    }

    @Test(arguments: [UInt32(0o644), 0o600, 0o666, 0o400])
    func `a file is made with exactly its mode, and only where there is none`(mode wanted: UInt32) throws {
        try withTemporaryFolder { folder in
            let opened = try Folder(folder.path)
            _ = try opened.create("file", mode: wanted)
            #expect(mode(of: folder.file("file")) == wanted)
            let error = #expect(throws: SystemError.self) { try opened.create("file", mode: wanted) }
            #expect(error?.errno == EEXIST)
        }
    }

    @Test func `links are not followed`() throws {
        try withTemporaryFolder { folder in
            try folder.write("target", "precious")
            for (link, target) in [("good", "target"), ("dangling", "nowhere")] {
                try #require(symlink(folder.file(target), folder.file(link)) == 0)
                let opened = try Folder(folder.path)
                #expect(throws: SystemError(errno: ELOOP, action: "open", path: folder.file(link))) {
                    try opened.open(link)
                }
                #expect(throws: SystemError(errno: EEXIST, action: "create", path: folder.file(link))) {
                    try opened.create(link, mode: 0o600)
                }
                #expect(try opened.identity(of: link)?.isRegular == false)
                try opened.remove(link)
                #expect(!folder.exists(link))
            }
            #expect(!folder.exists("nowhere"))
            #expect(try folder.text("target") == "precious")
        }
    }

    @Test func `only regular files are opened`() throws {
        try withTemporaryFolder { folder in
            try #require(mkfifo(folder.file("pipe"), 0o600) == 0)
            let error = #expect(throws: SystemError.self) { try Folder(folder.path).open("pipe") }
            #expect(error?.errno == EINVAL)
            #expect(throws: SystemError.self) { try Folder(folder.path).open("home") }
            #expect(throws: SystemError(errno: ENOENT, action: "open", path: folder.file("none"))) {
                try Folder(folder.path).open("none")
            }
        }
    }

    @Test func `looking and removing`() throws {
        try withTemporaryFolder { folder in
            try folder.write("file", "12345")
            let opened = try Folder(folder.path)
            #expect(try opened.identity(of: "file")?.size == 5)
            #expect(try opened.identity(of: "file") == opened.open("file").identity())
            #expect(try opened.identity(of: "none") == nil)
            try opened.remove("file")
            try opened.remove("file")
            #expect(!folder.exists("file"))
            #expect(throws: SystemError.self) { try opened.remove("home") }
            #expect(opened.path(of: "a") == folder.file("a"))
            #expect(try Folder("/").path(of: "a") == "/a")
        }
    }

    @Test func `files are reached in the folder that was opened`() throws {
        try withTemporaryFolder { folder in
            let opened = try Folder(folder.makeFolder("one"))
            try #require(rename(folder.file("one"), folder.file("two")) == 0)
            _ = try opened.create("file", mode: 0o600)
            #expect(folder.exists("two/file"))
        }
    }

    // MARK: Renaming

    /// How the kernel answers to RENAME_NOREPLACE.
    enum Kernel: Sendable, CaseIterable {
        case able, refusesTheFlag, lacksTheCall

        var calls: FileCalls {
            var calls = FileCalls.real
            switch self {
            case .able: break
            case .refusesTheFlag: calls.renameNoReplace = failing(EINVAL)
            case .lacksTheCall: calls.renameNoReplace = failing(ENOSYS)
            }
            return calls
        }
    }

    @Test(arguments: Kernel.allCases)
    func `a name that is free is taken`(kernel: Kernel) throws {
        try withTemporaryFolder { folder in
            try folder.write("new", "new")
            try Folder(folder.path, calls: kernel.calls).rename("new", to: "file", replacing: false)
            #expect(try folder.text("file") == "new")
            #expect(!folder.exists("new"))
        }
    }

    @Test(arguments: Kernel.allCases)
    func `a name that is taken stays as it is`(kernel: Kernel) throws {
        try withTemporaryFolder { folder in
            try folder.write("new", "new")
            try folder.write("file", "old")
            let opened = try Folder(folder.path, calls: kernel.calls)
            #expect(throws: SystemError(errno: EEXIST, action: "rename to", path: folder.file("file"))) {
                try opened.rename("new", to: "file", replacing: false)
            }
            #expect(try folder.text("file") == "old")
            #expect(try folder.text("new") == "new")
        }
    }

    @Test func `a file is replaced where that is wanted`() throws {
        try withTemporaryFolder { folder in
            try folder.write("new", "new")
            try folder.write("file", "old")
            try Folder(folder.path).rename("new", to: "file", replacing: true)
            #expect(try folder.text("file") == "new")
            #expect(!folder.exists("new"))
        }
    }

    @Test func `a folder's sync that fails is told`() throws {
        try withTemporaryFolder { folder in
            try Folder(folder.path).sync()
            var calls = FileCalls.real
            calls.fsync = failing(EIO)
            #expect(throws: SystemError(errno: EIO, action: "sync the folder", path: folder.path)) {
                try Folder(folder.path, calls: calls).sync()
            }
        }
    }
}
