import FerryCore
import FerryEngine
import FerryHTTP
import FerryTestSupport
import Glibc
import Testing

@testable import FerryDaemon

@Suite struct ConfigurationTests {
    private func configuration(_ text: String) throws -> EngineConfiguration {
        var configuration = Configuration()
        try configuration.apply(file: "/c.json5", text: Array(text.utf8))
        return configuration.engine
    }

    // MARK: Keys

    /// A key with a value that is good and what it changes.
    struct Good: Sendable, CustomTestStringConvertible {
        let section: String
        let name: String
        let value: String
        let expected: EngineConfiguration
        var testDescription: String { "\(self.section).\(self.name) = \(self.value)" }

        init(
            _ section: String,
            _ name: String,
            _ value: String,
            _ change: (inout EngineConfiguration) -> Void
        ) {
            var configuration = EngineConfiguration()
            change(&configuration)
            self.section = section
            self.name = name
            self.value = value
            self.expected = configuration
        }
    }

    private static let good = [
        Good("limits", "running", "1") { $0.running = 1 },
        Good("limits", "running", "1000") { $0.running = 1_000 },
        Good("limits", "per_host", "2") { $0.perHost = 2 },
        Good("retry", "attempts", "5") { $0.retry.attempts = 5 },
        Good("retry", "attempts", "0") { $0.retry.attempts = 0 },
        Good("retry", "attempts", "null") { $0.retry.attempts = nil },
        Good("retry", "doubtful_attempts", "3") { $0.retry.doubtfulAttempts = 3 },
        Good("retry", "base", "\"500ms\"") { $0.retry.base = .milliseconds(500) },
        Good("retry", "cap", "\"10m\"") { $0.retry.cap = .seconds(600) },
        Good("retry", "retry_after_cap", "\"2d\"") { $0.retry.retryAfterCap = .seconds(172_800) },
        Good("retry", "no_progress", "\"1.5h\"") { $0.retry.noProgress = .seconds(5_400) },
        Good("retry", "no_progress", "null") { $0.retry.noProgress = nil },
        Good("retry", "no_progress_foreground", "\"90s\"") { $0.noProgressForeground = .seconds(90) },
        Good("retry", "no_progress_foreground", "null") { $0.noProgressForeground = nil },
        Good("transport", "https_only", "false") { $0.transport.httpsOnly = false },
        Good("transport", "tls_minimum", "\"1.3\"") { $0.tlsMinimum = .v13 },
        Good("transport", "tls_minimum", "'1.2'") { $0.tlsMinimum = .v12 },
        Good("transport", "allow_http", "[\"*.lan\", \"10.0.0.0/8\"]") {
            $0.transport.allowHTTP = ["*.lan", "10.0.0.0/8"]
        },
        Good("transport", "allow_http", "[]") { $0.transport.allowHTTP = [] },
        Good("transport", "allow_local_http", "true") { $0.transport.allowLocalHTTP = true },
        Good("transport", "http2", "true") { $0.http2 = true },
        Good("limits", "connections_per_file", "1") { _ in },
        Good("limits", "down", "null") { _ in },
        Good("limits", "down", "\"10M\"") { $0.down = 10 << 20 },
        Good("limits", "up", "null") { _ in },
        Good("limits", "up", "'500KB'") { $0.up = 500_000 },
        Good("limits", "calendar", "[]") { _ in },
        Good(
            "limits",
            "calendar",
            "[{ days: 'mon-fri', from: '08:00', to: '18:00', down: '1M', up: null }, { up: '256K' }]"
        ) {
            $0.calendar = RateCalendar([
                RateCalendar.Entry(
                    days: [0, 1, 2, 3, 4],
                    from: 480,
                    to: 1_080,
                    down: .limited(1 << 20),
                    up: .unlimited
                ),
                RateCalendar.Entry(up: .limited(256 << 10)),
            ])
        },
        Good("history", "keep", "\"30d\"") { $0.historyKeep = .seconds(30 * 86_400) },
    ]

    @Test(arguments: good)
    func `a good value is taken, from a file and from a variable`(_ item: Good) throws {
        #expect(
            try self.configuration("{ \(item.section): { \(item.name): \(item.value) } }") == item.expected
        )
        let setting = try #require(Setting.all.first { $0.section == item.section && $0.name == item.name })
        var configuration = Configuration()
        try configuration.apply(environment: [setting.variable: item.value])
        #expect(configuration.engine == item.expected)
    }

    @Test func `every key has a good value here, and a variable of its own`() {
        let tested = Set(Self.good.map { "\($0.section).\($0.name)" })
        #expect(Set(Setting.all.map { "\($0.section).\($0.name)" }) == tested)
        #expect(Set(Setting.all.map(\.variable)).count == Setting.all.count)
    }

    @Test(arguments: [
        ("limits", "running", "0", "a whole number from 1 to 1000"),
        ("limits", "running", "1001", "a whole number from 1 to 1000"),
        ("limits", "running", "1.5", "a whole number from 1 to 1000"),
        ("limits", "running", "-1", "a whole number from 1 to 1000"),
        ("limits", "running", "1e300", "a whole number from 1 to 1000"),
        ("limits", "running", "\"16\"", "a whole number from 1 to 1000"),
        ("limits", "running", "null", "a whole number from 1 to 1000"),
        ("limits", "running", "true", "a whole number from 1 to 1000"),
        ("limits", "running", "[1, 2]", "a whole number from 1 to 1000"),
        ("limits", "per_host", "{}", "a whole number from 1 to 1000"),
        ("retry", "attempts", "-1", "a whole number from 0 to 1000000, or null"),
        ("retry", "doubtful_attempts", "0", "a whole number from 1 to 1000000"),
        ("retry", "base", "1", "a duration such as \"90s\", \"10m\", \"8h\" or \"2d\""),
        ("retry", "base", "\"0s\"", "a duration such as \"90s\", \"10m\", \"8h\" or \"2d\""),
        ("retry", "base", "\"soon\"", "a duration such as \"90s\", \"10m\", \"8h\" or \"2d\""),
        ("retry", "base", "null", "a duration such as \"90s\", \"10m\", \"8h\" or \"2d\""),
        ("retry", "no_progress", "\"\"", "a duration such as \"90s\", \"10m\", \"8h\" or \"2d\", or null"),
        ("transport", "https_only", "1", "true or false"),
        ("transport", "https_only", "\"true\"", "true or false"),
        ("transport", "tls_minimum", "1.2", "\"1.2\" or \"1.3\""),
        ("transport", "tls_minimum", "\"1.1\"", "\"1.2\" or \"1.3\""),
        ("transport", "allow_http", "\"*.lan\"", "a list of host patterns"),
        ("transport", "allow_http", "[\"*.lan\", 1]", "a list of host patterns"),
        ("transport", "allow_http", "[\"\"]", "a list of host patterns"),
        ("transport", "http2", "1", "true or false"),
        ("limits", "connections_per_file", "17", "a whole number from 1 to 16"),
        ("limits", "connections_per_file", "\"4\"", "a whole number from 1 to 16"),
        ("limits", "down", "\"fast\"", "a rate such as \"10M\", or null"),
        ("limits", "up", "\"0\"", "a rate such as \"10M\", or null"),
        ("limits", "up", "10", "a rate such as \"10M\", or null"),
        ("limits", "calendar", "{}", "a list of { days, from, to, down, up }"),
        ("history", "keep", "90", "a duration such as \"90s\", \"10m\", \"8h\" or \"2d\""),
    ])
    func `a bad value is named with file and key`(
        _ section: String,
        _ name: String,
        _ value: String,
        _ wanted: String
    ) {
        let error = #expect(throws: FerryError.self) {
            try self.configuration("{ \(section): { \(name): \(value) } }")
        }
        #expect(error?.code == .configuration)
        #expect(error?.exitStatus == .usage)
        #expect(error?.message.hasPrefix("/c.json5: \(section).\(name) must be \(wanted), not ") == true)
    }

    // MARK: Files

    @Test func `comments, trailing commas and bare keys are JSON5`() throws {
        let configuration = try self.configuration(
            """
            // the office
            {
              limits: { running: 4, 'per_host': +2, /* two */ },
              "transport": { https_only: false, },
            }
            """
        )
        #expect(configuration.running == 4)
        #expect(configuration.perHost == 2)
        #expect(configuration.transport.httpsOnly == false)
    }

    @Test(arguments: [
        ("{ limit: { running: 4 } }", "/c.json5: unknown key limit = {…}"),
        ("{ limits: { runing: 4 } }", "/c.json5: unknown key limits.runing = 4"),
        (
            "{ limits: { running: 4, x: [1, 'a', null, true] } }",
            "/c.json5: unknown key limits.x = [1, \"a\", null, true]"
        ),
        ("{ limits: 4 }", "/c.json5: limits must be an object, not 4"),
        ("{ limits: null }", "/c.json5: limits must be an object, not null"),
        ("[]", "/c.json5 must hold an object, { … }"),
        ("4", "/c.json5 must hold an object, { … }"),
        ("", "/c.json5 is not valid JSON5: "),
        ("{ limits: ", "/c.json5 is not valid JSON5: "),
        ("{ limits: {} } x", "/c.json5 is not valid JSON5: "),
    ])
    func `a file that is wrong is an error that tells where`(_ text: String, _ message: String) {
        let error = #expect(throws: FerryError.self) { try self.configuration(text) }
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
        #expect(error?.exitStatus == .usage)
    }

    @Test func `an empty object changes nothing`() throws {
        #expect(try self.configuration("{}") == EngineConfiguration())
        #expect(try self.configuration("{ limits: {} }") == EngineConfiguration())
    }

    // MARK: Layers

    @Test(arguments: [
        (["XDG_CONFIG_HOME": "/x", "HOME": "/h"], ["/etc/ferry/config.json5", "/x/ferry/config.json5"]),
        (["HOME": "/h"], ["/etc/ferry/config.json5", "/h/.config/ferry/config.json5"]),
        (
            ["XDG_CONFIG_HOME": "relative", "HOME": "/h"],
            ["/etc/ferry/config.json5", "/h/.config/ferry/config.json5"]
        ),
        (
            ["XDG_CONFIG_HOME": "", "HOME": "/h"],
            ["/etc/ferry/config.json5", "/h/.config/ferry/config.json5"]
        ),
        ([:], ["/etc/ferry/config.json5"]),
    ])
    func `files are looked for in two places, the user's last`(
        _ environment: [String: String],
        _ paths: [String]
    ) {
        #expect(Configuration.paths(environment) == paths)
    }

    @Test func `a later layer replaces single keys of an earlier one`() throws {
        var configuration = Configuration()
        try configuration.apply(file: "/etc/c", text: Array("{ limits: { running: 4, per_host: 3 } }".utf8))
        try configuration.apply(file: "/home/c", text: Array("{ limits: { running: 5 } }".utf8))
        #expect(configuration.engine.running == 5)
        #expect(configuration.engine.perHost == 3)
        try configuration.apply(environment: [
            "FERRY_LIMITS_RUNNING": "6", "FERRY_RETRY_BASE": "2s", "FERRY_X": "1",
            "FERRY_LIMITS_PER_HOST": "",
        ])
        #expect(configuration.engine.running == 6)
        #expect(configuration.engine.retry.base == .seconds(2))
    }

    @Test func `a variable that is wrong is named`() {
        var configuration = Configuration()
        let error = #expect(throws: FerryError.self) {
            try configuration.apply(environment: ["FERRY_LIMITS_RUNNING": "many"])
        }
        #expect(
            error?.message == "the variable FERRY_LIMITS_RUNNING: limits.running must be"
                + " a whole number from 1 to 1000, not \"many\""
        )
    }

    @Test(arguments: ["FERRY_LIMITS_RUNING", "FERRY_TRANSPORT_X", "FERRY_HISTORY_"])
    func `a variable of no key is named`(_ name: String) {
        var configuration = Configuration()
        let error = #expect(throws: FerryError.self) { try configuration.apply(environment: [name: "1"]) }
        #expect(error?.message == "the variable \(name) is that of no key of the configuration")
    }

    @Test(arguments: Setting.all.map(\.key))
    func `a value that is shown reads back as the same`(_ key: String) throws {
        let setting = try #require(Setting.all.first { $0.key == key })
        for item in Self.good where item.section == setting.section && item.name == setting.name {
            let shown = setting.value.read(item.expected)
            var configuration = EngineConfiguration()
            #expect(setting.value.apply(shown, &configuration) == nil)
            #expect(configuration == item.expected, "\(shown)")
        }
    }

    // MARK: Hosts, and what this version lacks

    @Test func `a host has settings of its own, by name or with its port`() throws {
        let configuration = try self.configuration(
            """
            { hosts: { "Downloads.Example.org": { per_host: 2, pins: [], auth: null },
                       "example.org:8443": { per_host: 9, http2: true, down: '1M', up: null }, "[::1]": { per_host: 3 } },
              limits: { per_host: 5 } }
            """
        )
        #expect(configuration.hosts["downloads.example.org"]?.perHost == 2)
        #expect(configuration.hosts["example.org:8443"]?.http2 == true)
        #expect(configuration.hosts["example.org:8443"]?.down == 1 << 20)
        #expect(configuration.hosts["example.org:8443"]?.up == nil)
        #expect(configuration.hosts["[::1]"]?.perHost == 3)
        #expect(configuration.perHost == 5)
    }

    @Test func `a later file replaces single keys of a host`() throws {
        var configuration = Configuration()
        try configuration.apply(
            file: "/a",
            text: Array("{ hosts: { h: { per_host: 2, http2: true } } }".utf8)
        )
        try configuration.apply(file: "/b", text: Array("{ hosts: { h: { per_host: 3 } } }".utf8))
        #expect(configuration.engine.hosts["h"]?.perHost == 3)
        #expect(configuration.engine.hosts["h"]?.http2 == true)
        let entries = configuration.entries.filter { $0.key.hasPrefix("hosts.") }
        #expect(
            entries == [
                Configuration.Entry(key: "hosts.h.per_host", value: .number(3), origin: .file("/b")),
                Configuration.Entry(key: "hosts.h.http2", value: .bool(true), origin: .file("/a")),
            ]
        )
    }

    @Test(arguments: [
        (
            "{ limits: { connections_per_file: 4 } }",
            "limits.connections_per_file = 4 is not supported by this version; leave it out, or write 1"
        ),
        (
            "{ limits: { calendar: [{ down: '1M' }, { days: 'weekend', up: '1M' }] } }",
            "limits.calendar: entry 2: days must be days such as \"mon-fri\" or \"sat,sun\", not \"weekend\""
        ),
        (
            "{ limits: { calendar: [{ from: '24:00', down: '1M' }] } }",
            "limits.calendar: entry 1: from must be a time such as \"08:00\", not \"24:00\""
        ),
        (
            "{ limits: { calendar: [{ to: 18, down: '1M' }] } }",
            "limits.calendar: entry 1: to must be a time such as \"08:00\", up to \"24:00\", not 18"
        ),
        (
            "{ limits: { calendar: [{ down: 'fast' }] } }",
            "limits.calendar: entry 1: down must be a rate such as \"10M\", or null, not \"fast\""
        ),
        (
            "{ limits: { calendar: [{ rate: '1M' }] } }",
            "limits.calendar: entry 1: unknown key rate = \"1M\""
        ),
        ("{ limits: { calendar: [{ days: 'mon' }] } }", "limits.calendar: entry 1: says neither down nor up"),
        (
            "{ limits: { calendar: ['mon'] } }",
            "limits.calendar: entry 1: must be an object such as { days: \"mon-fri\", down: \"1M\" }"
        ),
        (
            "{ hosts: { h: { pins: ['sha256//x'] } } }",
            "hosts.h.pins = [\"sha256//x\"] is not supported by this version; leave it out, or write []"
        ),
        (
            "{ hosts: { h: { auth: 'corp' } } }",
            "hosts.h.auth = \"corp\" is not supported by this version; leave it out, or write null"
        ),
        (
            "{ auth: { corp: { oauth: {} } } }",
            "auth.corp cannot be set: auth is not supported by this version"
        ),
        (
            "{ profiles: { private: { cookies: 'none' } } }",
            "profiles.private cannot be set: profiles is not supported by this version"
        ),
        ("{ auth: { corp: 1 } }", "auth.corp must be an object, not 1"),
        ("{ hosts: { h: 1 } }", "hosts.h must be an object, not 1"),
        ("{ hosts: { h: { per_hosts: 1 } } }", "unknown key hosts.h.per_hosts = 1"),
        (
            "{ hosts: { h: { pins: ['x'] } } }",
            "hosts.h.pins must be a list of pins such as \"sha256//…\", not [\"x\"]"
        ),
        ("{ hosts: { 'https://h': {} } }", "hosts.https://h names no host; write its name, or name:port"),
        ("{ hosts: { '': {} } }", "hosts. names no host; write its name, or name:port"),
    ])
    func `what this version does not do is refused`(_ text: String, _ message: String) {
        let error = #expect(throws: FerryError.self) { try self.configuration(text) }
        #expect(error?.message == "/c.json5: \(message)")
        #expect(error?.exitStatus == .usage)
    }

    @Test func `empty objects of what this version lacks are taken`() throws {
        #expect(try self.configuration("{ hosts: {}, auth: {}, profiles: {} }") == EngineConfiguration())
    }

    // MARK: Reloading

    private func layers(_ file: String, _ environment: [String: String] = [:]) throws -> Configuration {
        var configuration = Configuration()
        try configuration.apply(file: "/f", text: Array(file.utf8))
        try configuration.apply(environment: environment)
        return configuration
    }

    @Test func `a reload tells what has changed`() throws {
        let old = try self.layers(
            "{ limits: { running: 4 }, hosts: { a: { per_host: 1 }, b: { per_host: 2 } } }"
        )
        let new = try self.layers(
            "{ limits: { running: 5 }, hosts: { a: { per_host: 3 }, c: { per_host: 4 } } }"
        )
        #expect(new.changes(from: new).isEmpty)
        #expect(
            new.changes(from: old) == [
                Configuration.Change(key: "limits.running", old: .number(4), new: .number(5)),
                Configuration.Change(key: "hosts.a.per_host", old: .number(1), new: .number(3)),
                Configuration.Change(key: "hosts.c.per_host", old: .null, new: .number(4)),
                Configuration.Change(key: "hosts.b.per_host", old: .number(2), new: .null),
            ]
        )
    }

    @Test func `a reload tells which changes a variable outweighs`() throws {
        let environment = ["FERRY_LIMITS_RUNNING": "9", "FERRY_LIMITS_PER_HOST": "8"]
        let old = try self.layers("{ limits: { running: 4 } }", environment)
        let new = try self.layers("{ limits: { running: 5 } }", environment)
        #expect(new.engine.running == 9)
        #expect(new.changes(from: old).isEmpty)
        let outweighed = new.outweighed(since: old)
        #expect(outweighed.map(\.key) == ["limits.running"])
        #expect(outweighed.map(\.variable) == ["FERRY_LIMITS_RUNNING"])
    }

    // MARK: ferry config

    private func report(_ file: String, service: Configuration?, running: Int? = nil) throws
        -> ConfigurationReport
    {
        let service = service.map { service in
            var effective = service.engine
            if let running { effective.running = running }
            return ConfigurationReport.Service(pid: 42, settings: service.documents(effective: effective))
        }
        return ConfigurationReport(configuration: try self.layers(file), files: ["/f"], service: service)
    }

    @Test func `the report tells value and origin of every key`() throws {
        let report = try self.report("{ limits: { running: 4 } }", service: nil)
        #expect(report.text.split(separator: "\n").count == Setting.all.count)
        #expect(report.text.hasPrefix("limits.running                4      /f\n"))
        #expect(report.text.contains("\nretry.cap                     \"5m\"   built in\n"))
        #expect(report.note == nil)
        let json = try #require(JSONValue(json5: report.json))
        guard case .object(let root) = json, case .array(let settings)? = root["settings"] else {
            Issue.record("\(report.json)")
            return
        }
        #expect(root["type"] == .string("config") && root["service_pid"] == .null)
        #expect(
            settings.first
                == .object([
                    "key": .string("limits.running"), "value": .number(4), "source": .string("file"),
                    "origin": .string("/f"), "differs": .bool(false), "service_value": .null,
                    "service_origin": .null,
                ])
        )
    }

    @Test func `the report tells where the service differs`() throws {
        let same = try self.report(
            "{ limits: { running: 4 } }",
            service: self.layers("{ limits: { running: 4 } }")
        )
        #expect(same.note == nil && !same.text.contains("the service has"))
        let other = try self.report(
            "{ limits: { running: 4 }, hosts: { a: { per_host: 1 } } }",
            service: self.layers("{ limits: { per_host: 2 }, hosts: { b: { per_host: 3 } } }"),
            running: 7
        )
        #expect(other.text.contains("  4      /f  (the service has 7, ferry limit)\n"), "\(other.text)")
        #expect(other.text.contains("  6      built in  (the service has 2, /f)\n"))
        #expect(other.text.contains("hosts.a.per_host              1      /f  (the service has null)\n"))
        #expect(other.text.contains("hosts.b.per_host              -      (the service has 3, /f)\n"))
        #expect(
            other.note?.hasPrefix(
                "the running service (process 42) has other settings for limits.running, limits.per_host,"
            ) == true
        )
    }

    @Test func `the user's file is read, a missing one is fine, an unreadable one is named`() throws {
        try withTemporaryFolder { folder in
            let environment = ["XDG_CONFIG_HOME": folder.file("config")]
            let missing = try Configuration.load(environment: environment)
            try folder.makeFolder("config/ferry")
            try folder.write("config/ferry/config.json5", "{ limits: { running: 3 } }")
            let loaded = try Configuration.load(environment: environment)
            #expect(loaded.engine.running == 3)
            #expect(loaded.changes(from: missing).map(\.key) == ["limits.running"])
            let path = folder.file("config/ferry/config.json5")
            try #require(unlink(path) == 0)
            try folder.makeFolder("config/ferry/config.json5")
            let error = #expect(throws: FerryError.self) { try Configuration.load(environment: environment) }
            #expect(error?.message == "\(path) cannot be read: Is a directory")
            #expect(error?.exitStatus == .usage)
        }
    }

    @Test func `an endless file is refused`() throws {
        try withTemporaryFolder { folder in
            try folder.makeFolder("config/ferry")
            let path = folder.file("config/ferry/config.json5")
            try #require(symlink("/dev/zero", path) == 0)
            let error = #expect(throws: FerryError.self) {
                try Configuration.load(environment: ["XDG_CONFIG_HOME": folder.file("config")])
            }
            #expect(error?.message == "\(path) is larger than 1 MiB")
        }
    }
}
