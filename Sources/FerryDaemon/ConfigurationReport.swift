import FerryControl
import FerryCore
import FoundationEssentials

/// What `ferry config` tells: the settings that files and variables give, and how the running service differs.
struct ConfigurationReport {
    /// The service that works on the queue.
    struct Service {
        let pid: Int32
        /// Its settings; nil if it does not tell.
        let settings: [SettingDocument]?

        /// Asks it; nil if none runs, and none is started.
        static func ask(_ location: QueueLocation) -> Service? {
            guard let client = try? ServiceClient.connect(location, start: .never) else { return nil }
            defer { client.close() }
            let pid = client.hello.pid
            guard case .configuration(let settings)? = try? client.call(.configuration) else {
                return Service(pid: pid, settings: nil)
            }
            return Service(pid: pid, settings: settings)
        }
    }

    /// One line.
    struct Line: Equatable {
        let key: String
        /// As files and variables have it now; nil if only the service knows the key.
        let value: JSONValue?
        let origin: Configuration.Origin
        /// As the service has it, if that is something else.
        let service: SettingDocument?
    }

    let configuration: Configuration
    /// The files that were looked for.
    let files: [String]
    let service: Service?

    /// Every key, those that only the service knows last.
    var lines: [Line] {
        let settings = self.service?.settings
        var known = Dictionary((settings ?? []).map { ($0.key, $0) }) { first, _ in first }
        var lines = self.configuration.entries.map { entry in
            let own = known.removeValue(forKey: entry.key)
            let isOther = settings != nil && own.flatMap { JSONValue(json5: $0.value) } != entry.value
            return Line(
                key: entry.key,
                value: entry.value,
                origin: entry.origin,
                service: isOther ? own ?? SettingDocument(key: entry.key, value: "null", origin: "") : nil
            )
        }
        for (key, document) in known.sorted(by: { $0.key < $1.key }) {
            lines.append(Line(key: key, value: nil, origin: .builtIn, service: document))
        }
        return lines
    }

    /// A table for people.
    var text: String {
        let rows = self.lines.map { line in
            var last = line.value == nil ? "" : line.origin.text
            if let service = line.service {
                let origin = service.origin.isEmpty ? "" : ", \(service.origin)"
                last += (last.isEmpty ? "" : "  ") + "(the service has \(service.value)\(origin))"
            }
            return (line.key, line.value?.description ?? "-", last)
        }
        let first = rows.map(\.0.count).max() ?? 0
        let second = rows.map(\.1.count).max() ?? 0
        return rows.map { key, value, last in
            Self.padded(key, first) + "  " + Self.padded(value, second) + "  " + last + "\n"
        }.joined()
    }

    /// What helps where the service differs; nil where it does not.
    var note: String? {
        guard let service else { return nil }
        guard service.settings != nil else {
            return
                "the running service (process \(service.pid)) does not tell its settings; it is of another version"
        }
        let keys = self.lines.filter { $0.service != nil }.map(\.key)
        guard !keys.isEmpty else { return nil }
        return """
            the running service (process \(service.pid)) has other settings for \(keys.joined(separator: ", "))
            It reads its files again on 'systemctl reload' or 'kill -HUP \(service.pid)', its variables only when \
            it starts
            """
    }

    /// One document.
    var json: String {
        func setting(_ line: Line) -> JSONValue {
            var origin: JSONValue = .null
            if line.origin != .builtIn { origin = .string(line.origin.text) }
            return .object([
                "key": .string(line.key),
                "value": line.value ?? .null,
                "source": .string(line.value == nil ? "service" : line.origin.kind),
                "origin": origin,
                "differs": .bool(line.service != nil),
                "service_value": line.service.flatMap { JSONValue(json5: $0.value) } ?? .null,
                "service_origin": line.service.map { .string($0.origin) } ?? .null,
            ])
        }
        let document = JSONValue.object([
            "type": .string("config"),
            "files": .array(self.files.map { .string($0) }),
            "settings": .array(self.lines.map(setting)),
            "service_pid": self.service.map { .number(Double($0.pid)) } ?? .null,
        ])
        return document.json + "\n"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
