/// The unit file of the service: a pure function of where things are.
struct ServiceUnit: Equatable, Sendable {
    /// The name of the unit, the machine's and a user's alike.
    static let name = "ferryd.service"
    /// How the file begins, which tells that it is ours.
    static let mark = "# Written by 'ferry service install'"

    /// Whose queue.
    enum Scope: Equatable, Sendable {
        /// The machine's, which writes in these folders only.
        case system(folders: [String])
        /// A user's own, at this place; the variables are passed on.
        case user(stateDirectory: String, socketPath: String, variables: [String: String])
    }

    /// The absolute path of `ferryd`.
    var program: String
    /// Whose queue.
    var scope: Scope
    /// What `install` made beside the unit, in order, so that `uninstall` removes just that.
    var made: [String] = []
    /// Whether `install` turned lingering on.
    var turnedLingerOn = false

    /// The folders that the queue may write in.
    var folders: [String] {
        if case .system(let folders) = self.scope { folders } else { [] }
    }

    /// The file's text.
    var text: String {
        var lines = [
            Self.mark + "; to change it, run that again or use 'systemctl edit'.",
            "[Unit]",
            "Description=Ferry transfer service",
            "Documentation=man:ferryd(8) man:ferry(1)",
        ]
        switch self.scope {
        case .system(let folders): lines += self.system(folders)
        case .user(let stateDirectory, let socketPath, let variables):
            lines += self.user(stateDirectory, socketPath, variables)
        }
        lines += ["", "# For 'ferry service'; systemd passes over it.", "[X-Ferry]"]
        lines += self.folders.map { "Folder=\($0)" } + self.made.map { "Made=\($0)" }
        if self.turnedLingerOn { lines.append("Linger=yes") }
        return lines.joined(separator: "\n") + "\n"
    }

    private func system(_ folders: [String]) -> [String] {
        let command = [self.program, "--system"] + folders.flatMap { ["--allow-dir", $0] }
        // In these the sandbox shows nothing but what is bound into it.
        let hidden = folders.filter { folder in
            ["/home", "/root", "/run/user", "/tmp", "/var/tmp"].contains { Self.holds($0, folder) }
        }
        let homes = hidden.contains { !Self.holds("/tmp", $0) && !Self.holds("/var/tmp", $0) }
        return [
            // At the end the network and the disks are there for longer than the service.
            "After=network.target remote-fs.target nss-lookup.target",
            "StartLimitIntervalSec=0",
            "",
            "[Service]",
        ] + Self.life(command) + [
            "User=ferry",
            "Group=ferry",
            "StateDirectory=ferry",
            "StateDirectoryMode=0700",
            "RuntimeDirectory=ferry",
            "RuntimeDirectoryMode=0750",
            "LimitNOFILE=65536",
        ] + folders.map { "ReadWritePaths=" + Self.quote("-" + $0) }
            + hidden.map { "BindPaths=" + Self.quote("-" + $0) } + [
                "ProtectSystem=strict",
                "ProtectHome=" + (homes ? "tmpfs" : "yes"),
                "PrivateTmp=yes",
                "PrivateDevices=yes",
                "ProtectClock=yes",
                "ProtectControlGroups=yes",
                "ProtectHostname=yes",
                "ProtectKernelLogs=yes",
                "ProtectKernelModules=yes",
                "ProtectKernelTunables=yes",
                "ProtectProc=invisible",
                "ProcSubset=pid",
                "NoNewPrivileges=yes",
                "CapabilityBoundingSet=",
                "AmbientCapabilities=",
                "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
                "RestrictNamespaces=yes",
                "RestrictRealtime=yes",
                "RestrictSUIDSGID=yes",
                "LockPersonality=yes",
                "MemoryDenyWriteExecute=yes",
                "RemoveIPC=yes",
                "KeyringMode=private",
                "SystemCallArchitectures=native",
                "SystemCallFilter=@system-service",
                "SystemCallFilter=~@privileged @resources",
                // Dispatch gives its threads their priority, and complains where it may not.
                "SystemCallFilter=setpriority",
                "SystemCallErrorNumber=EPERM",
                "",
                "[Install]",
                "WantedBy=multi-user.target",
            ]
    }

    /// A user's manager cannot put a file system in a sandbox without also changing what user ids mean
    /// (systemd.exec(5), PrivateUsers=), and programs that jobs start are the user's own, which may make code at
    /// run time or use namespaces: those limits stay out.
    private func user(
        _ stateDirectory: String,
        _ socketPath: String,
        _ variables: [String: String]
    ) -> [String] {
        let command = [self.program, "--state-dir", stateDirectory, "--socket", socketPath]
        return ["StartLimitIntervalSec=0", "", "[Service]"] + Self.life(command)
            + variables.sorted { $0.key < $1.key }.map {
                "Environment=" + Self.quote("\($0.key)=\($0.value)")
            } + [
                "NoNewPrivileges=yes",
                "RestrictRealtime=yes",
                "LockPersonality=yes",
                "KeyringMode=private",
                "SystemCallArchitectures=native",
                "SystemCallFilter=@system-service",
                "SystemCallErrorNumber=EPERM",
                "",
                "[Install]",
                "WantedBy=default.target",
            ]
    }

    /// What both have: the statuses are those for which another start would end the same way.
    private static func life(_ command: [String]) -> [String] {
        [
            "Type=notify",
            "NotifyAccess=main",
            "ExecStart=" + command.map { self.quote($0, isCommand: true) }.joined(separator: " "),
            // kill(1) is no part of a small installation.
            "ExecReload=/bin/sh -c \"kill -HUP $MAINPID\"",
            "Restart=on-failure",
            "RestartSec=2s",
            "RestartPreventExitStatus=2 10 12",
            "WatchdogSec=60s",
            "TimeoutStopSec=30s",
            "KillMode=mixed",
            "UMask=0077",
        ]
    }

    /// A word of a value as systemd.syntax(7) and systemd.unit(5) read it, with `%` and, in a command, `$`.
    ///
    /// Of the escapes only those that stand for themselves are used: the others hold in some settings alone.
    static func quote(_ word: String, isCommand: Bool = false) -> String {
        var text = ""
        var isPlain = !word.isEmpty
        for scalar in word.unicodeScalars {
            switch scalar {
            case "%": text += "%%"
            case "$": text += isCommand ? "$$" : "$"
            case "\\", "\"", "'":
                text += "\\" + String(scalar)
                isPlain = false
            default:
                text.unicodeScalars.append(scalar)
                let isSafe = "/_-.,+=@".unicodeScalars.contains(scalar)
                isPlain =
                    isPlain && (isSafe || scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
            }
        }
        return isPlain ? text : "\"\(text)\""
    }

    private static func holds(_ folder: String, _ path: String) -> Bool {
        path == folder || path.utf8.starts(with: (folder + "/").utf8)
    }
}

extension ServiceUnit {
    /// What a unit file says of itself that the next `install` or `uninstall` must know.
    struct Record: Equatable, Sendable {
        /// The folders that were allowed.
        var folders: [String] = []
        /// What was made beside the unit.
        var made: [String] = []
        /// Whether lingering was turned on.
        var turnedLingerOn = false

        /// Knows of nothing.
        init() {}

        /// Reads a unit file; nil if it is not ours.
        init?(unit text: String) {
            guard text.utf8.starts(with: ServiceUnit.mark.utf8) else { return nil }
            let lines = text.split(separator: "\n")
            let own = lines.drop { $0 != "[X-Ferry]" }.dropFirst()
            for line in own.prefix(while: { !$0.hasPrefix("[") }) {
                let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
                guard parts.count == 2 else { continue }
                switch parts[0] {
                case "Folder": self.folders.append(parts[1])
                case "Made": self.made.append(parts[1])
                case "Linger": self.turnedLingerOn = parts[1] == "yes"
                default: break
                }
            }
        }
    }
}
