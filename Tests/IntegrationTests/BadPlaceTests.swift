import FerryTestSupport
import Glibc
import Testing

/// Folders, disks, state folders and installations that are not as they should be.
@Suite(.serialized, .timeLimit(.minutes(5))) struct BadPlaceTests {
    private static let object = TestObject(size: 8 << 20, seed: 51)
    private static let nobody: uid_t = 65_534

    private static func server() throws -> ScriptedServer {
        try ScriptedServer { request, _ in .object(object, for: request) }
    }

    /// A desk whose commands run without root's rights, to which no folder is closed.
    ///
    /// The tools are copied, since the build folder may be closed to others.
    private static func withUserDesk(_ body: (Desk) async throws -> Void) async throws {
        try await withDesk { desk in
            guard getuid() == 0 else { return try await body(desk) }
            let setpriv = try ToolRunner.program("setpriv", package: "util-linux")
            var user = desk
            let script = """
                set -e; mkdir bin; cp "$1/ferry" "$1/ferryd" bin/; chmod 755 .
                printf '#!/bin/sh\\nexec "\(setpriv.path)" --reuid=\(self.nobody) --regid=\(self.nobody) \\
                --clear-groups "\(desk.folder.path)/bin/ferry" "$@"\\n' > bin/user-ferry
                chmod 755 bin/user-ferry; chown -R \(self.nobody) .
                """
            let prepared = try await desk.shell(script, try Fixtures.productFolder())
            #expect(prepared.status == 0, "\(prepared.stderr)")
            user.tool = ToolRunner(
                path: desk.folder.file("bin/user-ferry"),
                environment: desk.tool.environment,
                workingFolder: desk.folder.path
            )
            try await body(user)
        }
    }

    @Test func `a folder without leave to write is told at once, and nothing is queued`() async throws {
        try await Self.withUserDesk { desk in
            let server = try Self.server()
            try desk.folder.makeFolder("closed", mode: 0o555)
            let closed = desk.folder.file("closed")
            for arguments in [
                ["get", "-d", "closed", server.url("file")], ["get", "-o", "closed/x", server.url("file")],
                ["add", "-d", "closed/below", server.url("file")],
            ] {
                let result = try await desk.ferry(arguments)
                expectRefusal(result, status: 1, says: [closed, "cannot be used"], "\(arguments)")
            }
            #expect(server.requests.isEmpty)
            #expect(try desk.folder.names(in: "closed").isEmpty)
            #expect(try await desk.json("list", "--all")["jobs"].elements.isEmpty)
        }
    }

    @Test func `files do not go into the state folder`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            try await desk.success("add", server.url("other"), "-d", desk.target())
            #expect(symlink(desk.stateFolder, desk.folder.file("alias")) == 0)
            for arguments in [
                ["get", "-d", desk.stateFolder, server.url("jobs.db-journal")],
                ["add", "-o", "alias/jobs.db", "--if-exists", "overwrite", server.url("file")],
                ["set", "1", "-o", "\(desk.stateFolder)/board"],
            ] {
                let result = try await desk.ferry(arguments)
                expectRefusal(result, status: 1, says: ["cannot be used", "state"], "\(arguments)")
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a command without standard output or standard error does its work`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let script = """
                cd "$(mktemp -d -p .)"
                "$ferry" get --state-dir "$queue" "$1/a" 2>&- || exit 11
                "$ferry" get --state-dir "$queue" "$1/b" <&- 2>&- || exit 12
                "$ferry" list --state-dir "$queue" >&- && exit 13
                "$ferry" config --state-dir "$queue" >/dev/full && exit 14
                cmp a b
                """
            let result = try await desk.shell(script, server.url(""))
            #expect(result.status == 0, "\(result.stderr)")
        }
    }

    @Test func `a folder that closes later fails the job, and a retry goes on`() async throws {
        try await Self.withUserDesk { desk in
            let server = try Self.server()
            #expect(chmod(try desk.target(), 0o777) == 0)
            try await desk.success("add", "-d", desk.target(), server.url("file"))
            #expect(chmod(try desk.target(), 0o555) == 0)
            let run = try await desk.ferry("run", "--until-empty")
            #expect(run.status == 1)
            let target = try desk.target()
            #expect(run.stderr.contains("failed: local-io: ") && run.stderr.contains(target), "\(run.stderr)")
            #expect(run.stderr.contains("ferry retry"))
            #expect(chmod(try desk.target(), 0o777) == 0)
            try await desk.success("retry", "1")
            try await desk.success("wait", "1")
            #expect(try Self.object.matches("\(desk.target())/file") == nil)
        }
    }

    @Test(.enabled(if: getuid() == 0, "mounting a small file system takes root"))
    func `a full disk is waited for, and the job goes on when there is room`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            let target = try desk.target()
            let options = ["-t", "tmpfs", "-o", "size=12m", "ferry-test", target]
            let mounted = try await ToolRunner.program("mount").run(options)
            try #require(mounted.status == 0, "\(mounted.stderr)")
            do {
                try TestObject(size: 6 << 20).write(to: "\(target)/filler")
                let get = try desk.start("get", "-d", target, server.url("file"))
                let line = try await get.waitForLine(in: .stderr) { $0.contains("waiting (disk)") }
                #expect(line.contains("no space left on \(target): 8.0 MiB needed, "))
                #expect(try await desk.job()["reason"] == .string("disk"))
                #expect(try !desk.files().contains("file"))
                #expect(unlink("\(target)/filler") == 0)
                let result = try await get.waitForExit()
                #expect(result.status == 0 && result.stdout == "\(target)/file\n", "\(result.stderr)")
                #expect(try Self.object.matches("\(target)/file") == nil)
                #expect(try desk.files() == ["file"])
            } catch {
                _ = try? desk.service.kill()
                umount2(target, Int32(MNT_DETACH))
                throw error
            }
            try desk.stopService()
            #expect(umount2(target, 0) == 0)
        }
    }

    @Test func `a state folder that cannot be written is refused`() async throws {
        try await Self.withUserDesk { desk in
            try desk.folder.makeFolder("queue", mode: 0o500)
            if getuid() == 0 { #expect(chown(desk.stateFolder, Self.nobody, Self.nobody) == 0) }
            let result = try await desk.ferry("list")
            expectRefusal(result, status: 12, says: ["cannot write in the state folder", desk.stateFolder])
            #expect(try desk.folder.names(in: "queue").isEmpty)
        }
    }

    @Test(.enabled(if: getuid() == 0, "giving a folder away takes root"))
    func `a state folder of another user is refused`() async throws {
        try await withDesk { desk in
            try desk.folder.makeFolder("queue", mode: 0o700)
            #expect(chown(desk.stateFolder, Self.nobody, Self.nobody) == 0)
            let result = try await desk.ferry("list")
            expectRefusal(result, status: 12, says: ["belongs to another user (uid 65534)", "--state-dir"])
            #expect(try desk.folder.names(in: "queue").isEmpty)
        }
    }

    @Test func `a state folder whose socket would have too long a path is refused`() async throws {
        try await withDesk { desk in
            let long = desk.folder.file(String(repeating: "x", count: 120))
            let result = try await desk.tool.run(["list", "--state-dir", long])
            expectRefusal(result, status: 2, says: ["the path of the control socket", "--state-dir"])
            #expect(access(long, F_OK) != 0)
        }
    }

    @Test(arguments: ["damaged", "newer", "foreign"])
    func `a database that cannot be used is refused and left alone`(how: String) async throws {
        try await withDesk { desk in
            let server = try Self.server()
            try await desk.success("add", "-d", desk.target(), server.url("file"))
            try desk.stopService()
            let path = "\(desk.stateFolder)/jobs.db"
            let script = """
                import os, sqlite3, sys
                how, path = sys.argv[1:]
                if how == "newer":
                    sqlite3.connect(path).execute("PRAGMA user_version = 9999")
                elif how == "foreign":
                    os.unlink(path)
                    database = sqlite3.connect(path)
                    database.execute("CREATE TABLE recipe (name TEXT)")
                    database.commit()
                else:
                    with open(path, "r+b") as file:
                        file.write(os.urandom(4096))
                """
            let changed = try await ToolRunner.program("python3").run(["-c", script, how, path])
            try #require(changed.status == 0, "\(changed.stderr)")
            let before = try desk.folder.read("queue/jobs.db")
            for arguments in [["list"], ["get", "-d", try desk.target(), server.url("other")]] {
                let result = try await desk.ferry(arguments)
                expectRefusal(result, status: 12, says: [path], "\(how) \(arguments)")
            }
            #expect(try desk.folder.read("queue/jobs.db") == before)
            #expect(try desk.files().isEmpty)
            #expect(server.requests.isEmpty)
        }
    }

    @Test(arguments: [
        ("{ limits: { runing: 4 } }", ["limits.runing", "4"]),
        ("{ limits: { running: 'many' } }", ["limits.running", "many", "a whole number"]),
        ("{ retry: { base: 5 } }", ["retry.base", "5", "a duration"]),
        ("{ speed: 'high' }", ["speed", "high"]),
        ("{ limits: { running: 4 ", ["not valid JSON5", "look for a bracket"]),
        ("{ limits: { running: '4\n' } }", ["not valid JSON5", "limits.running"]),
    ])
    func `a broken configuration names file, key and value`(text: String, parts: [String]) async throws {
        try await withDesk { desk in
            let server = try Self.server()
            try await desk.success("add", "-d", desk.target(), server.url("file"))
            try desk.stopService()
            try desk.folder.makeFolder("config/ferry")
            let path = try desk.folder.write("config/ferry/config.json5", text)
            expectRefusal(try await desk.ferry("list"), status: 2, says: [path] + parts, text)
            try desk.folder.write("config/ferry/config.json5", "{ limits: { running: 4, }, } // fine")
            #expect(try await desk.job()["state"] == .string("queued"))
        }
    }

    @Test func `a command without its service says where it looked`() async throws {
        try await withDesk { desk in
            let copied = try await desk.shell("mkdir bin && cp \"$ferry\" bin/")
            #expect(copied.status == 0, "\(copied.stderr)")
            var lonely = desk
            lonely.tool = ToolRunner(
                path: desk.folder.file("bin/ferry"),
                environment: desk.tool.environment,
                workingFolder: desk.folder.path
            )
            let looked = [desk.folder.file("bin/ferryd"), desk.folder.file("libexec/ferry/ferryd")]
            for command in [["list"], ["get", "http://localhost:1/x"], ["daemon"]] {
                let result = try await lonely.ferry(command)
                expectRefusal(result, status: 10, says: ["program is missing"] + looked, "\(command)")
            }
            #expect(try await lonely.tool.run(["version"]).status == 0)
            #expect(try await lonely.tool.run(["help"]).status == 0)
        }
    }

    @Test func `two queues on one machine know nothing of each other`() async throws {
        try await withDesk { desk in
            let server = try Self.server()
            try await desk.success("add", "-d", desk.target(), server.url("file"))
            let other = desk.folder.file("other")
            let added = try await desk.tool.run(["add", "--state-dir", other, server.url("file")])
            #expect(added.stdout == "1\n")
            #expect(try await desk.json("list", "--all")["jobs"].elements.count == 1)
            try ServiceProbe(stateFolder: other).kill(SIGTERM)
        }
    }
}
