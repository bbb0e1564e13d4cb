import FerryCore
import FerryEngine
import FerryFiles
import FoundationEssentials
import Glibc

/// The configuration: built-in defaults, then `/etc/ferry/config.json5`, then the user's file, then `FERRY_*`
/// variables; each key of a later layer replaces the earlier one.
///
/// Files are JSON5, decoded strictly: an unknown key or a value of the wrong type is an error that names file,
/// key and value.
struct Configuration: Sendable, Equatable {
    /// Where a value comes from.
    enum Origin: Sendable, Equatable {
        /// Nobody has set it.
        case builtIn
        /// A file.
        case file(String)
        /// A variable of the environment.
        case variable(String)
    }

    /// What the engine lives by.
    private(set) var engine = EngineConfiguration()
    /// The same without the variables.
    private(set) var files = EngineConfiguration()
    /// Where values come from, by key; those that are missing are built in.
    private(set) var origins: [String: Origin] = [:]

    /// Limits where files may go to, as the command line says it (`--allow-dir`).
    mutating func allow(_ folders: [String]?) {
        self.engine.allowedFolders = folders.map { AllowedFolders($0) }
    }

    /// Reads all layers.
    static func load(environment: [String: String]) throws(FerryError) -> Configuration {
        var configuration = Configuration()
        for path in self.paths(environment) {
            guard let text = try self.read(path) else { continue }
            try configuration.apply(file: path, text: text)
        }
        try configuration.apply(environment: environment)
        return configuration
    }

    /// The files, weakest first.
    static func paths(_ environment: [String: String]) -> [String] {
        let home =
            environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
            ?? environment["HOME"].map { "\($0)/.config" }
        return ["/etc/ferry/config.json5"] + (home.map { ["\($0)/ferry/config.json5"] } ?? [])
    }

    /// Applies the text of a file.
    mutating func apply(file: String, text: [UInt8]) throws(FerryError) {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        let root: JSONValue
        do {
            root = try decoder.decode(JSONValue.self, from: Data(text))
        } catch {
            throw Self.error("\(file) is not valid JSON5: \(Self.place(of: error))")
        }
        guard case .object(let sections) = root else {
            throw Self.error("\(file) must hold an object, { … }")
        }
        for (section, value) in sections.sorted(by: { $0.key < $1.key }) {
            let isNamed = Setting.namedSections.contains(section)
            guard isNamed || Setting.all.contains(where: { $0.section == section }) else {
                throw Self.error("\(file): unknown key \(section) = \(value)")
            }
            let members = try Self.members(of: value, section, file)
            guard !isNamed else {
                try self.apply(section, members, file)
                continue
            }
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                guard let setting = Setting.all.first(where: { $0.section == section && $0.name == name })
                else {
                    throw Self.error("\(file): unknown key \(section).\(name) = \(value)")
                }
                try self.apply(setting, value, from: file)
                self.origins[setting.key] = .file(file)
            }
        }
        self.files = self.engine
    }

    /// Applies `FERRY_SECTION_NAME` variables, such as `FERRY_LIMITS_RUNNING=4`; empty ones count as not set.
    mutating func apply(environment: [String: String]) throws(FerryError) {
        let sections = Set(Setting.all.map { "FERRY_\($0.section.uppercased())_" })
        for (name, text) in environment.sorted(by: { $0.key < $1.key })
        where !text.isEmpty && sections.contains(where: name.hasPrefix) {
            guard let setting = Setting.all.first(where: { $0.variable == name }) else {
                throw Self.error("the variable \(name) is that of no key of the configuration")
            }
            let value = JSONValue(json5: text) ?? .string(text)
            try self.apply(setting, value, from: "the variable \(name)")
            self.origins[setting.key] = .variable(name)
        }
    }

    private mutating func apply(_ setting: Setting, _ value: JSONValue, from source: String)
        throws(FerryError)
    {
        if let problem = setting.value.apply(value, &self.engine) {
            throw Self.error("\(source): \(Self.sentence(setting.key, value, problem))")
        }
    }

    /// Applies the members of an object whose names the user chooses.
    private mutating func apply(_ section: String, _ members: [String: JSONValue], _ file: String)
        throws(FerryError)
    {
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            let key = "\(section).\(name)"
            let keys = try Self.members(of: value, key, file)
            guard section == "hosts" else {
                throw Self.error("\(file): \(key) cannot be set: \(section) is not supported by this version")
            }
            guard let host = HostSetting.host(name) else {
                throw Self.error("\(file): \(key) names no host; write its name, or name:port")
            }
            var settings = self.engine.hosts[host] ?? HostSettings()
            for (name, value) in keys.sorted(by: { $0.key < $1.key }) {
                guard let setting = HostSetting.all.first(where: { $0.name == name }) else {
                    throw Self.error("\(file): unknown key \(key).\(name) = \(value)")
                }
                if let problem = setting.value.apply(value, &settings) {
                    throw Self.error("\(file): \(Self.sentence("\(key).\(name)", value, problem))")
                }
                self.origins["hosts.\(host).\(name)"] = .file(file)
            }
            self.engine.hosts[host] = settings
        }
    }

    private static func members(
        of value: JSONValue,
        _ key: String,
        _ file: String
    ) throws(FerryError) -> [String: JSONValue] {
        guard case .object(let members) = value else {
            throw self.error("\(file): \(key) must be an object, not \(value)")
        }
        return members
    }

    private static func sentence<Target>(
        _ key: String,
        _ value: JSONValue,
        _ problem: SettingValue<Target>.Problem
    ) -> String {
        switch problem {
        case .mustBe(let wanted): "\(key) must be \(wanted), not \(value)"
        case .wrong(let why): "\(key): \(why)"
        case .unsupported(let only):
            "\(key) = \(value) is not supported by this version; leave it out, or write \(only)"
        }
    }

    private static func read(_ path: String) throws(FerryError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw self.error("\(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count == 0 { return bytes }
            guard count > 0 else {
                throw self.error("\(path) cannot be read: \(String(cString: strerror(errno)))")
            }
            bytes += buffer[..<count]
            guard bytes.count <= 1_048_576 else { throw self.error("\(path) is larger than 1 MiB") }
        }
    }

    /// What is wrong with a text that does not parse; the decoder tells no line.
    private static func place(of error: any Error) -> String {
        let path: [any CodingKey] =
            switch error as? DecodingError {
            case .dataCorrupted(let context), .typeMismatch(_, let context), .valueNotFound(_, let context),
                .keyNotFound(_, let context):
                context.codingPath
            default: []
            }
        guard path.isEmpty else {
            return "the value of \(path.map(\.stringValue).joined(separator: ".")) cannot be read"
        }
        return "look for a bracket, comma or quote that is missing or too many"
    }

    private static func error(_ message: String) -> FerryError {
        FerryError(.configuration, message, exitStatus: .usage)
    }
}
