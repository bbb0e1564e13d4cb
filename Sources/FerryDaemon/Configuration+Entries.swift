import FerryControl
import FerryEngine

extension Configuration {
    /// One key with its value.
    struct Entry: Sendable, Equatable {
        let key: String
        let value: JSONValue
        let origin: Origin
    }

    /// A key whose value a reload has changed.
    struct Change: Sendable, Equatable {
        let key: String
        let old: JSONValue
        let new: JSONValue
    }

    /// Every key with its value, in the order of the manual; of `hosts` only what is set.
    var entries: [Entry] { self.entries(of: self.engine) }

    private func entries(of engine: EngineConfiguration) -> [Entry] {
        func entry(_ key: String, _ value: JSONValue) -> Entry {
            Entry(key: key, value: value, origin: self.origins[key] ?? .builtIn)
        }
        let fixed = Setting.all.map { entry($0.key, $0.value.read(engine)) }
        let hosts = engine.hosts.sorted { $0.key < $1.key }.flatMap { host, settings in
            HostSetting.all.compactMap { setting in
                let key = "hosts.\(host).\(setting.name)"
                return self.origins[key] == nil ? nil : entry(key, setting.value.read(settings))
            }
        }
        return fixed + hosts
    }

    /// What is different from an earlier configuration; a key that is no longer there shows as null.
    func changes(from old: Configuration) -> [Change] {
        let before = Dictionary(uniqueKeysWithValues: old.entries.map { ($0.key, $0.value) })
        let after = self.entries
        let changed = after.compactMap { entry in
            before[entry.key] == entry.value
                ? nil : Change(key: entry.key, old: before[entry.key] ?? .null, new: entry.value)
        }
        let gone = old.entries.filter { entry in !after.contains { $0.key == entry.key } }
        return changed + gone.map { Change(key: $0.key, old: $0.value, new: .null) }
    }

    /// What files now say otherwise than before, to no effect: a variable of the process outweighs them, and those
    /// change only when it starts.
    func outweighed(since old: Configuration) -> [(key: String, variable: String)] {
        Setting.all.compactMap { setting in
            guard case .variable(let name) = self.origins[setting.key],
                setting.value.read(self.files) != setting.value.read(old.files)
            else { return nil }
            return (setting.key, name)
        }
    }

    /// The keys for the control socket, with the settings that hold: limits set live outweigh everything.
    func documents(effective: EngineConfiguration) -> [SettingDocument] {
        zip(self.entries, self.entries(of: effective)).map { own, effective in
            SettingDocument(
                key: own.key,
                value: effective.value.json,
                origin: own.value == effective.value ? own.origin.text : "ferry limit"
            )
        }
    }
}

extension Configuration.Origin {
    /// For people and JSON: `built in`, a file's path, or a variable's name.
    var text: String {
        switch self {
        case .builtIn: "built in"
        case .file(let path): path
        case .variable(let name): name
        }
    }

    /// The kind, for JSON.
    var kind: String {
        switch self {
        case .builtIn: "built_in"
        case .file: "file"
        case .variable: "variable"
        }
    }
}
