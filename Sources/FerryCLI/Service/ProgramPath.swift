import FerryCore
import Glibc

/// Finds the program that an option names, as a shell would.
enum ProgramPath {
    /// The absolute path of a program: one with a slash is a path, else `PATH` is searched.
    ///
    /// - Throws: A usage error if there is none, or if it cannot be run.
    static func resolve(_ name: String, option: String, in surroundings: Surroundings) throws(FerryError)
        -> String
    {
        if name.utf8.contains(UInt8(ascii: "/")) {
            let path = surroundings.absolute(name)
            if let problem = self.problem(path) { throw .usage("\(option): '\(name.shown)' \(problem)") }
            return path
        }
        let folders = (surroundings.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin")
            .split(separator: ":", omittingEmptySubsequences: false)
        for folder in folders {
            // An empty one is the current folder (execvp(3)).
            let path = surroundings.absolute(folder.isEmpty ? name : "\(folder)/\(name)")
            if self.problem(path) == nil { return path }
        }
        throw .usage(
            "\(option): there is no program '\(name.shown)' in PATH; it takes a program without arguments"
        )
    }

    private static func problem(_ path: String) -> String? {
        var info = stat()
        guard stat(path, &info) == 0 else { return "cannot be found: \(String(cString: strerror(errno)))" }
        guard info.st_mode & S_IFMT == S_IFREG else { return "is no program" }
        return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? nil : "cannot be run; is it executable?"
    }
}
