import FerryCore
import FerryEngine
import FerryHTTP

/// One key of the configuration: where it stands and what it sets.
struct Setting: Sendable {
    /// The object that holds the key.
    let section: String
    /// The key.
    let name: String
    /// Sets the value; gives what it must be if it is not.
    let apply: @Sendable (JSONValue, inout EngineConfiguration) -> String?

    /// `FERRY_LIMITS_RUNNING`.
    var variable: String { "FERRY_\(self.section)_\(self.name)".uppercased() }

    /// Every key that exists.
    static let all: [Setting] = [
        number("limits", "running", 1...1_000) { $1.running = $0 },
        number("limits", "per_host", 1...1_000) { $1.perHost = $0 },
        optionalNumber("retry", "attempts", 0...1_000_000) { $1.retry.attempts = $0 },
        number("retry", "doubtful_attempts", 1...1_000_000) { $1.retry.doubtfulAttempts = $0 },
        duration("retry", "base") { $1.retry.base = $0 },
        duration("retry", "cap") { $1.retry.cap = $0 },
        duration("retry", "retry_after_cap") { $1.retry.retryAfterCap = $0 },
        optionalDuration("retry", "no_progress") { $1.retry.noProgress = $0 },
        optionalDuration("retry", "no_progress_foreground") { $1.noProgressForeground = $0 },
        boolean("transport", "https_only") { $1.transport.httpsOnly = $0 },
        Setting(section: "transport", name: "tls_minimum") { value, configuration in
            guard case .string(let text) = value, let minimum = HTTPRequest.TLSMinimum(rawValue: text) else {
                return "\"1.2\" or \"1.3\""
            }
            configuration.tlsMinimum = minimum
            return nil
        },
        Setting(section: "transport", name: "allow_http") { value, configuration in
            guard case .array(let values) = value else { return "a list of host patterns" }
            var hosts: [String] = []
            for case .string(let host) in values where !host.isEmpty { hosts.append(host) }
            guard hosts.count == values.count else { return "a list of host patterns" }
            configuration.transport.allowHTTP = hosts
            return nil
        },
        boolean("transport", "allow_local_http") { $1.transport.allowLocalHTTP = $0 },
        duration("history", "keep") { $1.historyKeep = $0 },
    ]

    private static func number(
        _ section: String,
        _ name: String,
        _ range: ClosedRange<Int>,
        _ set: @escaping @Sendable (Int, inout EngineConfiguration) -> Void
    ) -> Setting {
        Setting(section: section, name: name) { value, configuration in
            guard case .number(let number) = value, let whole = Int(exactly: number), range.contains(whole)
            else {
                return "a whole number from \(range.lowerBound) to \(range.upperBound)"
            }
            set(whole, &configuration)
            return nil
        }
    }

    private static func optionalNumber(
        _ section: String,
        _ name: String,
        _ range: ClosedRange<Int>,
        _ set: @escaping @Sendable (Int?, inout EngineConfiguration) -> Void
    ) -> Setting {
        let whole = self.number(section, name, range) { set($0, &$1) }
        return Setting(section: section, name: name) { value, configuration in
            guard value == .null else { return whole.apply(value, &configuration).map { "\($0), or null" } }
            set(nil, &configuration)
            return nil
        }
    }

    private static func boolean(
        _ section: String,
        _ name: String,
        _ set: @escaping @Sendable (Bool, inout EngineConfiguration) -> Void
    ) -> Setting {
        Setting(section: section, name: name) { value, configuration in
            guard case .bool(let flag) = value else { return "true or false" }
            set(flag, &configuration)
            return nil
        }
    }

    private static func duration(
        _ section: String,
        _ name: String,
        _ set: @escaping @Sendable (Duration, inout EngineConfiguration) -> Void
    ) -> Setting {
        Setting(section: section, name: name) { value, configuration in
            guard case .string(let text) = value, let duration = DurationText.parse(text), duration > .zero
            else {
                return "a duration such as \"90s\", \"10m\", \"8h\" or \"2d\""
            }
            set(duration, &configuration)
            return nil
        }
    }

    private static func optionalDuration(
        _ section: String,
        _ name: String,
        _ set: @escaping @Sendable (Duration?, inout EngineConfiguration) -> Void
    ) -> Setting {
        let some = self.duration(section, name) { set($0, &$1) }
        return Setting(section: section, name: name) { value, configuration in
            guard value == .null else { return some.apply(value, &configuration).map { "\($0), or null" } }
            set(nil, &configuration)
            return nil
        }
    }
}
