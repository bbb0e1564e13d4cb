import CFerryLinux
import FerryCore
import FerryFiles
import Glibc

/// What the machine gives a queue: a file system, a clock, descriptors; judged apart from how it is asked.
struct MachineCheck: Sendable {
    /// The state folder.
    var folder: String
    /// The type number of its file system (statfs(2)); negative if unknown.
    var fileSystemType: Int64 = -1
    /// Whether that can only be read.
    var isReadOnly = false
    /// What this user may still write there, in bytes; nil if unknown.
    var freeBytes: Int64?
    /// Whether no more files can be made there, although there is space.
    var isOutOfFiles = false
    /// How many descriptors the service may have open at most.
    var descriptors: UInt64 = .max
    /// The year by the clock.
    var year = 2026

    private static let inMemory: [Int64: String] = [0x0102_1994: "tmpfs", 0x8584_58F6: "ramfs"]
    /// With less the database's log cannot grow to what one commit may need.
    private static let leastFree: Int64 = 64 << 20

    /// Asks the system.
    init(asking folder: String, now: Timestamp) {
        self.init(folder: folder)
        self.year = now.civil.date.year
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor >= 0 {
            self.fileSystemType = ferry_filesystem_type(descriptor)
            close(descriptor)
        }
        var info = statvfs()
        if statvfs(folder, &info) == 0 {
            self.isReadOnly = info.f_flag & UInt(ST_RDONLY) != 0
            self.freeBytes = Int64(
                clamping: info.f_bavail.multipliedReportingOverflow(by: info.f_frsize).partialValue
            )
            self.isOutOfFiles = info.f_files > 0 && info.f_favail == 0
        }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            self.descriptors = UInt64(limit.rlim_max)
        }
    }

    init(folder: String) {
        self.folder = folder
    }

    /// The results.
    var findings: [Finding] { [self.place, self.space, self.limit, self.clock].compactMap { $0 } }

    private var place: Finding {
        if let name = StateFolder.networkFileSystem(self.fileSystemType) {
            return Finding(
                "file-system",
                .problem,
                "\(self.folder) is on a network file system (\(name)), which cannot hold a job database safely",
                advice: "name a local folder with --state-dir"
            )
        }
        if let name = Self.inMemory[self.fileSystemType] {
            return Finding(
                "file-system",
                .note,
                "\(self.folder) is in memory (\(name)): the queue is lost at the next boot",
                advice: "name a folder on a disk with --state-dir"
            )
        }
        if self.isReadOnly {
            return Finding(
                "file-system",
                .problem,
                "\(self.folder) is on a file system that can only be read",
                advice: "after a disk error Linux mounts so; look at the kernel's log"
            )
        }
        return Finding("file-system", .ok, "local and writable")
    }

    private var space: Finding? {
        guard let free = self.freeBytes else { return nil }
        let text = ByteCount(bytes: free).text
        if self.isOutOfFiles {
            return Finding(
                "disk",
                .problem,
                "no more files can be made in \(self.folder)",
                advice: "remove some"
            )
        }
        guard free >= Self.leastFree else {
            return Finding(
                "disk",
                .problem,
                "only \(text) are free in \(self.folder); transfers wait when the database cannot grow",
                advice: "free some space"
            )
        }
        return Finding("disk", .ok, "\(text) free")
    }

    private var limit: Finding {
        guard self.descriptors < 4_096 else { return Finding("descriptors", .ok, "enough") }
        // A transfer needs a socket, its partial and its folder.
        return Finding(
            "descriptors",
            self.descriptors < 256 ? .problem : .note,
            "a service may open \(self.descriptors) files, which is enough for some \(self.descriptors / 4) transfers "
                + "at once",
            advice: "raise the hard limit, `ulimit -Hn`"
        )
    }

    private var clock: Finding? {
        guard !(2024...2099).contains(self.year) else { return nil }
        return Finding(
            "clock",
            .problem,
            "the clock says that it is the year \(self.year)",
            advice: "set it; certificates and waiting times depend on it"
        )
    }
}
