import FerryCore
import FerryTestSupport
import Glibc
import Synchronization
import Testing

@testable import FerryCLI

/// Installing a user's unit on a machine whose systemctl is ours.
@Suite struct ServiceInstallerTests {
    /// What programs were asked, and what was said.
    final class Record: Sendable {
        let commands = Mutex<[String]>([])
        let said = Mutex<[String]>([])

        func said(_ part: String) -> Bool { self.said.withLock { $0.contains { $0.contains(part) } } }
    }

    private static func installer(
        _ folder: TemporaryFolder,
        _ record: Record,
        hasSystemd: Bool = true,
        failing: String? = nil
    ) -> ServiceInstaller {
        let host = ServiceHost(
            hasSystemd: hasSystemd,
            userID: 1_000,
            userName: "somebody",
            home: folder.file("home"),
            environment: folder.environment,
            run: { words in
                record.commands.withLock { $0.append(words.joined(separator: " ")) }
                guard let failing, words.contains(failing) else { return ToolAnswer(status: 0, text: "") }
                return ToolAnswer(status: 1, text: "Failed to connect to bus: No medium found\n")
            }
        )
        return ServiceInstaller(host: host, isSystem: false) { text in
            record.said.withLock { $0.append(text) }
        }
    }

    private static func unit(_ folder: TemporaryFolder) -> ServiceUnit {
        let socket = folder.file("run/ferry/control.sock")
        return ServiceUnit(
            program: "/opt/ferryd",
            scope: .user(stateDirectory: folder.file("q"), socketPath: socket, variables: [:])
        )
    }

    private static func files(_ folder: TemporaryFolder, text: String = "page\n") -> [ServiceFile] {
        let places = ServiceFile.places(
            isSystem: false,
            environment: folder.environment,
            home: folder.file("home")
        )
        return ServiceFile.all(places: places, pages: [("ferry.1", text), ("ferryd.8", "")])
    }

    @Test func `install makes files and starts the unit, uninstall removes just that`() throws {
        try withTemporaryFolder { folder in
            let before = try Self.everything(folder)
            let record = Record()
            let installer = Self.installer(folder, record)
            try installer.install(Self.unit(folder), files: Self.files(folder), linger: false)
            #expect(installer.unitPath == folder.file("config/systemd/user/ferryd.service"))
            #expect(try folder.text("data/man/man1/ferry.1") == "page\n")
            #expect(try folder.text("config/fish/completions/ferry.fish") == Shell.fish.script)
            for command in ["daemon-reload", "enable ferryd.service", "restart ferryd.service"] {
                #expect(record.commands.withLock { $0.contains("systemctl --quiet --user \(command)") })
            }
            for part in ["wrote the unit", "manual page", "completion for zsh", "enabled", "started"] {
                #expect(record.said(part), "\(part)")
            }
            try installer.uninstall(queue: "/q")
            #expect(
                record.commands.withLock {
                    $0.contains("systemctl --quiet --user disable --now ferryd.service")
                }
            )
            #expect(record.said("kept the queue in /q"))
            #expect(try Self.everything(folder) == before)
        }
    }

    @Test func `install again says only what it changed`() throws {
        try withTemporaryFolder { folder in
            let first = Record()
            try Self.installer(folder, first).install(
                Self.unit(folder),
                files: Self.files(folder),
                linger: false
            )
            let again = Record()
            try Self.installer(folder, again).install(
                Self.unit(folder),
                files: Self.files(folder),
                linger: false
            )
            #expect(again.said.withLock { $0 } == ["enabled ferryd.service", "started ferryd.service"])
            let newer = Record()
            let files = Self.files(folder, text: "new page\n")
            try Self.installer(folder, newer).install(Self.unit(folder), files: files, linger: false)
            #expect(newer.said.withLock { $0.count } == 3 && newer.said("ferry.1"))
            #expect(try folder.text("data/man/man1/ferry.1") == "new page\n")
        }
    }

    @Test func `what somebody else made is left alone`() throws {
        try withTemporaryFolder { folder in
            for name in [
                "data", "data/man", "data/man/man1", "config", "config/systemd", "config/systemd/user",
            ] {
                try folder.makeFolder(name)
            }
            try folder.write("data/man/man1/ferry.1", "another page\n")
            let record = Record()
            let installer = Self.installer(folder, record)
            try installer.install(Self.unit(folder), files: Self.files(folder), linger: false)
            #expect(record.said("left \(folder.file("data/man/man1/ferry.1")) alone"))
            try installer.uninstall(queue: "/q")
            #expect(try folder.text("data/man/man1/ferry.1") == "another page\n")

            try folder.write("config/systemd/user/ferryd.service", "[Unit]\n")
            let removed = #expect(throws: FerryError.self) { try installer.uninstall(queue: "/q") }
            let made = #expect(throws: FerryError.self) {
                try installer.install(Self.unit(folder), files: [], linger: false)
            }
            #expect(removed?.exitStatus == .failed && made?.exitStatus == .failed)
            #expect(try folder.text("config/systemd/user/ferryd.service") == "[Unit]\n")
        }
    }

    @Test func `lingering is turned off again if install turned it on`() throws {
        try withTemporaryFolder { folder in
            let record = Record()
            let installer = Self.installer(folder, record)
            try installer.install(Self.unit(folder), files: [], linger: true)
            try installer.uninstall(queue: "/q")
            let commands = record.commands.withLock { $0.filter { $0.hasPrefix("loginctl") } }
            #expect(commands == ["loginctl enable-linger somebody", "loginctl disable-linger somebody"])
        }
    }

    @Test func `nothing to uninstall is fine`() throws {
        try withTemporaryFolder { folder in
            let record = Record()
            try Self.installer(folder, record).uninstall(queue: "/q")
            #expect(record.said("nothing is installed") && record.commands.withLock { $0.isEmpty })
        }
    }

    @Test(arguments: [
        (false, nil, "not run by systemd"), (true, "daemon-reload", "log in as that user"),
        (true, "restart", "does not start: Failed to connect to bus"),
    ])
    func `what does not work is told with what helps`(systemd: Bool, failing: String?, words: String) throws {
        try withTemporaryFolder { folder in
            let installer = Self.installer(folder, Record(), hasSystemd: systemd, failing: failing)
            let error = #expect(throws: FerryError.self) {
                try installer.install(Self.unit(folder), files: [], linger: false)
            }
            #expect(error?.exitStatus == .failed && error?.message.contains(words) == true)
        }
    }

    @Test func `the machine's service is for root to install`() {
        let host = ServiceHost(
            hasSystemd: true,
            userID: 1_000,
            userName: "somebody",
            home: "/h",
            environment: [:],
            run: { _ in ToolAnswer(status: 127, text: "") }
        )
        let installer = ServiceInstaller(host: host, isSystem: true) { _ in }
        let error = #expect(throws: FerryError.self) { try installer.check() }
        #expect(error?.exitStatus == .failed && error?.message.contains("root") == true)
    }

    @Test func `a program's status and its last line are told`() {
        let environment = ["PATH": "/usr/bin:/bin"]
        let answer = SystemTool.run(["sh", "-c", "echo one; echo two >&2; exit 3"], environment: environment)
        #expect(answer == ToolAnswer(status: 3, text: "one\ntwo\n") && answer.reason == "two")
        #expect(SystemTool.run(["sh", "-c", "kill -9 $$"], environment: environment).status == 137)
        #expect(SystemTool.run(["no-such-program"], environment: environment).status == 127)
    }

    /// Every path below a folder.
    private static func everything(_ folder: TemporaryFolder, _ name: String = "") throws -> [String] {
        var paths: [String] = []
        for entry in try folder.names(in: name) {
            let path = name.isEmpty ? entry : "\(name)/\(entry)"
            paths.append(path)
            var info = stat()
            if lstat(folder.file(path), &info) == 0, info.st_mode & S_IFMT == S_IFDIR {
                paths += try self.everything(folder, path)
            }
        }
        return paths
    }
}
