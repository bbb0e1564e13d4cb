import FerryTestSupport
import Glibc

/// A file system in a file, whose power can be cut; needs root and loop devices.
///
/// FS_IOC_SHUTDOWN stops every further write, and mounting again replays the journal, as after a real power cut.
/// The options let as much be lost as ext4 allows: it neither commits early nor rescues a rename without sync.
struct LoopDisk {
    /// Whether the tests may mount here.
    static var isPossible: Bool {
        getuid() == 0 && access("/dev/loop-control", R_OK | W_OK) == 0
    }

    /// Where it is mounted.
    let mountPoint: String
    private let image: String
    private let blocker: String

    /// Makes a file system and mounts it on a folder; its image lies in another.
    init(on mountPoint: String, imageIn folder: TemporaryFolder) async throws {
        self.mountPoint = mountPoint
        self.image = folder.file("disk.img")
        self.blocker = folder.file("blocker.img")
        for (path, size) in [(self.image, 256 << 20), (self.blocker, 1 << 20)] {
            try folder.write(String(path.dropFirst(folder.path.count + 1)), "")
            guard truncate(path, off_t(size)) == 0 else { throw Self.failure("truncate \(path)") }
        }
        let features = ["-E", "lazy_itable_init=0,nodiscard"]
        try await Self.run("mkfs.ext4", package: "e2fsprogs", ["-q", "-F"] + features + [self.image])
        try await self.mount()
    }

    /// Stops every further write; what was not synced is gone, the journal's last part with it.
    func cut() throws {
        let descriptor = open(self.mountPoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure("open \(self.mountPoint)") }
        defer { close(descriptor) }
        var withoutLog: UInt32 = 2
        // _IOR('X', 125, __u32); 2 is NOLOGFLUSH (the kernel's fs/xfs/xfs_fs.h, which ext4 follows).
        guard ioctl(descriptor, 0x8004_587d, &withoutLog) == 0 else { throw Self.failure("FS_IOC_SHUTDOWN") }
    }

    /// Mounts what survived, under another device number, as a boot may give it.
    func boot() async throws {
        let device = try await Self.run("findmnt", ["-n", "-o", "SOURCE", self.mountPoint])
            .stdout.prefix { $0 != "\n" }
        try await self.unmount()
        // The kernel lets go of the device some time after the file system.
        let end = ContinuousClock.now + .seconds(90)
        let losetup = try ToolRunner.program("losetup", package: "mount")
        while try await losetup.run([String(device), self.blocker]).status != 0 {
            guard ContinuousClock.now < end else { throw TestSupportError("\(device) stays busy") }
        }
        do {
            try await self.mount()
        } catch {
            _ = try? await losetup.run(["-d", String(device)])
            throw error
        }
        try await Self.run("losetup", ["-d", String(device)])
    }

    /// Takes the file system away; its processes must have ended.
    func unmount() async throws {
        try await Self.run("umount", [self.mountPoint])
    }

    private func mount() async throws {
        let options = "loop,noauto_da_alloc,commit=600"
        try await Self.run("mount", ["-t", "ext4", "-o", options, self.image, self.mountPoint])
    }

    @discardableResult
    private static func run(
        _ program: String,
        package: String = "mount",
        _ arguments: [String]
    ) async throws -> ToolResult {
        let result = try await ToolRunner.program(program, package: package).run(arguments)
        guard result.status == 0 else {
            throw TestSupportError("\(program) \(arguments): \(result.stderr)")
        }
        return result
    }

    private static func failure(_ action: String) -> TestSupportError {
        TestSupportError("\(action): \(String(cString: strerror(errno)))")
    }
}

/// Runs a test with a queue and a target on a file system of their own.
func withLoopDisk(_ body: (CrashScope, LoopDisk) async throws -> Void) async throws {
    try await withTemporaryFolder { images in
        try await withTemporaryFolder { folder in
            let disk = try await LoopDisk(on: folder.path, imageIn: images)
            let scope = try CrashScope(folder)
            do {
                try await body(scope, disk)
            } catch {
                _ = try? scope.probe.kill()
                try? await disk.unmount()
                throw error
            }
            try scope.probe.kill()
            try await disk.unmount()
        }
    }
}
