import FerryCore
import Glibc

/// Where files go: the folder and, with `-o`, the file.
struct Destination: Equatable, Sendable {
    /// The folder, absolute.
    var directory: String
    /// The file, absolute.
    var output: String?
    /// Whether a missing folder is made: with `-d`, but never a folder inside `-o`.
    var createsDirectory: Bool
    /// The folder of `-d` under which a relative `-o` lies.
    var base: String?

    /// The machine's queue looks at the folder, and makes it, with its own rights.
    var isLeftToService = false

    /// Reads `-o` and `-d`.
    ///
    /// - Throws: A usage error for a value of `-o` that names no file.
    init(output: String?, directory: String?, in surroundings: Surroundings) throws(FerryError) {
        let folder = directory.map { surroundings.absolute($0) }
        guard let output else {
            self.directory = folder ?? surroundings.absolute(".")
            self.output = nil
            self.createsDirectory = folder != nil
            return
        }
        if output == "-" {
            throw .usage(
                "-o - is not possible: ferry writes files that it can resume, not to standard output"
            )
        }
        let last = output.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        guard !last.isEmpty, last != ".", last != ".." else {
            throw .usage("-o: '\(output.shown)' names a folder, not a file; -d DIR names the folder")
        }
        guard last.utf8.count <= 255 else { throw .usage("-o: the file's name is longer than 255 bytes") }
        let file = surroundings.absolute(output, base: folder)
        let slash = file.lastIndex(of: "/") ?? file.startIndex
        self.output = file
        self.directory = slash == file.startIndex ? "/" : String(file[..<slash])
        self.base = output.hasPrefix("/") ? nil : folder
        self.createsDirectory = self.base == self.directory
    }

    /// Checks that the folder can be used, and makes it where it may be made.
    ///
    /// - Returns: The folders that were made, outermost first.
    /// - Throws: ``FerryError`` with exit status 1; nothing has been queued.
    @discardableResult
    func prepare() throws(FerryError) -> [String] {
        var made: [String] = []
        if let base = self.base { made += try Self.make(base) }
        if self.createsDirectory { made += try Self.make(self.directory) }
        var info = stat()
        guard stat(self.directory, &info) == 0 else {
            throw Self.unusable(self.directory, errno)
        }
        guard info.st_mode & S_IFMT == S_IFDIR else { throw Self.unusable(self.directory, ENOTDIR) }
        guard faccessat(AT_FDCWD, self.directory, W_OK | X_OK, AT_EACCESS) == 0 else {
            throw Self.unusable(self.directory, errno)
        }
        if let output = self.output, stat(output, &info) == 0, info.st_mode & S_IFMT == S_IFDIR {
            throw FerryError(
                .localIO,
                "cannot write '\(output.shown)': it is a folder; -d DIR names the folder",
                exitStatus: .failed
            )
        }
        return made
    }

    /// Prepares the folder for `body`, and takes back what was made for it if that is refused.
    ///
    /// A service that was lost may have queued the job, so that the folder stays then.
    func withFolder<Result>(_ body: () throws(FerryError) -> Result) throws(FerryError) -> Result {
        let made = self.isLeftToService ? [] : try self.prepare()
        do throws(FerryError) {
            return try body()
        } catch {
            if error.exitStatus != .noService {
                for folder in made.reversed() { rmdir(folder) }  // one that is used meanwhile stays
            }
            throw error
        }
    }

    private static func make(_ path: String) throws(FerryError) -> [String] {
        var made: [String] = []
        var current = ""
        for part in path.split(separator: "/") {
            current += "/\(part)"
            guard mkdir(current, 0o777) != 0 else {
                made.append(current)
                Self.sync(String(current.dropLast(part.count + 1)))
                continue
            }
            let problem = errno
            var info = stat()
            if stat(current, &info) == 0 {
                if info.st_mode & S_IFMT == S_IFDIR { continue }
                throw Self.unusable(current, ENOTDIR)
            }
            throw Self.unusable(current, problem)
        }
        return made
    }

    /// Makes the names in a folder durable, so that a power cut does not take a new folder with what is in it.
    private static func sync(_ folder: String) {
        let descriptor = open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }  // a folder that may be searched and not read cannot be synced
        _ = fsync(descriptor)  // where it fails the service's own syncs fail too, and tell
        close(descriptor)
    }

    private static func unusable(_ path: String, _ problem: Int32) -> FerryError {
        let reason: String
        switch problem {
        case ENOENT: reason = "it does not exist"
        case ENOTDIR: reason = "it is no folder"
        case EACCES: reason = "no permission to write there"
        case EROFS: reason = "the file system is read-only"
        default: reason = String(cString: strerror(problem))
        }
        return FerryError(
            .localIO,
            "the folder '\(path.shown)' cannot be used: \(reason)",
            exitStatus: .failed
        )
    }
}
