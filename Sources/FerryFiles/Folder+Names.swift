import Glibc

extension Folder {
    /// The names in a folder that fulfil a condition, sorted, without `.` and `..`.
    ///
    /// - Throws: ``SystemError`` if the folder cannot be read.
    public static func names(
        in path: String,
        where isWanted: (String) -> Bool = { _ in true }
    ) throws(SystemError) -> [String] {
        guard let stream = opendir(path) else {
            throw SystemError(errno: errno, action: "list the folder", path: path)
        }
        defer { closedir(stream) }
        var names: [String] = []
        errno = 0
        while let entry = readdir(stream) {
            let capacity = MemoryLayout.size(ofValue: entry.pointee.d_name)
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: capacity) { String(cString: $0) }
            }
            if name != ".", name != "..", isWanted(name) { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw SystemError(errno: errno, action: "list the folder", path: path) }
        return names.sorted()
    }
}
