import FerryCore
import Glibc

/// What a command takes from the process around it; gathered once, so that the rest can be tested.
struct Surroundings: Sendable {
    /// Where relative paths start.
    var currentDirectory: String
    /// The environment.
    var environment: [String: String]
    /// The file mode creation mask.
    var umask: UInt32
    /// The descriptor of standard input.
    var input: Int32 = 0

    /// Those of this process.
    ///
    /// - Throws: ``FerryError`` with exit status 1 if the current folder is gone.
    static func current(_ environment: [String: String]) throws(FerryError) -> Surroundings {
        guard let pointer = getcwd(nil, 0) else {
            let problem = String(cString: strerror(errno))
            throw FerryError(.localIO, "the current folder cannot be used: \(problem)", exitStatus: .failed)
        }
        defer { free(pointer) }
        let mask = Glibc.umask(0)
        _ = Glibc.umask(mask)
        return Surroundings(
            currentDirectory: String(cString: pointer),
            environment: environment,
            umask: mask
        )
    }

    /// The environment of this process; of a name that stands there twice the first counts, as in getenv(3).
    static func environmentVariables() -> [String: String] {
        var result: [String: String] = [:]
        var entry = environ
        while let pointer = entry.pointee {
            let text = String(cString: pointer)
            if let equals = text.firstIndex(of: "=") {
                let name = String(text[..<equals])
                if result[name] == nil { result[name] = String(text[text.index(after: equals)...]) }
            }
            entry += 1
        }
        return result
    }

    /// The value of the first of these variables that is set and not empty.
    func variable(_ names: String...) -> String? {
        for name in names {
            if let value = self.environment[name], !value.isEmpty { return value }
        }
        return nil
    }

    /// The proxies; `HTTP_PROXY` is not read, since a web server sets it from a request's header (CVE-2016-5385).
    var proxy: ProxyEnvironment {
        ProxyEnvironment(
            http: self.variable("http_proxy"),
            https: self.variable("https_proxy", "HTTPS_PROXY"),
            all: self.variable("all_proxy", "ALL_PROXY"),
            no: self.variable("no_proxy", "NO_PROXY")
        )
    }

    /// A path made absolute against `base` (or the current folder), without `.`, `//` and safe `..`.
    func absolute(_ path: String, base: String? = nil) -> String {
        let joined = path.hasPrefix("/") ? path : "\(base ?? self.currentDirectory)/\(path)"
        return Self.normalise(joined, isFolder: Self.isRealFolder)
    }

    /// Takes `.` and repeated slashes out of an absolute path, and `..` where the part before is a real folder.
    ///
    /// Behind a symbolic link `..` is the parent of the link's target, so there it stays.
    static func normalise(_ path: String, isFolder: (String) -> Bool) -> String {
        var parts: [Substring] = []
        for part in path.split(separator: "/") where part != "." {
            if part == ".." {
                if parts.isEmpty { continue }
                if parts.last != "..", isFolder("/" + parts.joined(separator: "/")) {
                    parts.removeLast()
                    continue
                }
            }
            parts.append(part)
        }
        return "/" + parts.joined(separator: "/")
    }

    private static func isRealFolder(_ path: String) -> Bool {
        var info = stat()
        return lstat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }
}
