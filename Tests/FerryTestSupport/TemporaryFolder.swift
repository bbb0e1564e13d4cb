import Glibc

/// A folder for one test, with an environment that keeps programs away from the user's files.
public struct TemporaryFolder: Sendable {
    /// The absolute path.
    public let path: String

    /// The path of a file in the folder.
    public func file(_ name: String) -> String {
        "\(self.path)/\(name)"
    }

    /// The environment for programs: home, state, configuration and runtime folders lie in this folder.
    ///
    /// `PATH` and the settings of sanitizers and coverage are those of the test.
    public var environment: [String: String] {
        var environment = [
            "HOME": self.file("home"),
            "XDG_STATE_HOME": self.file("state"),
            "XDG_CONFIG_HOME": self.file("config"),
            "XDG_DATA_HOME": self.file("data"),
            "XDG_CACHE_HOME": self.file("cache"),
            "XDG_RUNTIME_DIR": self.file("run"),
            "TMPDIR": self.path,
            "LC_ALL": "C.UTF-8",
        ]
        let kept = [
            "PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "LLVM_PROFILE_FILE",
        ]
        for name in kept {
            if let value = environmentVariable(name) { environment[name] = value }
        }
        return environment
    }

    /// Ferry's state folder in that environment.
    public var stateFolder: String {
        self.file("state/ferry")
    }

    /// The socket of the service that commands use in that environment.
    public var socketPath: String {
        self.file("run/ferry/control.sock")
    }

    /// Creates or replaces a file and returns its path.
    @discardableResult
    public func write(_ name: String, _ content: String) throws -> String {
        try writeFile(self.file(name), content.utf8)
        return self.file(name)
    }

    /// A file's bytes.
    public func read(_ name: String) throws -> [UInt8] {
        try readFile(self.file(name))
    }

    /// A file's content as text.
    public func text(_ name: String) throws -> String {
        String(decoding: try self.read(name), as: UTF8.self)
    }

    /// Whether a name exists, even a dangling link.
    public func exists(_ name: String) -> Bool {
        var info = stat()
        return lstat(self.file(name), &info) == 0
    }

    /// The names in the folder or one below it, sorted; hidden ones are included.
    public func names(in subfolder: String = "") throws -> [String] {
        try folderNames(self.file(subfolder)).sorted()
    }

    /// Makes a folder inside and returns its path.
    @discardableResult
    public func makeFolder(_ name: String, mode: UInt32 = 0o755) throws -> String {
        guard mkdir(self.file(name), mode) == 0 || errno == EEXIST else {
            throw TestSupportError.system("mkdir \(self.file(name))", errno)
        }
        return self.file(name)
    }

    fileprivate static func make() throws -> TemporaryFolder {
        // Short, because a socket's path has 107 bytes (unix(7)).
        var template = Array("/tmp/ferry-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestSupportError.system("mkdtemp", errno) }
        let folder = TemporaryFolder(path: cText(template))
        for name in ["home", "state", "config", "data", "cache"] { try folder.makeFolder(name) }
        try folder.makeFolder("run", mode: 0o700)
        return folder
    }

    fileprivate func remove() {
        removeTree(self.path)
    }
}

/// Runs a test in a folder of its own that is removed at the end.
public func withTemporaryFolder<Result>(_ body: (TemporaryFolder) throws -> Result) throws -> Result {
    let folder = try TemporaryFolder.make()
    defer { folder.remove() }
    return try body(folder)
}

/// Runs an asynchronous test in a folder of its own that is removed at the end.
public func withTemporaryFolder<Result>(
    _ body: (TemporaryFolder) async throws -> Result
) async throws -> Result {
    let folder = try TemporaryFolder.make()
    defer { folder.remove() }
    return try await body(folder)
}

/// A variable of this process's environment.
func environmentVariable(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
}

/// The names in a folder, without `.` and `..`.
func folderNames(_ path: String) throws -> [String] {
    guard let folder = opendir(path) else { throw TestSupportError.system("opendir \(path)", errno) }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != "." && name != ".." { names.append(name) }
    }
    return names
}

/// Removes a file, or a folder with all that it holds; what cannot be removed stays.
private func removeTree(_ path: String) {
    var info = stat()
    guard lstat(path, &info) == 0 else { return }
    if info.st_mode & S_IFMT == S_IFDIR {
        _ = chmod(path, 0o700)
        for name in (try? folderNames(path)) ?? [] { removeTree("\(path)/\(name)") }
        rmdir(path)
    } else {
        unlink(path)
    }
}
