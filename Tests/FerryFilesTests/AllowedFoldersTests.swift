import FerryTestSupport
import Glibc
import Testing

@testable import FerryFiles

@Suite struct AllowedFoldersTests {
    @Test(arguments: [
        ("/srv", "/srv", true), ("/srv", "/srv/a", true), ("/srv", "/srv/a/b", true),
        ("/srv", "/srvx", false),
        ("/srv/a", "/srv", false), ("/srv", "/", false), ("/", "/", true), ("/", "/srv", true),
        // Bytes count: these look the same and are two folders.
        ("/srv/\u{E9}", "/srv/e\u{301}", false), ("/srv/e", "/srv/e/\u{301}x", true),
    ])
    func `a folder holds itself and what lies below it`(folder: String, path: String, holds: Bool) {
        #expect(AllowedFolders.holds(Array(folder.utf8), Array(path.utf8)) == holds)
    }

    @Test func `a link out of what is allowed is refused, one that stays in it is not`() throws {
        try withTemporaryFolder { folder in
            let inside = try folder.makeFolder("allowed")
            try folder.makeFolder("allowed/below")
            let outside = try folder.makeFolder("outside")
            try #require(symlink(outside, inside + "/out") == 0)
            try #require(symlink(inside + "/below", outside + "/in") == 0)
            let calls = Self.calls(inside, "/nowhere/at/all")
            for path in [inside, inside + "/below", outside + "/in", inside + "/../allowed/below"] {
                _ = try Folder(path, calls: calls)
            }
            for path in [outside, inside + "/out", inside + "/..", "/"] {
                let error = try #require(throws: SystemError.self) { try Folder(path, calls: calls) }
                #expect(error.errno == EPERM && error.description.contains("--allow-dir"), "\(error)")
            }
            #expect(throws: SystemError.self) { try Folder(inside, calls: Self.calls()) }
        }
    }

    @Test func `a folder that takes the place of an allowed one is another folder`() throws {
        try withTemporaryFolder { folder in
            let inside = try folder.makeFolder("allowed")
            let outside = try folder.makeFolder("outside")
            let job = try folder.makeFolder("allowed/job")
            let calls = Self.calls(inside)
            _ = try Folder(job, calls: calls)
            try #require(rmdir(job) == 0 && symlink(outside, job) == 0)
            #expect(throws: SystemError.self) { try Folder(job, calls: calls) }
        }
    }

    @Test func `missing folders are made inside, with their mode, and nowhere else`() throws {
        try withTemporaryFolder { folder in
            let inside = try folder.makeFolder("allowed")
            let outside = try folder.makeFolder("outside")
            try #require(symlink(outside, inside + "/out") == 0)
            let allowed = AllowedFolders([inside])
            try allowed.make(inside + "/a/b", mode: 0o750)
            try allowed.make(inside + "/a/b", mode: 0o700)
            var info = stat()
            try #require(stat(inside + "/a/b", &info) == 0)
            #expect(info.st_mode & 0o777 == 0o750)
            for path in [outside + "/a", inside + "/out/a", inside + "/none/../../outside/a", "/proc/none/a"]
            {
                #expect(throws: SystemError.self, "\(path)") { try allowed.make(path, mode: 0o755) }
            }
            #expect(try folder.names(in: "outside").isEmpty)
            #expect(try folder.names(in: "allowed") == ["a", "out"])
        }
    }

    private static func calls(_ folders: String...) -> FileCalls {
        var calls = FileCalls.real
        calls.allowedFolders = AllowedFolders(folders)
        return calls
    }
}
