import FerryCore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryCLI

@Suite struct DestinationTests {
    private func destination(_ folder: TemporaryFolder, o: String?, d: String?) throws -> Destination {
        try Destination(output: o, directory: d, in: surroundings(directory: folder.path))
    }

    @Test func `a missing folder of -d is made, with those above it`() throws {
        try withTemporaryFolder { folder in
            try self.destination(folder, o: nil, d: "a/b/c").prepare()
            #expect(folder.exists("a/b/c"))
            try self.destination(folder, o: "f", d: "x").prepare()
            #expect(folder.exists("x"))
        }
    }

    @Test func `a missing folder inside -o is not made`() throws {
        try withTemporaryFolder { folder in
            let error = #expect(throws: FerryError.self) {
                try self.destination(folder, o: "sub/f", d: "x").prepare()
            }
            #expect(error?.exitStatus == .failed)
            #expect(error?.message == "the folder '\(folder.path)/x/sub' cannot be used: it does not exist")
            #expect(!folder.exists("x/sub"))
        }
    }

    @Test func `a file in place of the folder is refused`() throws {
        try withTemporaryFolder { folder in
            try folder.write("file", "")
            for d in ["file", "file/below"] {
                let error = #expect(throws: FerryError.self) {
                    try self.destination(folder, o: nil, d: d).prepare()
                }
                #expect(error?.exitStatus == .failed)
                #expect(error?.message == "the folder '\(folder.path)/file' cannot be used: it is no folder")
            }
        }
    }

    @Test(.enabled(if: geteuid() != 0))
    func `a folder without leave to write is refused`() throws {
        try withTemporaryFolder { folder in
            try folder.makeFolder("closed", mode: 0o500)
            let error = #expect(throws: FerryError.self) {
                try self.destination(folder, o: nil, d: "closed").prepare()
            }
            #expect(error?.exitStatus == .failed)
        }
    }

    @Test func `-o that is a folder is refused`() throws {
        try withTemporaryFolder { folder in
            try folder.makeFolder("sub")
            let error = #expect(throws: FerryError.self) {
                try self.destination(folder, o: "sub", d: nil).prepare()
            }
            #expect(error?.exitStatus == .failed)
        }
    }
}
