import FerryCore
import FerryEngine
import FerryHTTP
import FoundationEssentials
import Glibc

/// The configuration: built-in defaults, then `/etc/ferry/config.json5`, then the user's file, then `FERRY_*`
/// variables; each key of a later layer replaces the earlier one.
///
/// Files are JSON5, decoded strictly: an unknown key or a value of the wrong type is an error that names file,
/// key and value.
struct Configuration: Sendable, Equatable {
    /// What the engine lives by.
    var engine = EngineConfiguration()

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
            guard Setting.all.contains(where: { $0.section == section }) else {
                throw Self.error("\(file): unknown key \(section) = \(value)")
            }
            guard case .object(let members) = value else {
                throw Self.error("\(file): \(section) must be an object, not \(value)")
            }
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                guard let setting = Setting.all.first(where: { $0.section == section && $0.name == name })
                else {
                    throw Self.error("\(file): unknown key \(section).\(name) = \(value)")
                }
                try self.apply(setting, value, from: file)
            }
        }
    }

    /// Applies `FERRY_SECTION_NAME` variables, such as `FERRY_LIMITS_RUNNING=4`.
    mutating func apply(environment: [String: String]) throws(FerryError) {
        for setting in Setting.all {
            guard let text = environment[setting.variable] else { continue }
            let decoder = JSONDecoder()
            decoder.allowsJSON5 = true
            let value = (try? decoder.decode(JSONValue.self, from: Data(text.utf8))) ?? .string(text)
            try self.apply(setting, value, from: "the variable \(setting.variable)")
        }
    }

    private mutating func apply(_ setting: Setting, _ value: JSONValue, from source: String)
        throws(FerryError)
    {
        if let wanted = setting.apply(value, &self.engine) {
            throw Self.error("\(source): \(setting.section).\(setting.name) must be \(wanted), not \(value)")
        }
    }

    private static func read(_ path: String) throws(FerryError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
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
