import FerryCore

/// How a value of the configuration is read into its place, and shown again.
struct SettingValue<Target>: Sendable {
    /// Why a value cannot be taken.
    enum Problem: Equatable {
        /// It has the wrong type, or is out of range; what it has to be.
        case mustBe(String)
        /// It asks for what this version does not do; the one value that it takes.
        case unsupported(only: String)
        /// Something in it is wrong; the rest of a sentence that begins with the key.
        case wrong(String)
    }

    /// A place for a value in the target.
    typealias Place<Value> = WritableKeyPath<Target, Value> & Sendable

    /// Sets the value; gives the problem if it cannot be taken.
    let apply: @Sendable (JSONValue, inout Target) -> Problem?
    /// The value that holds, as it could stand in a file.
    let read: @Sendable (Target) -> JSONValue

    static func number(_ range: ClosedRange<Int>, _ place: any Place<Int>) -> SettingValue {
        SettingValue { value, target in
            guard case .number(let number) = value, let whole = Int(exactly: number), range.contains(whole)
            else {
                return .mustBe("a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            target[keyPath: place] = whole
            return nil
        } read: {
            .number(Double($0[keyPath: place]))
        }
    }

    static func boolean(_ place: any Place<Bool>) -> SettingValue {
        SettingValue { value, target in
            guard case .bool(let flag) = value else { return .mustBe("true or false") }
            target[keyPath: place] = flag
            return nil
        } read: {
            .bool($0[keyPath: place])
        }
    }

    static func duration(_ place: any Place<Duration>) -> SettingValue {
        SettingValue { value, target in
            guard case .string(let text) = value, let duration = DurationText.parse(text), duration > .zero
            else {
                return .mustBe("a duration such as \"90s\", \"10m\", \"8h\" or \"2d\"")
            }
            target[keyPath: place] = duration
            return nil
        } read: {
            .string(Self.exact($0[keyPath: place]))
        }
    }

    /// A list of texts that are not empty.
    static func texts(_ wanted: String, _ place: any Place<[String]>) -> SettingValue {
        SettingValue { value, target in
            guard let texts = Self.texts(value) else { return .mustBe(wanted) }
            target[keyPath: place] = texts
            return nil
        } read: {
            .array($0[keyPath: place].map { .string($0) })
        }
    }

    /// One of some words.
    static func word<Value: RawRepresentable & CaseIterable & SendableMetatype>(
        _ place: any Place<Value>
    ) -> SettingValue where Value.RawValue == String {
        let wanted = Value.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: " or ")
        return SettingValue { value, target in
            guard case .string(let text) = value, let word = Value(rawValue: text) else {
                return .mustBe(wanted)
            }
            target[keyPath: place] = word
            return nil
        } read: {
            .string($0[keyPath: place].rawValue)
        }
    }

    /// A value of the kind, or `null`, which is nil.
    static func optional<Value: Sendable>(
        _ place: any Place<Value?>,
        _ initial: Value,
        _ some: SettingValue<SettingBox<Value>>
    ) -> SettingValue {
        SettingValue { value, target in
            guard value != .null else {
                target[keyPath: place] = nil
                return nil
            }
            var box = SettingBox(value: initial)
            switch some.apply(value, &box) {
            case .mustBe(let wanted): return .mustBe("\(wanted), or null")
            case .unsupported(let only): return .unsupported(only: only)
            case .wrong(let why): return .wrong(why)
            case nil:
                target[keyPath: place] = box.value
                return nil
            }
        } read: { target in
            target[keyPath: place].map { some.read(SettingBox(value: $0)) } ?? .null
        }
    }

    /// A key of the manual that this version does not carry out: only the value that asks for nothing is taken.
    ///
    /// `check` says whether another value would be one at all.
    static func unsupported(
        only neutral: JSONValue,
        _ wanted: String,
        _ check: @escaping @Sendable (JSONValue) -> Bool
    ) -> SettingValue {
        SettingValue { value, _ in
            if value == neutral { return nil }
            return check(value) ? .unsupported(only: neutral.description) : .mustBe(wanted)
        } read: { _ in
            neutral
        }
    }

    /// The texts of a list; nil if it is none, or one of them is empty.
    static func texts(_ value: JSONValue) -> [String]? {
        guard case .array(let values) = value else { return nil }
        var texts: [String] = []
        for case .string(let text) in values where !text.isEmpty { texts.append(text) }
        return texts.count == values.count ? texts : nil
    }

    /// A duration that reads back as the same: the largest unit of which it is a whole number.
    static func exact(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        if attoseconds != 0 { return "\(seconds * 1_000 + attoseconds / 1_000_000_000_000_000)ms" }
        for (name, unit) in [("d", 86_400), ("h", 3_600), ("m", 60)] as [(String, Int64)]
        where seconds > 0 && seconds % unit == 0 {
            return "\(seconds / unit)\(name)"
        }
        return "\(seconds)s"
    }
}

/// A value on its own, as a target.
struct SettingBox<Value: Sendable>: Sendable {
    var value: Value
}
