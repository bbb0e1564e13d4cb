import CFerryLinux
import Glibc
import Synchronization

/// Tells of other programs that write into files which are open here.
///
/// The kernel keeps an event for each descriptor that was open for writing and is closed (inotify(7)); they are read
/// when somebody asks, so that writing costs nothing. What is not seen: a program that still has its descriptor, a
/// truncate(2) by name, and another machine that writes into a network file system.
///
/// One is enough for a process, and the kernel gives a user but 128 of them by default.
public final class EditWatch: Sendable {
    private struct Watched {
        /// Marks of the file; the kernel has one for all of them.
        var count = 0
        /// How often an edit was seen.
        var edits = 0
    }

    private struct State {
        /// Opened for the first file; -1 as long as the kernel gives none.
        var descriptor: Int32 = -1
        var files: [Int32: Watched] = [:]
    }

    /// The one of this process.
    public static let shared = EditWatch()

    private let state = Mutex(State())

    init() {}

    deinit {
        self.state.withLock { state in
            if state.descriptor >= 0 { close(state.descriptor) }
        }
    }

    /// Watches a file from now on, for as long as the mark lives; nil if that cannot be had.
    ///
    /// Our own descriptors count as others', unless they are closed after the last mark of their file is gone: as
    /// `file` is, which the mark keeps.
    public func mark(_ file: OpenFile) -> Mark? {
        self.state.withLock { state in
            if state.descriptor < 0 { state.descriptor = ferry_edit_watch() }
            guard state.descriptor >= 0 else { return nil }
            let number = ferry_edit_watch_add(state.descriptor, file.descriptor)
            guard number > 0 else { return nil }
            state.files[number, default: Watched()].count += 1
            return Mark(watch: self, file: file, number: number, edits: state.files[number]?.edits ?? 0)
        }
    }

    private func edits(of number: Int32) -> Int {
        self.state.withLock { state in
            self.readEvents(&state)
            return state.files[number]?.edits ?? 0
        }
    }

    private func unmark(_ number: Int32) {
        self.state.withLock { state in
            guard let count = state.files[number]?.count else { return }
            if count > 1 {
                state.files[number]?.count = count - 1
            } else {
                state.files[number] = nil
                ferry_edit_watch_remove(state.descriptor, number)
            }
            self.readEvents(&state)  // numbers are not given again: what is left of this one is passed over
        }
    }

    private func readEvents(_ state: inout State) {
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: 64) { marks in
            guard let first = marks.baseAddress else { return }
            while case let count = Int(ferry_edit_watch_next(state.descriptor, first, Int32(marks.count))),
                count > 0
            {
                for number in marks[..<count] {
                    if number < 0 {
                        // Some were lost, of any of them.
                        for key in state.files.keys { state.files[key]?.edits += 1 }
                    } else {
                        state.files[number]?.edits += 1
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
