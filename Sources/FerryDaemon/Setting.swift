import FerryCore
import FerryEngine
import FerryHTTP

/// One key of the configuration: where it stands and what it sets.
struct Setting: Sendable {
    /// The object that holds the key.
    let section: String
    /// The key.
    let name: String
    /// What it sets.
    let value: SettingValue<EngineConfiguration>

    /// `limits.running`.
    var key: String { "\(self.section).\(self.name)" }

    /// `FERRY_LIMITS_RUNNING`.
    var variable: String { "FERRY_\(self.section)_\(self.name)".uppercased() }

    private init(_ section: String, _ name: String, _ value: SettingValue<EngineConfiguration>) {
        self.section = section
        self.name = name
        self.value = value
    }

    /// Every key that exists, but for those of `hosts`, `auth` and `profiles`, whose names are the user's.
    static let all: [Setting] = [
        Setting("limits", "running", .number(1...1_000, \.running)),
        Setting("limits", "per_host", .number(1...1_000, \.perHost)),
        Setting(
            "limits",
            "connections_per_file",
            .unsupported(only: .number(1), "a whole number from 1 to 16") { value in
                guard case .number(let number) = value, let whole = Int(exactly: number) else { return false }
                return (1...16).contains(whole)
            }
        ),
        Setting("limits", "down", .rate(\.down)),
        Setting("limits", "up", .rate(\.up)),
        Setting("limits", "calendar", .calendar(\.calendar)),
        Setting("retry", "attempts", .optional(\.retry.attempts, 0, .number(0...1_000_000, \.value))),
        Setting("retry", "doubtful_attempts", .number(1...1_000_000, \.retry.doubtfulAttempts)),
        Setting("retry", "base", .duration(\.retry.base)),
        Setting("retry", "cap", .duration(\.retry.cap)),
        Setting("retry", "retry_after_cap", .duration(\.retry.retryAfterCap)),
        Setting("retry", "no_progress", .optional(\.retry.noProgress, .zero, .duration(\.value))),
        Setting(
            "retry",
            "no_progress_foreground",
            .optional(\.noProgressForeground, .zero, .duration(\.value))
        ),
        Setting("transport", "https_only", .boolean(\.transport.httpsOnly)),
        Setting("transport", "tls_minimum", .word(\.tlsMinimum)),
        Setting("transport", "allow_http", .texts("a list of host patterns", \.transport.allowHTTP)),
        Setting("transport", "allow_local_http", .boolean(\.transport.allowLocalHTTP)),
        Setting("transport", "http2", .boolean(\.http2)),
        Setting("history", "keep", .duration(\.historyKeep)),
    ]

    /// The objects whose members have names of the user's choice.
    static let namedSections = ["hosts", "auth", "profiles"]
}

/// One key of a member of `hosts`.
struct HostSetting: Sendable {
    /// The key.
    let name: String
    /// What it sets.
    let value: SettingValue<HostSettings>

    /// Every key that exists.
    static let all: [HostSetting] = [
        HostSetting(name: "per_host", value: .optional(\.perHost, 0, .number(1...1_000, \.value))),
        HostSetting(name: "http2", value: .optional(\.http2, false, .boolean(\.value))),
        HostSetting(name: "down", value: .rate(\.down)),
        HostSetting(name: "up", value: .rate(\.up)),
        HostSetting(
            name: "pins",
            value: .unsupported(only: .array([]), "a list of pins such as \"sha256//…\"") { value in
                SettingValue<HostSettings>.texts(value)?.allSatisfy { $0.hasPrefix("sha256//") } ?? false
            }
        ),
        HostSetting(
            name: "auth",
            value: .unsupported(only: .null, "the name of a member of auth, or null") { value in
                if case .string(let name) = value { return !name.isEmpty }
                return false
            }
        ),
    ]

    /// The name of a host as it is compared: small letters; nil if it is no `name` or `name:port`.
    static func host(_ text: String) -> String? {
        let name = text.lowercased()
        let wrong = name.utf8.contains { $0 <= 32 || $0 == 127 || "/@?#*\"".utf8.contains($0) }
        return name.isEmpty || wrong ? nil : name
    }
}
