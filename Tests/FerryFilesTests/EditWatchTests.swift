import FerryTestSupport
import Glibc
import Testing

@testable import FerryFiles

@Suite struct EditWatchTests {
    /// Opens a file as another program would, and closes it again.
    private static func open(_ path: String, _ flags: Int32) throws {
        let descriptor = Glibc.open(path, flags)
        try #require(descriptor >= 0)
        close(descriptor)
    }

    @Test func `what others write is seen, what they read is not`() throws {
        try withTemporaryFolder { folder in
            let watch = EditWatch()
            let place = try Folder(folder.path)
            let (file, other) = try (place.create("a", mode: 0o600), place.create("b", mode: 0o600))
            let (mark, otherMark) = try (#require(watch.mark(file)), #require(watch.mark(other)))
            try [1, 2, 3].withUnsafeBytes { try file.write($0, at: 0) }
            try file.truncate(to: 2)
            try file.sync()
            try Self.open(file.path, O_RDONLY)
            #expect(!mark.isEdited)
            try Self.open(file.path, O_WRONLY)
            #expect(mark.isEdited && mark.isEdited)
            #expect(!otherMark.isEdited)
            let late = try #require(watch.mark(file))
            #expect(!late.isEdited)
            try place.rename("a", to: "c", replacing: false)
            try Self.open(folder.file("c"), O_RDWR)
            #expect(late.isEdited && !otherMark.isEdited)
        }
    }

    @Test func `marks of one file end one by one`() throws {
        try withTemporaryFolder { folder in
            let watch = EditWatch()
            let place = try Folder(folder.path)
            var first: EditWatch.Mark? = try watch.mark(place.create("a", mode: 0o600))
            let second = try #require(try watch.mark(place.open("a", onlyForReading: true)))
            #expect(first?.isEdited == false && !second.isEdited)
            first = nil
            // The first one's file was closed with it, after it: it was open for writing.
            #expect(second.isEdited)
            let third = try #require(try watch.mark(place.open("a")))
            #expect(!third.isEdited)
            try Self.open(folder.file("a"), O_WRONLY)
            #expect(third.isEdited)
        }
    }

    @Test func `a file that was closed and is opened again begins anew`() throws {
        try withTemporaryFolder { folder in
            let watch = EditWatch()
            let place = try Folder(folder.path)
            do {
                let mark = try #require(try watch.mark(place.create("a", mode: 0o600)))
                try Self.open(folder.file("a"), O_WRONLY)
                #expect(mark.isEdited)
            }
            try Self.open(folder.file("a"), O_WRONLY)
            let mark = try #require(try watch.mark(place.open("a")))
            #expect(!mark.isEdited)
            try Self.open(folder.file("a"), O_WRONLY)
            #expect(mark.isEdited)
        }
    }

    @Test func `lost events count for every file`() throws {
        let kernel = try Folder("/proc/sys/fs/inotify").open("max_queued_events", onlyForReading: true)
        var digits = [UInt8](repeating: 0, count: 16)
        let count = pread(kernel.descriptor, &digits, digits.count, 0)
        let text = String(decoding: digits.prefix(max(0, count)), as: UTF8.self)
        let limit = try #require(Int(text.filter { $0.isNumber }))
        try withTemporaryFolder { folder in
            let watch = EditWatch()
            let place = try Folder(folder.path)
            let files = try ["a", "b", "c"].map { try place.create($0, mode: 0o600) }
            let marks = try files.map { try #require(watch.mark($0)) }
            // Equal events that follow each other are one; so may be some others, while a child begins that holds the
            // descriptor as well.
            for number in 0...min(limit, 100_000) + 1_000 { try Self.open(files[number % 2].path, O_WRONLY) }
            #expect(marks[0].isEdited && marks[1].isEdited)
            #expect(marks[2].isEdited == (limit <= 100_000))
        }
    }
}
