import FerryCore
import Glibc

/// A file that is to be sent, found to be one that can be: regular and readable.
struct UploadFile: Equatable, Sendable {
    /// The absolute path.
    var path: String
    /// The last component of the path as it was given; what a URL ending in `/` gets.
    var name: String

    /// Looks at a file.
    ///
    /// - Throws: A usage error that names the file as it was given, after `option` if it came with one.
    init(_ given: String, option: String? = nil, in surroundings: Surroundings) throws(FerryError) {
        let subject = (option.map { "\($0): " } ?? "") + "'\(given.shown)'"
        guard !given.isEmpty else { throw .usage("\(option ?? "ferry put"): the name of a file is empty") }
        let path = surroundings.absolute(given)
        var info = stat()
        // The path as given is asked: a slash at its end wants a folder, and that is gone from the absolute one.
        let asked = given.hasPrefix("/") ? given : "\(surroundings.currentDirectory)/\(given)"
        guard stat(asked, &info) == 0 else {
            let problem = errno
            if given.contains("://") {
                throw .usage("\(subject) is a URL, where the file to send is expected; the URL comes last")
            }
            throw .usage("\(subject) \(Self.reason(problem))")
        }
        if let kind = Self.kind(info.st_mode) { throw .usage("\(subject) \(kind)") }
        guard faccessat(AT_FDCWD, asked, R_OK, AT_EACCESS) == 0 else {
            throw .usage("\(subject) cannot be read: \(String(cString: strerror(errno)))")
        }
        self.path = path
        self.name = path.split(separator: "/").last.map(String.init) ?? ""
    }

    private static func reason(_ problem: Int32) -> String {
        problem == ENOENT ? "does not exist" : "cannot be used: \(String(cString: strerror(problem)))"
    }

    /// What stands there in place of a regular file.
    private static func kind(_ mode: mode_t) -> String? {
        switch mode & S_IFMT {
        case S_IFREG: nil
        case S_IFDIR: "is a folder, and ferry sends files"
        case S_IFIFO: "is a pipe, and only 'ferry put -' reads one: standard input"
        case S_IFSOCK: "is a socket, and ferry sends files"
        default: "is a device, and ferry sends files"
        }
    }
}
