import FerryControl
import FerryCore
import Glibc

extension RunningCommand {
    /// `ferry service`.
    func service(_ order: ServiceOrder) throws(FerryError) -> ExitStatus {
        let host = ServiceHost.real(self.surroundings.environment)
        switch order.action {
        case .status:
            return try self.serviceStatus(
                ServiceStatus(try self.location(), unit: self.installer(order, host))
            )
        case .print:
            self.console.out.write(try self.unit(order, host, known: []).text)
        case .install:
            let installer = self.installer(order, host)
            try installer.check()
            let known = try installer.record()?.folders ?? []
            let unit = try self.unit(order, host, known: known)
            if order.isSystem { try ServicePrograms.checkReach(unit.program) }
            let places = ServiceFile.places(
                isSystem: order.isSystem,
                environment: host.environment,
                home: host.home
            )
            let pages = ServicePrograms.pages(service: unit.program, host: host)
            let files = ServiceFile.all(places: places, pages: pages)
            try installer.install(unit, files: files, linger: order.linger)
            if !order.isSystem, let zsh = places["zsh"] {
                let folder = zsh.split(separator: "/").dropLast().map { "/" + $0 }.joined()
                installer.say("zsh completes if ~/.zshrc has 'fpath+=(\(folder))' before compinit")
            }
        case .uninstall:
            try self.installer(order, host).uninstall(queue: try self.location().stateDirectory)
        }
        return .success
    }

    private func installer(_ order: ServiceOrder, _ host: ServiceHost) -> ServiceInstaller {
        let console = self.console
        return ServiceInstaller(host: host, isSystem: order.isSystem) { text in
            if !console.quiet { console.out.line(text) }
            console.out.flush()
        }
    }

    /// The unit for the ferryd that belongs to this ferry.
    private func unit(
        _ order: ServiceOrder,
        _ host: ServiceHost,
        known: [String]
    ) throws(FerryError) -> ServiceUnit {
        let program = try ServicePrograms.service()
        if order.isSystem {
            var folders = known
            for folder in order.folders.map(ServicePrograms.canonical) where !folders.contains(folder) {
                folders.append(folder)
            }
            return ServiceUnit(program: program, scope: .system(folders: folders))
        }
        // As a session of the user sees it, even where the command is run outside of one.
        let location = try QueueLocation.resolve(
            stateDirectory: self.arguments.value(.stateDirectory),
            system: false,
            environment: host.environment,
            currentDirectory: self.surroundings.currentDirectory
        )
        let config = host.environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        return ServiceUnit(
            program: program,
            scope: .user(
                stateDirectory: location.stateDirectory,
                socketPath: location.socketPath,
                variables: config.map { ["XDG_CONFIG_HOME": $0] } ?? [:]
            )
        )
    }

    private func serviceStatus(_ status: ServiceStatus) throws(FerryError) -> ExitStatus {
        if self.console.json {
            try self.console.print(json: status)
        } else {
            for line in status.lines { self.console.out.line(line) }
        }
        return .success
    }
}

/// `ferry service status`: whether a service runs, which is found out without starting one.
struct ServiceStatus: Encodable, Equatable {
    var running = false
    var pid: Int32?
    var onDemand: Bool?
    var version: String?
    var stateDir: String
    var socket: String
    var unit: String?

    /// Asks the service of a queue.
    ///
    /// - Throws: What ``ServiceClient/connect(_:start:launcher:)`` throws, except that none is there.
    init(_ location: QueueLocation, unit: ServiceInstaller) throws(FerryError) {
        self.stateDir = location.stateDirectory
        self.socket = location.socketPath
        self.unit = access(unit.unitPath, F_OK) == 0 ? unit.unitPath : nil
        guard let client = try ServiceClient.connectIfThere(location) else { return }
        self.running = true
        self.pid = client.hello.pid
        self.onDemand = client.hello.onDemand
        self.version = client.hello.version
        self.stateDir = client.hello.stateDir ?? self.stateDir
        client.close()
    }

    /// What a person reads.
    var lines: [String] {
        var lines = ["not running"]
        if self.running, let pid = self.pid, let version = self.version {
            let kind = self.onDemand == true ? "on demand, until its last command ends" : "as a daemon"
            lines = ["running \(kind): ferryd \(version), process \(pid)"]
        }
        lines.append("queue: \(self.stateDir.shown)")
        lines.append("unit: " + (self.unit.map(\.shown) ?? "none; 'ferry service install' makes one"))
        return lines
    }

    private enum CodingKeys: CodingKey {
        case type, running, pid, onDemand, version, stateDir, socket, unit
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode("service", forKey: .type)
        try container.encode(self.running, forKey: .running)
        try container.encode(self.pid, forKey: .pid)
        try container.encode(self.onDemand, forKey: .onDemand)
        try container.encode(self.version, forKey: .version)
        try container.encode(self.stateDir, forKey: .stateDir)
        try container.encode(self.socket, forKey: .socket)
        try container.encode(self.unit, forKey: .unit)
    }
}

/// Where the programs and pages are that belong to this `ferry`.
enum ServicePrograms {
    /// The absolute path of ferryd.
    static func service() throws(FerryError) -> String {
        let candidates = ServiceLauncher.standard.candidates
        guard let program = candidates.first(where: { access($0, X_OK) == 0 }) else {
            throw ServiceInstaller.failed(
                "the service's program is missing; looked for \(candidates.joined(separator: " and "))"
            )
        }
        return program
    }

    /// Checks that user ferry can run a program inside the unit's sandbox.
    static func checkReach(_ program: String) throws(FerryError) {
        let hidden = ["/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"]
        var isReachable = !hidden.contains { program.utf8.starts(with: $0.utf8) }
        var current = ""
        for part in program.split(separator: "/") {
            current += "/\(part)"
            var info = stat()
            isReachable = isReachable && stat(current, &info) == 0 && info.st_mode & S_IXOTH != 0
        }
        guard !isReachable else { return }
        throw ServiceInstaller.failed(
            "user ferry could not run \(program.shown) there; put ferry and ferryd into /usr/local/bin and run the "
                + "ferry there"
        )
    }

    /// The manual pages: two are in the programs, the third is a file that comes with them.
    static func pages(service: String, host: ServiceHost) -> [(name: String, text: String)] {
        let answer = host.run([service, "--man"])
        return [
            ("ferry.1", ManualPage.text),
            ("ferryd.8", answer.isSuccess ? answer.text : ""),
            ("ferry-config.5", self.page("ferry-config.5", beside: service) ?? ""),
        ]
    }

    /// A page in `share/man` beside `bin`, or in `man` of the folder that it was built in.
    private static func page(_ name: String, beside program: String) -> String? {
        var folders = program.split(separator: "/").dropLast().map(String.init)
        var paths: [String] = []
        for _ in 0..<4 where !folders.isEmpty {
            folders.removeLast()
            let folder = folders.map { "/" + $0 }.joined()
            paths.append("\(folder)/share/man/man\(name.suffix(1))/\(name)")
            paths.append("\(folder)/man/\(name)")
        }
        return paths.lazy.compactMap { TextFile.read($0) }.first
    }

    /// The path without links, as far as it is there.
    static func canonical(_ path: String) -> String {
        guard let pointer = realpath(path, nil) else { return path }
        defer { free(pointer) }
        return String(cString: pointer)
    }
}
