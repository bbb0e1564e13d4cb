import CFerryLinux
import Glibc

/// Gives memory back that an idle service has no use for.
enum MemoryTrim {
    /// How often an idle service looks.
    static let interval = Duration.seconds(120)
    /// When it looks first: what only the start needed is gone by then.
    static let first = Duration.seconds(10)

    /// Returns free heap pages (malloc_trim(3)), and unmaps the pages of program code.
    ///
    /// Code that runs again is mapped again from the page cache, or from the file if memory was short. Start-up and
    /// transfers touch some 20 MiB of it, and an idle service 2 or 3.
    static func run() {
        ferry_trim_heap()
        for range in Self.code(Self.maps()) {
            // Pages of code are never written, so nothing is lost: they are those of the file (madvise(2)).
            madvise(UnsafeMutableRawPointer(bitPattern: range.lowerBound), range.count, MADV_DONTNEED)
        }
    }

    /// The address ranges of `r-xp` mappings of files, in the text of /proc/self/maps (proc(5)).
    static func code(_ maps: String) -> [Range<UInt>] {
        maps.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
            guard words.count == 6, words[1] == "r-xp", words[5].drop(while: { $0 == " " }).hasPrefix("/")
            else { return nil }
            let ends = words[0].split(separator: "-").map { UInt($0, radix: 16) }
            guard ends.count == 2, let start = ends[0], let end = ends[1], start < end else { return nil }
            return start..<end
        }
    }

    /// The text of /proc/self/maps; empty where it cannot be read.
    static func maps() -> String {
        let descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += buffer[..<count]
        }
    }
}
