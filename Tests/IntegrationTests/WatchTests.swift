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
        def service():
            import socket
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(command[command.index('--state-dir') + 1] + '/control.sock')
                return json.loads(connection.makefile().readline())['hello']['pid']
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
            if kind == 'service': os.kill(service(), value)
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

    @Test func `keys steer the jobs of the queue, and looking runs none`() async throws {
        try await withDesk { desk in
            try await desk.success("add", "http://127.0.0.1:9/one.bin", "http://127.0.0.1:9/two.bin")
            let steps = #"""
                [["see", "two.bin"], ["keys", "\u001b[B "], ["see", "job 1 paused"],
                 ["keys", "Gc"], ["see", "y/n"], ["keys", "y"], ["see", "cancelled"], ["keys", "q"]]
                """#
            let seen = try await self.watch(desk, mark: "one.bin", steps: steps)
            #expect(seen["ending"].text == "exited", "\(seen)")
            #expect(try await desk.job(1)["state"] == .string("paused"))
            #expect(try await desk.job(1)["attempt"].int == 0)
            #expect(try await desk.job(2)["state"] == .string("cancelled"))
        }
    }

    @Test func `the window's size is followed`() async throws {
        try await withDesk { desk in
            let steps = #"""
                [["see", "nothing is queued"], ["forget", 0], ["size", [30, 4]], ["see", "too small"], ["forget", 0],
                 ["size", [100, 30]], ["see", "nothing is queued"], ["keys", "q"]]
                """#
            let seen = try await self.watch(desk, mark: "q quit", steps: steps)
            #expect(seen["ending"].text == "exited")
        }
    }

    @Test func `when the service has gone the next one is looked at`() async throws {
        try await withDesk { desk in
            try await desk.success("add", "http://127.0.0.1:9/one.bin")
            let steps = #"""
                [["see", "one.bin"], ["forget", 0], ["service", 9], ["see", "this is the next one"], ["keys", "q"]]
                """#
            let seen = try await self.watch(desk, mark: "one.bin", steps: steps)
            #expect(seen["ending"].text == "exited")
            #expect(try await desk.job(1)["attempt"].int == 0)
        }
    }

    /// Terminals that no screen fits on, and variables that ask for none.
    @Test(
        arguments: [
            ((0, 0), [:]), ((39, 24), [:]), ((80, 5), [:]), ((80, 24), ["TERM": "dumb"]),
            ((80, 24), ["TERM": ""]),
        ] as [((Int, Int), [String: String])]
    )
    func `a terminal that cannot show a screen gets lines`(size: (Int, Int), environment: [String: String])
        async throws
    {
        try await withDesk { desk in
            try await desk.success("add", "http://127.0.0.1:9/one.bin")
            try await desk.success("pause", "1")
            let seen = try await self.watch(
                desk,
                size: size,
                mark: "one.bin: paused",
                steps: #"[["keys", "\u0003"]]"#,
                environment: environment
            )
            #expect(seen["code"].int == Int64(SIGINT))
            #expect(seen["text"].text?.contains("\u{1B}") == false)
        }
    }

    @Test func `piped, and as JSON, it tells what happens until it is stopped`() async throws {
        try await withDesk { desk in
            try await desk.success("add", "http://127.0.0.1:9/one.bin")
            let lines = try desk.start("watch")
            let json = try desk.start("watch", "1", "--json")
            try await desk.success("pause", "1")
            // Asked until both have been told, for they may begin to look after the job was paused.
            _ = try await lines.waitForLine { $0 == "job 1: http://127.0.0.1:9/one.bin: paused" }
            try await desk.success("cancel", "1")
            _ = try await lines.waitForLine { $0.contains("cancelled") }
            let last = try await json.waitForLine { $0.contains(#""type":"job""#) }
            #expect(try JSON(line: last + "\n")["state"] == .string("cancelled"))
            for tool in [lines, json] {
                tool.kill(SIGTERM)
                #expect(try await tool.waitForExit().ending == .signalled(SIGTERM))
            }
        }
    }

    @Test func `a job that is not there is no screen`() async throws {
        try await withDesk { desk in
            for arguments in [["watch", "99"], ["watch", "99", "--json"]] {
                expectRefusal(try await desk.ferry(arguments), status: 1, says: ["there is no job 99"])
            }
            expectRefusal(try await desk.ferry("watch", "1", "--group", "g"), status: 2, says: ["--group"])
            expectRefusal(try await desk.ferry("watch", "x"), status: 2, says: ["'x'"])
        }
    }
}
