import CFerryLinux
import Glibc
import Synchronization

/// Tells of other programs that write into files which are open here.
///
/// The kernel keeps an event for each descriptor that was open for writing and is closed (inotify(7)); they are read
/// when somebody asks, so that writing costs nothing. What is not seen: a program that still has its descriptor, a
/// truncate(2) by name, and another machine that writes into a network file system.
public final class EditWatch: Sendable {
    private struct Watched {
        /// Marks of the file; the kernel has one for all of them.
        var count = 0
        /// How often an edit was seen.
        var edits = 0
    }

    private let descriptor: Int32
    private let files = Mutex<[Int32: Watched]>([:])

    /// Begins with no file; nil if the kernel gives no more of these.
    public init?() {
        self.descriptor = ferry_edit_watch()
        guard self.descriptor >= 0 else { return nil }
    }

    deinit {
        close(self.descriptor)
    }

    /// Watches a file from now on, for as long as the mark lives; nil if that cannot be had.
    ///
    /// Our own descriptors count as others', unless they are closed after the last mark of their file is gone: as
    /// `file` is, which the mark keeps.
    public func mark(_ file: OpenFile) -> Mark? {
        self.files.withLock { files in
            let number = ferry_edit_watch_add(self.descriptor, file.descriptor)
            guard number > 0 else { return nil }
            files[number, default: Watched()].count += 1
            return Mark(watch: self, file: file, number: number, edits: files[number]?.edits ?? 0)
        }
    }

    private func edits(of number: Int32) -> Int {
        self.files.withLock { files in
            self.readEvents(&files)
            return files[number]?.edits ?? 0
        }
    }

    private func unmark(_ number: Int32) {
        self.files.withLock { files in
            guard let count = files[number]?.count else { return }
            if count > 1 {
                files[number]?.count = count - 1
            } else {
                files[number] = nil
                ferry_edit_watch_remove(self.descriptor, number)
            }
            self.readEvents(&files)  // numbers are not given again: what is left of this one is passed over
        }
    }

    private func readEvents(_ files: inout [Int32: Watched]) {
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: 64) { marks in
            guard let first = marks.baseAddress else { return }
            while case let count = Int(ferry_edit_watch_next(self.descriptor, first, Int32(marks.count))),
                count > 0
            {
                for number in marks[..<count] {
                    if number < 0 {
                        for key in files.keys { files[key]?.edits += 1 }  // some were lost: of any of them
                    } else {
                        files[number]?.edits += 1
                    }
                }
            }
        }
    }

    /// A file that is watched.
    public final class Mark: Sendable {
        private let watch: EditWatch
        private let file: OpenFile
        private let number: Int32
        private let before: Int

        fileprivate init(watch: EditWatch, file: OpenFile, number: Int32, edits: Int) {
            self.watch = watch
            self.file = file
            self.number = number
            self.before = edits
        }

        deinit {
            self.watch.unmark(self.number)
        }

        /// Whether another program may have changed the file since the mark was made.
        public var isEdited: Bool { self.watch.edits(of: self.number) > self.before }
    }
}
