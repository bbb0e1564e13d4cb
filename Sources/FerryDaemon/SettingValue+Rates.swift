import FerryCore

extension SettingValue {
    /// A limit on bytes a second, or `null`, which is none.
    static func rate(_ place: any Place<Int64?>) -> SettingValue {
        SettingValue { value, target in
            guard let choice = Self.choice(value) else { return .mustBe(Self.rateWanted) }
            target[keyPath: place] = choice.bytes
            return nil
        } read: {
            $0[keyPath: place].map { .string(RateText.exact($0)) } ?? .null
        }
    }

    /// A list of times of the week with their limits.
    static func calendar(_ place: any Place<RateCalendar>) -> SettingValue {
        SettingValue { value, target in
            guard case .array(let values) = value else {
                return .mustBe("a list of { days, from, to, down, up }")
            }
            var calendar = RateCalendar()
            for (index, value) in values.enumerated() {
                switch Self.entry(value) {
                case .success(let entry): calendar.entries.append(entry)
                case .failure(let problem): return .wrong("entry \(index + 1): \(problem.text)")
                }
            }
            target[keyPath: place] = calendar
            return nil
        } read: {
            .array($0[keyPath: place].entries.map(Self.value))
        }
    }

    private static var rateWanted: String { "a rate such as \"10M\", or null" }

    private struct EntryProblem: Error {
        let text: String
    }

    /// A rate or null; nil if it is neither.
    private static func choice(_ value: JSONValue) -> RateChoice? {
        switch value {
        case .null: .unlimited
        case .string(let text): ByteCount(text: text).flatMap { $0.bytes > 0 ? .limited($0.bytes) : nil }
        case .bool, .number, .array, .object: nil
        }
    }

    private static func entry(_ value: JSONValue) -> Result<RateCalendar.Entry, EntryProblem> {
        guard case .object(let members) = value else {
            return .failure(
                EntryProblem(text: "must be an object such as { days: \"mon-fri\", down: \"1M\" }")
            )
        }
        var entry = RateCalendar.Entry()
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            func mustBe(_ wanted: String) -> Result<RateCalendar.Entry, EntryProblem> {
                .failure(EntryProblem(text: "\(name) must be \(wanted), not \(value)"))
            }
            let text: String? = if case .string(let text) = value { text } else { nil }
            switch name {
            case "days":
                guard let days = text.flatMap(CalendarText.days) else {
                    return mustBe("days such as \"mon-fri\" or \"sat,sun\"")
                }
                entry.days = days
            case "from", "to":
                let isTo = name == "to"
                guard let minute = text.flatMap(CalendarText.minute), isTo || minute < 1_440 else {
                    return mustBe("a time such as \"08:00\"\(isTo ? ", up to \"24:00\"" : "")")
                }
                if isTo { entry.to = minute } else { entry.from = minute }
            case "down", "up":
                guard let choice = Self.choice(value) else { return mustBe(Self.rateWanted) }
                if name == "up" { entry.up = choice } else { entry.down = choice }
            default:
                return .failure(EntryProblem(text: "unknown key \(name) = \(value)"))
            }
        }
        guard entry.down != .unsaid || entry.up != .unsaid else {
            return .failure(EntryProblem(text: "says neither down nor up"))
        }
        return .success(entry)
    }

    /// An entry as it could stand in a file.
    private static func value(_ entry: RateCalendar.Entry) -> JSONValue {
        var members: [String: JSONValue] = [
            "days": .string(CalendarText.text(of: entry.days)),
            "from": .string(CalendarText.text(ofMinute: entry.from)),
            "to": .string(CalendarText.text(ofMinute: entry.to)),
        ]
        for (name, choice) in [("down", entry.down), ("up", entry.up)] where choice != .unsaid {
            members[name] = choice.bytes.map { .string(RateText.exact($0)) } ?? .null
        }
        return .object(members)
    }
}
