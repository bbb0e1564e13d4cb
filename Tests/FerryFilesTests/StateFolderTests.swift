import FerryCore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryFiles

@Suite struct StateFolderTests {
    @Test func `a folder and its parents are made for the owner alone`() throws {
        try withTemporaryFolder { folder in
            let path = folder.file("a/b/c")
            let state = try StateFolder(path)
            #expect(state.path == path)
            for name in ["a", "a/b", "a/b/c"] { #expect(mode(of: folder.file(name)) == 0o700) }
        }
    }

    @Test func `a second owner is refused while the first one lives`() throws {
        try withTemporaryFolder { folder in
            let path = folder.file("state")
            do {
                let first = try StateFolder(path)
                let error = #expect(throws: FerryError.self) { try StateFolder(path) }
                #expect(error?.code == .busy)
                #expect(error?.exitStatus == .noService)
                #expect(error?.message == "another service owns the queue in \(first.path)")
            }
            _ = try StateFolder(path)
        }
    }

    @Test func `the next owner is known until it is gone`() throws {
        try withTemporaryFolder { folder in
            let path = folder.path
            #expect(!StateFolder.Heir.exists(path))
            do {
                let heir = StateFolder.Heir(path)
                #expect(heir != nil && StateFolder.Heir.exists(path))
                #expect(StateFolder.Heir(path) == nil)
                withExtendedLifetime(heir) {}
            }
            #expect(!StateFolder.Heir.exists(path))
            #expect(StateFolder.Heir(folder.file("nowhere")) == nil)
        }
    }

    @Test(arguments: [UInt32(0o755), 0o777, 0o710, 0o701])
    func `a folder that others can look into is made private`(wrong: UInt32) throws {
        try withTemporaryFolder { folder in
            let path = folder.file("state")
            try #require(chmod(path, wrong) == 0)
            _ = try StateFolder(path)
            #expect(mode(of: path) == 0o700)
        }
    }

    @Test func `a folder of others' files is not closed to them`() throws {
        try withTemporaryFolder { folder in
            let path = folder.file("shared")
            try folder.makeFolder("shared")
            try folder.write("shared/theirs", "x")
            try #require(chmod(path, 0o755) == 0)
            let error = #expect(throws: FerryError.self) { try StateFolder(path) }
            #expect(error?.exitStatus == .database)
            #expect(error?.message.contains("no queue's") == true)
            #expect(mode(of: path) == 0o755)
            try folder.write("shared/jobs.db", "x")
            _ = try StateFolder(path)
            #expect(mode(of: path) == 0o700)
        }
    }

    @Test func `what is no folder is refused`() throws {
        try withTemporaryFolder { folder in
            try folder.write("file", "x")
            for name in ["file", "file/below"] {
                let error = #expect(throws: FerryError.self) { try StateFolder(folder.file(name)) }
                #expect(error?.code == .database)
                #expect(error?.exitStatus == .database)
                #expect(error?.message.contains(folder.file(name)) == true)
            }
        }
    }

    /// Numbers of statfs(2) and of the kernel's magic.h.
    @Test(
        arguments: [
            (0x6969, "nfs"), (0xFF53_4D42, "cifs"), (0xFE53_4D42, "smb2"), (0x0102_1997, "9p"),
            (0x6573_5546, "fuse"), (0x00C3_6400, "ceph"), (0x5346_414F, "afs"), (0x0BD0_0BD0, "lustre"),
            (0xEF53, nil), (0x5846_5342, nil), (0x9123_683E, nil), (0x0102_1994, nil), (0x794C_7630, nil),
            (-1, nil),
        ] as [(Int64, String?)]
    )
    func `network file systems are known by their number`(_ type: Int64, _ name: String?) {
        #expect(StateFolder.networkFileSystem(type) == name)
    }
}
