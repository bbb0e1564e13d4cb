import FerryCore
import Glibc

/// A file that `ferry service install` puts in its place, such as a manual page.
struct ServiceFile: Equatable, Sendable {
    /// What it is, as the report calls it.
    var what: String
    /// Its absolute path.
    var path: String
    /// Its content.
    var text: String
}

extension ServiceFile {
    /// Where pages and completions are looked for: on the whole machine, or by one user's programs.
    static func places(isSystem: Bool, environment: [String: String], home: String) -> [String: String] {
        if isSystem {
            return [
                "man": "/usr/local/share/man",
                "bash": "/usr/local/share/bash-completion/completions/ferry",
                "zsh": "/usr/local/share/zsh/site-functions/_ferry",
                // Without XDG_DATA_DIRS fish looks into no folder below /usr/local.
                "fish": "/etc/fish/completions/ferry.fish",
            ]
        }
        func folder(_ variable: String, _ usual: String) -> String {
            environment[variable].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "\(home)/\(usual)"
        }
        let data = folder("XDG_DATA_HOME", ".local/share")
        return [
            "man": "\(data)/man",
            "bash": "\(data)/bash-completion/completions/ferry",
            "zsh": "\(data)/zsh/site-functions/_ferry",
            "fish": folder("XDG_CONFIG_HOME", ".config") + "/fish/completions/ferry.fish",
        ]
    }

    /// All of them; a page without text is left out.
    static func all(places: [String: String], pages: [(name: String, text: String)]) -> [ServiceFile] {
        var files: [ServiceFile] = []
        for page in pages where !page.text.isEmpty {
            guard let man = places["man"], let section = page.name.last else { continue }
            let path = "\(man)/man\(section)/\(page.name)"
            files.append(ServiceFile(what: "manual page", path: path, text: page.text))
        }
        for shell in Shell.allCases {
            guard let path = places[shell.rawValue] else { continue }
            files.append(
                ServiceFile(what: "completion for \(shell.rawValue)", path: path, text: shell.script)
            )
        }
        return files
    }
}

/// Small files, written as a whole or not at all.
enum TextFile {
    /// Reads a file; nil if there is none that can be read.
    static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return String(decoding: content, as: UTF8.self) }
            content += buffer[..<count]
        }
    }

    /// Writes a file of mode 0644 and the folders above it.
    ///
    /// - Returns: The folders that were made, outermost first.
    /// - Throws: ``FerryError`` with exit status 1.
    static func write(_ text: String, to path: String) throws(FerryError) -> [String] {
        let mask = umask(0o022)
        defer { umask(mask) }
        let made = try self.makeFolders(above: path)
        let temporary = path + ".new"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw self.error("write", path) }
        let bytes = Array(text.utf8)
        var isWritten = true
        var start = 0
        while start < bytes.count, isWritten {
            let count = bytes[start...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 { start += count } else if errno != EINTR { isWritten = false }
        }
        isWritten = isWritten && fsync(descriptor) == 0
        guard isWritten, close(descriptor) == 0, rename(temporary, path) == 0 else {
            let error = self.error("write", path)
            unlink(temporary)
            throw error
        }
        return made
    }

    private static func makeFolders(above path: String) throws(FerryError) -> [String] {
        var made: [String] = []
        var current = ""
        for part in path.split(separator: "/").dropLast() {
            current += "/\(part)"
            if mkdir(current, 0o755) == 0 {
                made.append(current)
            } else if errno != EEXIST {
                throw self.error("make the folder", current)
            }
        }
        return made
    }

    private static func error(_ action: String, _ path: String) -> FerryError {
        let problem = String(cString: strerror(errno))
        return FerryError(.localIO, "cannot \(action) \(path.shown): \(problem)", exitStatus: .failed)
    }
}
