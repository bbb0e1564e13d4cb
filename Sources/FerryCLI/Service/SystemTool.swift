import FerryControl
import FerryCore
import Glibc

/// A program of the machine that has ended.
struct ToolAnswer: Equatable, Sendable {
    /// Its exit status; 127 if it could not be started, 128 and the signal's number after a signal.
    var status: Int32
    /// What it printed, on either output.
    var text: String

    /// Whether it succeeded.
    var isSuccess: Bool { self.status == 0 }

    /// The last line, to end a sentence with.
    var reason: String {
        let last = self.text.split(separator: "\n").last.map { String($0).shown }
        return last ?? "it ended with status \(self.status)"
    }
}

/// Runs programs of the machine such as systemctl(1).
enum SystemTool {
    /// Runs a program found by PATH to its end, without input.
    static func run(_ words: [String], environment: [String: String]) -> ToolAnswer {
        var ends: [Int32] = [-1, -1]
        guard let program = words.first, pipe(&ends) == 0 else { return ToolAnswer(status: 127, text: "") }
        defer { close(ends[0]) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }  // cannot fail on a descriptor just made
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        var variables: [UnsafeMutablePointer<CChar>?] =
            environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for pointer in arguments + variables { free(pointer) } }
        var process: pid_t = 0
        let failure = posix_spawnp(&process, program, &actions, nil, &arguments, &variables)
        close(ends[1])
        guard failure == 0 else {
            return ToolAnswer(status: 127, text: "\(program): \(String(cString: strerror(failure)))")
        }
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = read(ends[0], &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            output += buffer[..<count]
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        return ToolAnswer(
            status: signal == 0 ? status >> 8 & 0xFF : 128 + signal,
            text: String(decoding: output, as: UTF8.self)
        )
    }
}
