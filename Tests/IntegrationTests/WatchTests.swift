import FerryTestSupport
import Glibc
import Testing

@Suite struct WatchTests {
    /// Runs a command as the foreground job of a shell would be run, on a terminal of a size, waits until it shows
    /// `mark`, does what is asked, and prints as JSON what happened to terminal and command.
    private static let shell = #"""
        import fcntl, json, os, pty, select, signal, struct, sys, termios, time
        columns, rows, mark, steps, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]), sys.argv[5:]
        reports, reporter = os.pipe()
        leader, terminal = pty.fork()
        if leader == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            job = os.fork()
            if job == 0:
                os.setpgid(0, 0)
                os.tcsetpgrp(0, os.getpid())
                signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                os.execvp(command[0], command)
            while True:
                _, status = os.waitpid(job, os.WUNTRACED)
                stopped = os.WIFSTOPPED(status)
                code = os.WSTOPSIG(status) if stopped else os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                kind = 'stopped' if stopped else 'signalled' if os.WIFSIGNALED(status) else 'exited'
                os.write(reporter, f'{kind} {code} {job}\n'.encode())
                if not stopped: os._exit(0)
        os.close(reporter)
        seen, told, result = b'', b'', {}
        def more(what):
            global seen, told
            end = time.time() + 120
            while not what():
                ready, _, _ = select.select([terminal, reports], [], [], max(0, end - time.time()))
                if not ready: raise SystemExit(f'not in time: {seen!r} {told!r}')
                if reports in ready:
                    data = os.read(reports, 1024)
                    if not data: return
                    told += data
                if terminal in ready:
                    try: seen += os.read(terminal, 65536)
                    except OSError: pass
        def drain():
            global seen
            while select.select([terminal], [], [], 0)[0]:
                try: data = os.read(terminal, 65536)
                except OSError: return
                if not data: return
                seen += data
        more(lambda: mark.encode() in seen or told)
        pid = int(open(f'/proc/{leader}/task/{leader}/children').read() or 0)
        result['raw'] = not termios.tcgetattr(terminal)[3] & termios.ECHO
        for step in steps:
            kind, value = step
            if kind == 'keys': os.write(terminal, value.encode())
            if kind == 'signal': os.kill(pid, value)
            if kind == 'size':
                fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', value[1], value[0], 0, 0))
            if kind == 'see': more(lambda: value.encode() in seen or b'exited' in told or b'signalled' in told)
            if kind == 'forget': seen = b''
            if kind == 'stopped':
                more(lambda: told.count(b'stopped') >= value)
                drain()
                result['stopped_echo'] = bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
                result['stopped_tail'] = seen.decode('utf-8', 'replace')[-60:]
        more(lambda: b'exited' in told or b'signalled' in told)
        drain()
        last = told.decode().split('\n')[-2].split()
        flags = termios.tcgetattr(terminal)[3]
        result.update(ending=last[0], code=int(last[1]), echo=bool(flags & termios.ECHO), lines=bool(flags & termios.ICANON), text=seen.decode('utf-8', 'replace'))
        print(json.dumps(result))
        """#

    /// What gives the terminal back.
    private static let leave = "\u{1B}[?25h\u{1B}[?1049l"

    private func watch(
        _ desk: Desk,
        _ arguments: [String] = [],
        size: (Int, Int) = (80, 24),
        mark: String = "q quit",
        steps: String,
        environment: [String: String] = [:]
    ) async throws -> JSON {
        var python = try ToolRunner.program("python3")
        python.environment = desk.tool.environment
        let variables = ["TERM": "xterm-256color", "LANG": "C.UTF-8"].merging(environment) { $1 }
        let command = [desk.tool.path] + desk.arguments(["watch"] + arguments)
        let result = try await python.with(variables).run(
            ["-c", Self.shell, "\(size.0)", "\(size.1)", mark, steps] + command
        )
        try #require(result.status == 0, "\(result.stderr)")
        return try JSON(line: result.stdout)
    }

    /// Each way out, and how the command ends by it.
    @Test(arguments: [
        (#"[["keys", "q"]]"#, "exited", 0),
        (#"[["keys", "\u0003"]]"#, "signalled", SIGINT),
        (#"[["keys", "\u001c"]]"#, "signalled", SIGQUIT),
        (#"[["signal", 15]]"#, "signalled", SIGTERM),
        (#"[["signal", 1]]"#, "signalled", SIGHUP),
        (#"[["signal", 11]]"#, "signalled", SIGSEGV),
        (#"[["signal", 6]]"#, "signalled", SIGABRT),
        (#"[["signal", 4]]"#, "signalled", SIGILL),
        (#"[["signal", 5]]"#, "signalled", SIGTRAP),
        (#"[["signal", 7]]"#, "signalled", SIGBUS),
    ])
    func `the terminal is given back on every way out`(steps: String, ending: String, code: Int32)
        async throws
    {
        try await withDesk { desk in
            let seen = try await self.watch(desk, steps: steps)
            #expect(seen["raw"] == .bool(true))
            #expect(seen["ending"].text == ending)
            #expect(seen["code"].int == Int64(code))
            #expect(seen["echo"] == .bool(true))
            #expect(seen["lines"] == .bool(true))
            #expect(seen["text"].text?.hasSuffix(Self.leave) == true)
        }
    }

    @Test func `suspended it gives the terminal back, and takes it again when it goes on`() async throws {
        try await withDesk { desk in
            let steps = #"""
                [["keys", "\u001a"], ["stopped", 1], ["forget", 0], ["signal", 18], ["see", "q quit"], ["keys", "q"]]
                """#
            let seen = try await self.watch(desk, steps: steps)
            #expect(seen["stopped_echo"] == .bool(true))
            #expect(seen["stopped_tail"].text?.hasSuffix(Self.leave) == true)
            #expect(seen["text"].text?.contains("\u{1B}[?1049h") == true)
            #expect(seen["ending"].text == "exited")
            #expect(seen["echo"] == .bool(true))
        }
    }
}
