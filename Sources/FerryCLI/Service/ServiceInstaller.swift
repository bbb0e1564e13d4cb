import FerryControl
import FerryCore
import Glibc

/// The machine as `ferry service` sees it; tests put another one in its place.
struct ServiceHost: Sendable {
    /// Whether systemd runs it (sd_booted(3)).
    var hasSystemd: Bool
    /// The user who asks.
    var userID: uid_t
    /// The user's name.
    var userName: String
    /// The user's home folder.
    var home: String
    /// The user's variables.
    var environment: [String: String]
    /// Runs a program to its end.
    var run: @Sendable (_ words: [String]) -> ToolAnswer

    /// The real one.
    static func real(_ environment: [String: String]) -> ServiceHost {
        var info = stat()
        let hasSystemd = lstat("/run/systemd/system", &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
        let entry = getpwuid(getuid())
        let home = entry.flatMap { $0.pointee.pw_dir }.map { String(cString: $0) }
        let name = entry.flatMap { $0.pointee.pw_name }.map { String(cString: $0) }
        var variables = environment
        // Where it is missing, as after su(1), the user's manager is still to be found there (pam_systemd(8)).
        if variables["XDG_RUNTIME_DIR"]?.hasPrefix("/") != true {
            variables["XDG_RUNTIME_DIR"] = "/run/user/\(getuid())"
        }
        let passed = variables
        return ServiceHost(
            hasSystemd: hasSystemd,
            userID: getuid(),
            userName: name ?? "\(getuid())",
            home: environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? home ?? "/",
            environment: variables,
            run: { SystemTool.run($0, environment: passed) }
        )
    }
}

/// Makes and removes the service's unit and what belongs to it, and says each thing it did.
struct ServiceInstaller {
    let host: ServiceHost
    let isSystem: Bool
    /// Where the unit file goes.
    let unitPath: String
    /// Told what was done, one sentence each.
    let say: (String) -> Void

    /// Chooses the place of the unit file.
    init(host: ServiceHost, isSystem: Bool, say: @escaping (String) -> Void) {
        self.host = host
        self.isSystem = isSystem
        self.say = say
        let config = host.environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        let folder = isSystem ? "/etc/systemd/system" : "\(config ?? host.home + "/.config")/systemd/user"
        self.unitPath = "\(folder)/\(ServiceUnit.name)"
    }

    /// What the unit file that is there tells; nil if there is none.
    ///
    /// - Throws: ``FerryError`` with exit status 1 if somebody else made it.
    func record() throws(FerryError) -> ServiceUnit.Record? {
        guard let text = TextFile.read(self.unitPath) else { return nil }
        guard let record = ServiceUnit.Record(unit: text) else {
            throw Self.failed(
                "\(self.unitPath) is there and is not of 'ferry service install'; it was left alone"
            )
        }
        return record
    }

    /// Checks that there is a systemd to speak to, and the right to do so.
    func check() throws(FerryError) {
        guard !self.isSystem || self.host.userID == 0 else {
            throw Self.failed(
                "the machine's service is root's to install and remove; try 'sudo ferry service …'"
            )
        }
        guard self.host.hasSystemd else {
            throw Self.failed(
                "this machine is not run by systemd, for which the unit would be\n"
                    + "'ferry daemon', kept running by what starts services here, does the same"
            )
        }
    }

    // MARK: Install

    /// Installs, or brings up to date.
    func install(_ wanted: ServiceUnit, files: [ServiceFile], linger: Bool) throws(FerryError) {
        try self.check()
        let record = try self.record()
        var unit = wanted
        unit.turnedLingerOn = record?.turnedLingerOn ?? false
        if self.isSystem {
            try self.makeUser()
            for folder in unit.folders { try self.prepare(folder) }
        }
        if linger, try self.turnLingerOn() { unit.turnedLingerOn = true }
        unit.made = try self.place(files, known: record?.made ?? [])
        if TextFile.read(self.unitPath) != unit.text {
            unit.made = try self.makeFolder(of: self.unitPath) + unit.made
            _ = try TextFile.write(unit.text, to: self.unitPath)
            self.say("wrote the unit \(self.unitPath)")
        }
        try self.systemctl("daemon-reload")
        try self.systemctl("enable", ServiceUnit.name)
        self.say("enabled \(ServiceUnit.name)")
        let answer = self.ask(["restart", ServiceUnit.name])
        guard answer.isSuccess else {
            let journal = self.isSystem ? "journalctl -u ferryd" : "journalctl --user -u ferryd"
            throw Self.failed("\(ServiceUnit.name) does not start: \(answer.reason)\n'\(journal)' tells why")
        }
        self.say("started \(ServiceUnit.name)")
    }

    /// Folders for the unit file, remembered before it is written.
    private func makeFolder(of path: String) throws(FerryError) -> [String] {
        let folders = try TextFile.write("", to: path + ".folder")
        unlink(path + ".folder")
        return folders
    }

    /// Puts files in their places; those that somebody else put there are left alone.
    private func place(_ files: [ServiceFile], known: [String]) throws(FerryError) -> [String] {
        var made = known
        for file in files {
            let old = TextFile.read(file.path)
            if old == file.text, known.contains(file.path) { continue }
            guard old == nil || old == file.text || known.contains(file.path) else {
                self.say("left \(file.path) alone, which is not of 'ferry service install'")
                continue
            }
            for path in try TextFile.write(file.text, to: file.path) + [file.path] where !made.contains(path)
            {
                made.append(path)
            }
            self.say("wrote the \(file.what) \(file.path)")
        }
        // What an older version made and this one does not.
        let current = Set(files.map(\.path))
        return made.filter { path in
            guard path.isFile, !current.contains(path) else { return true }
            return unlink(path) != 0 && errno != ENOENT
        }
    }

    private func makeUser() throws(FerryError) {
        guard getpwnam("ferry") == nil || getgrnam("ferry") == nil else { return }
        let line = "u ferry - \"Ferry transfer service\" /var/lib/ferry"
        let answer = self.host.run(["systemd-sysusers", "--inline", line])
        guard answer.isSuccess, getpwnam("ferry") != nil else {
            throw Self.failed("user ferry cannot be made by systemd-sysusers: \(answer.reason)")
        }
        self.say("made user and group ferry; 'usermod -aG ferry USER' lets a user in")
    }

    /// Makes an allowed folder that is missing, and tells if user ferry cannot write there.
    private func prepare(_ folder: String) throws(FerryError) {
        var info = stat()
        if stat(folder, &info) != 0 {
            let answer = self.host.run([
                "install", "-d", "-o", "ferry", "-g", "ferry", "-m", "2775", "--", folder,
            ])
            guard answer.isSuccess else { throw Self.failed("--allow-dir: \(answer.reason)") }
            self.say("made the folder \(folder.shown) for user and group ferry")
        } else if info.st_mode & S_IFMT != S_IFDIR {
            throw Self.failed("--allow-dir: '\(folder.shown)' is no folder")
        } else if !self.host.run(["runuser", "-u", "ferry", "--", "test", "-w", folder]).isSuccess {
            self.say(
                "user ferry cannot write in \(folder.shown) yet: 'chgrp ferry' and 'chmod g+ws' would let it, if it "
                    + "may enter the folders above"
            )
        }
    }

    /// Turns lingering on; true if it was off.
    private func turnLingerOn() throws(FerryError) -> Bool {
        if access("/var/lib/systemd/linger/\(self.host.userName)", F_OK) == 0 { return false }
        let answer = self.host.run(["loginctl", "enable-linger", self.host.userName])
        guard answer.isSuccess else {
            throw Self.failed(
                "lingering cannot be turned on: \(answer.reason)\n"
                    + "as root, 'loginctl enable-linger \(self.host.userName)' does it"
            )
        }
        self.say("turned lingering on: services of \(self.host.userName) start with the machine")
        // The manager of a user without a session starts just now.
        for _ in 0..<100 where !self.ask(["show-environment"]).isSuccess {
            _ = poll(nil, 0, 50)
        }
        return true
    }

    // MARK: Uninstall

    /// Removes what ``install(_:files:linger:)`` made; the queue stays.
    func uninstall(queue: String) throws(FerryError) {
        try self.check()
        guard let record = try self.record() else {
            self.say("nothing is installed: there is no \(self.unitPath)")
            return
        }
        let answer = self.ask(["disable", "--now", ServiceUnit.name])
        guard answer.isSuccess else {
            throw Self.failed("\(ServiceUnit.name) cannot be stopped: \(answer.reason)")
        }
        self.say("stopped and disabled \(ServiceUnit.name)")
        guard unlink(self.unitPath) == 0 else {
            throw Self.failed("cannot remove \(self.unitPath): \(String(cString: strerror(errno)))")
        }
        self.say("removed \(self.unitPath)")
        // What is in a folder goes before it; one that others use meanwhile stays.
        for path in record.made.sorted().reversed() {
            if unlink(path) == 0 || (errno == EISDIR && rmdir(path) == 0) { self.say("removed \(path)") }
        }
        try self.systemctl("daemon-reload")
        if record.turnedLingerOn {
            let answer = self.host.run(["loginctl", "disable-linger", self.host.userName])
            self.say(
                answer.isSuccess ? "turned lingering off" : "lingering cannot be turned off: \(answer.reason)"
            )
        }
        self.say(
            "kept the queue in \(queue)" + (self.isSystem ? ", and user and group ferry, whose it is" : "")
        )
    }

    // MARK: systemctl

    private func systemctl(_ words: String...) throws(FerryError) {
        let answer = self.ask(words)
        guard !answer.isSuccess else { return }
        let hint =
            self.isSystem || answer.status == 1 && !answer.text.contains("bus")
            ? ""
            : "\nthe user's own systemd must run: log in as that user, or use --linger; "
                + "'ferry service install --system' is for the whole machine"
        throw Self.failed("'systemctl \(words.joined(separator: " "))' failed: \(answer.reason)" + hint)
    }

    private func ask(_ words: [String]) -> ToolAnswer {
        self.host.run(["systemctl", "--quiet"] + (self.isSystem ? [] : ["--user"]) + words)
    }

    static func failed(_ message: String) -> FerryError {
        FerryError(.localIO, message, exitStatus: .failed)
    }
}

extension String {
    /// Whether a regular file has this path.
    fileprivate var isFile: Bool {
        var info = stat()
        return lstat(self, &info) == 0 && info.st_mode & S_IFMT == S_IFREG
    }
}
