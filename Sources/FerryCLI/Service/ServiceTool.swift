import FerryControl
import FerryCore
import Glibc

/// Runs `ferryd` for work that a client links no library for, and takes what it prints.
enum ServiceTool {
    /// What the program has left.
    struct Result: Sendable {
        /// Its exit status; nil if a signal ended it.
        var status: Int32?
        /// Standard output and standard error together.
        var output: [UInt8]

        /// What it said in words, without its name.
        var message: String {
            let text = String(decoding: self.output, as: UTF8.self)
            let words = text.hasPrefix("ferryd: ") ? text.dropFirst(8) : text[...]
            return words.last == "\n" ? String(words.dropLast()) : String(words)
        }
    }

    /// The program, which belongs to this one; nil if it is missing.
    static var program: String? {
        ServiceLauncher.standard.candidates.first { access($0, X_OK) == 0 }
    }

    /// Runs it to its end.
    ///
    /// - Throws: `no-service` if it is missing or cannot be run.
    static func run(_ arguments: [String]) throws(FerryError) -> Result {
        guard let program = self.program else {
            let places = ServiceLauncher.standard.candidates.joined(separator: " and ")
            throw Self.error("the service's program is missing; looked for \(places)")
        }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw Self.error("cannot make a pipe: \(String(cString: strerror(errno)))")
        }
        defer { close(ends[0]) }
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)  // cannot fail on a descriptor just made
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
        posix_spawn_file_actions_addclose(&actions, ends[1])
        var words: [UnsafeMutablePointer<CChar>?] = (["ferryd"] + arguments).map { strdup($0) }
        defer { for word in words { free(word) } }
        words.append(nil)
        var process: pid_t = 0
        let failure = posix_spawn(&process, program, &actions, nil, words, environ)
        close(ends[1])
        guard failure == 0 else {
            throw Self.error("cannot run \(program): \(String(cString: strerror(failure)))")
        }
        let output = Self.readAll(ends[0])
        var state: Int32 = 0
        while waitpid(process, &state, 0) < 0, errno == EINTR {}
        // WIFEXITED and WEXITSTATUS of wait(2), which Swift does not show.
        return Result(status: state & 0x7F == 0 ? (state >> 8) & 0xFF : nil, output: output)
    }

    private static func readAll(_ descriptor: Int32) -> [UInt8] {
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return output }
            output += buffer[..<count]
        }
    }

    private static func error(_ message: String) -> FerryError {
        FerryError(.noService, message, exitStatus: .noService)
    }
}
