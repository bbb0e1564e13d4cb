import CFerryLinux
import CXXHash
public import FerryCore
import Glibc
import Synchronization

/// How far the partials are written, in a file that outlives the process in the page cache.
///
/// For each running segment a slot holds the written offset and the hash of each region of ``PrefixHash`` above
/// the durable offset. **Nothing in it is believed**: at start the regions are read back and compared, and only the
/// longest proved prefix counts. So a killed process fetches nothing again that was written, and after a power
/// cut whatever did reach the disk is kept too.
///
/// An entry is made *before* its bytes are written, in one of two tails by turns: if the process dies between
/// the entry and the write, the newer tail does not prove and the older one does.
public final class ProgressBoard: Sendable {
    /// The size of a region, in bytes.
    public static let regionSize: Int64 = 256 * 1_024
    /// Regions that a slot remembers: more than can be written and not durable at once.
    static let regions = 320

    /// What identifies a segment of a partial.
    public struct Key: Hashable, Sendable {
        /// The job.
        public let job: JobID
        /// The generation of its partial.
        public let generation: Int
        /// Where the segment begins in the file.
        public let start: Int64

        /// Makes a key.
        public init(job: JobID, generation: Int, start: Int64) {
            self.job = job
            self.generation = generation
            self.start = start
        }
    }

    /// One of the two newest claims of a slot.
    struct Tail: Sendable, Equatable {
        /// One past the last byte that was to be written.
        var written: Int64
        /// The hash of the last, possibly unfinished region up to there.
        var hash: UInt64
    }

    /// What an earlier process claimed of one segment.
    public struct Claim: Sendable {
        /// Where that process began to write.
        let base: Int64
        /// The newest first.
        let tails: [Tail]
        /// One past the last byte that it speaks of.
        fileprivate var end: Int64 { self.tails.first?.written ?? self.base }
        /// The hash of each whole region, by number modulo ``ProgressBoard/regions``.
        let hashes: [UInt64]
    }

    // The layout of the file, in 64-bit words: a header, then slots.
    static let magic: UInt64 = 0x31_44_52_41_4F_42_59_46  // "FYBOARD1"
    static let headerWords = 8
    private enum Word {
        static let job = 0
        static let generation = 1
        static let start = 2
        static let base = 3
        static let tails = 4  // two of (written, hash, seal)
        static let hashes = 10
    }
    static let slotWords = 10 + ProgressBoard.regions + 6

    private struct Memory: @unchecked Sendable {
        // Each slot is written by the one transfer that holds it.
        let words: UnsafeMutablePointer<UInt64>
        let count: Int
    }

    private let memory: Memory
    private let free: Mutex<[Int]>
    private let isFrozen = Atomic<Bool>(false)

    /// Makes an empty board, in place of one that an earlier process left.
    ///
    /// `slots` segments can be written at once; more run without a slot and lose no more than what is not yet
    /// durable.
    public init(path: String, slots: Int) throws(SystemError) {
        let size = (Self.headerWords + slots * Self.slotWords) * 8
        let descriptor = ferry_openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError(errno: errno, action: "open", path: path) }
        defer { close(descriptor) }
        // All blocks at once: a full disk is found now and not as a signal on a later store.
        // Cut first: new blocks read as zero, and none of them needs memory before it is used.
        guard ftruncate(descriptor, 0) == 0, ftruncate(descriptor, off_t(size)) == 0 else {
            throw SystemError(errno: errno, action: "resize", path: path)
        }
        let code = posix_fallocate(descriptor, 0, off_t(size))  // tells its error without errno
        guard code == 0 else { throw SystemError(errno: code, action: "allocate", path: path) }
        guard let base = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            base != MAP_FAILED
        else { throw SystemError(errno: errno, action: "map", path: path) }
        let words = base.bindMemory(to: UInt64.self, capacity: size / 8)
        words[0] = Self.magic
        words[1] = UInt64(slots)
        self.memory = Memory(words: words, count: size / 8)
        self.free = Mutex(Array((0..<slots).reversed()))
    }

    deinit {
        munmap(self.memory.words, self.memory.count * 8)
    }

    /// Takes a slot for a segment that is about to be written from `base` on; nil if all are taken.
    public func begin(_ key: Key, base: Int64) -> Slot? {
        guard let index = self.free.withLock({ $0.popLast() }) else { return nil }
        return Slot(board: self, index: index, key: key, base: base)
    }

    /// Keeps every claim from now on, those of slots that are given back included; for a process that is to end.
    public func freeze() {
        self.isFrozen.store(true, ordering: .releasing)
    }

    /// How far a file's bytes are proved to be what was written, beyond what is durable.
    ///
    /// Reads at most what was not durable, and the region in which that begins. The result is that of `durable`
    /// with what is proved to follow it.
    public static func prove(
        _ claim: Claim,
        of file: OpenFile,
        durable: PrefixHash
    ) throws(SystemError) -> PrefixHash {
        guard claim.base <= durable.end else { return durable }  // nothing is known of what lies between
        var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(Self.regionSize), alignment: 4_096)
        defer { buffer.deallocate() }
        var proved = durable
        // Whole regions first, as far as they prove, but not beyond what the newest claim says.
        while let border = Self.border(after: proved.end), border <= claim.end {
            let region = border / Self.regionSize - 1
            let hash = claim.hashes[Int(region % Int64(Self.regions))]
            guard try Self.matches(hash, file, from: border - Self.regionSize, to: border, &buffer) else {
                break
            }
            proved = proved.extended(to: border, tail: hash)
        }
        for tail in claim.tails where tail.written > proved.end {
            let first = (tail.written - 1) / Self.regionSize * Self.regionSize
            guard first <= proved.end,
                try Self.matches(tail.hash, file, from: first, to: tail.written, &buffer)
            else { continue }
            return proved.extended(to: tail.written, tail: tail.hash)
        }
        return proved
    }

    /// The end of the region that the byte at an offset belongs to; nil if no file is so long.
    private static func border(after offset: Int64) -> Int64? {
        let (border, overflow) = (offset / Self.regionSize + 1).multipliedReportingOverflow(
            by: Self.regionSize
        )
        return overflow ? nil : border
    }

    private static func matches(
        _ hash: UInt64,
        _ file: OpenFile,
        from: Int64,
        to end: Int64,
        _ buffer: inout UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Bool {
        guard end > from, end - from <= Self.regionSize else { return false }
        let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(end - from)])
        do throws(SystemError) {
            try file.read(into: bytes, at: from)
        } catch {
            guard error.errno == ENODATA else { throw error }
            return false  // the file is shorter than was claimed
        }
        return bytes.baseAddress.map { ferry_xxh3($0, bytes.count) } == hash
    }

    // MARK: Reading an earlier board

    /// What an earlier process claimed; to be proved and committed before a new board takes the file's place.
    public static func claims(path: String) -> [Key: Claim] {
        let descriptor = ferry_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0)
        guard descriptor >= 0 else { return [:] }  // there is none: nothing is claimed
        defer { close(descriptor) }
        var info = stat()
        guard fstat(descriptor, &info) == 0, info.st_size >= Self.headerWords * 8,
            info.st_size <= 1 << 30
        else { return [:] }
        var words = [UInt64](repeating: 0, count: Int(info.st_size) / 8)
        let wanted = words.count * 8
        var done = 0
        while done < wanted {
            let count = words.withUnsafeMutableBytes { bytes in
                pread(descriptor, bytes.baseAddress.map { $0 + done }, wanted - done, off_t(done))
            }
            guard count > 0 else { return [:] }
            done += count
        }
        guard words[0] == Self.magic else { return [:] }
        var claims: [Key: Claim] = [:]
        var slot = Self.headerWords
        while slot + Self.slotWords <= words.count {
            if let (key, claim) = Self.claim(words[slot..<slot + Self.slotWords]),
                // Two slots of one segment: a request's last bytes and the next one's first.
                claims[key].map({ $0.end < claim.end }) ?? true
            {
                claims[key] = claim
            }
            slot += Self.slotWords
        }
        return claims
    }

    /// Reads one slot; anything that does not add up is no claim.
    private static func claim(_ slot: ArraySlice<UInt64>) -> (Key, Claim)? {
        let words = Array(slot)
        guard let job = Int64(exactly: words[Word.job]), job > 0,
            let generation = Int(exactly: words[Word.generation]),
            let start = Int64(exactly: words[Word.start]),
            let base = Int64(exactly: words[Word.base])
        else { return nil }
        let tails = (0..<2).compactMap { index -> Tail? in
            let at = Word.tails + index * 3
            guard words[at + 2] == Self.seal(words[at], words[at + 1]),
                let written = Int64(exactly: words[at]), written > base
            else { return nil }
            return Tail(written: written, hash: words[at + 1])
        }
        guard !tails.isEmpty else { return nil }
        return (
            Key(job: JobID(rawValue: job), generation: generation, start: start),
            Claim(
                base: base,
                tails: tails.sorted { $0.written > $1.written },
                hashes: Array(words[Word.hashes..<Word.hashes + Self.regions])
            )
        )
    }

    fileprivate static func seal(_ written: UInt64, _ hash: UInt64) -> UInt64 {
        written ^ hash.byteSwapped ^ Self.magic
    }

    // MARK: Writing

    /// The place of one segment on the board; freed when the last reference goes.
    ///
    /// Used by one thread at a time, in the order of the bytes.
    public final class Slot: @unchecked Sendable {
        // Whoever writes the segment's bytes uses it, one write after the other.

        private let board: ProgressBoard
        private let index: Int
        private var turn = 0

        fileprivate init(board: ProgressBoard, index: Int, key: Key, base: Int64) {
            self.board = board
            self.index = index
            let words = self.words
            for word in 0..<ProgressBoard.slotWords { words[word] = 0 }
            words[Word.generation] = UInt64(key.generation)
            words[Word.start] = UInt64(key.start)
            words[Word.base] = UInt64(base)
            ferry_store_release(words + Word.job, UInt64(key.job.rawValue))
        }

        deinit {
            guard !self.board.isFrozen.load(ordering: .acquiring) else { return }
            ferry_store_release(self.words + Word.job, 0)
            self.board.free.withLock { $0.append(self.index) }
        }

        private var words: UnsafeMutablePointer<UInt64> {
            self.board.memory.words + ProgressBoard.headerWords + self.index * ProgressBoard.slotWords
        }

        /// Claims bytes that are about to be written at the segment's end, and hashes them; they must follow
        /// the last ones.
        func willWrite(_ bytes: UnsafeRawBufferPointer, _ hasher: PrefixHasher) {
            hasher.update(bytes) { region, hash in
                ferry_store_release(
                    self.words + Word.hashes + Int(region % Int64(ProgressBoard.regions)),
                    hash
                )
            }
            let tail = self.words + Word.tails + self.turn * 3
            self.turn = 1 - self.turn
            let (written, hash) = (UInt64(hasher.hash.end), hasher.hash.tail)
            ferry_store_release(tail + 2, 0)
            ferry_store_release(tail, written)
            ferry_store_release(tail + 1, hash)
            ferry_store_release(tail + 2, ProgressBoard.seal(written, hash))
        }

        /// Takes the claim back, for good: after a sync that failed what is read from the file proves nothing.
        public func withdraw() {
            ferry_store_release(self.words + Word.job, 0)
        }
    }
}
