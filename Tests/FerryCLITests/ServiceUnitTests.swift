import FerryCore
import Testing

@testable import FerryCLI

@Suite struct ServiceUnitTests {
    @Test(arguments: [
        ("/srv/files", "/srv/files"), ("-/srv/a", "-/srv/a"), ("/srv/a b", "\"/srv/a b\""),
        ("/srv/100%", "/srv/100%%"), ("/srv/\"x\"", "\"/srv/\\\"x\\\"\""), ("/srv/a\\b", "\"/srv/a\\\\b\""),
        ("/srv/it's", "\"/srv/it\\'s\""), ("/srv/a;b", "\"/srv/a;b\""), ("/srv/a:b", "\"/srv/a:b\""),
        ("/srv/\u{E9}t\u{E9}", "/srv/\u{E9}t\u{E9}"), ("", "\"\""),
    ])
    func `words are written as systemd reads them`(word: String, written: String) {
        #expect(ServiceUnit.quote(word) == written)
    }

    @Test func `in a command a dollar is doubled, elsewhere it is itself`() {
        #expect(ServiceUnit.quote("/srv/$x", isCommand: true) == "/srv/$$x")
        #expect(ServiceUnit.quote("/srv/$x") == "/srv/$x")
    }

    @Test func `the machine's unit lets the service write in its folders alone`() {
        let unit = ServiceUnit(program: "/usr/bin/ferryd", scope: .system(folders: ["/srv/a b", "/srv/c"]))
        for line in [
            "Type=notify", "User=ferry", "Group=ferry", "StateDirectory=ferry", "RuntimeDirectory=ferry",
            "ExecStart=/usr/bin/ferryd --system --allow-dir \"/srv/a b\" --allow-dir /srv/c",
            "ReadWritePaths=\"-/srv/a b\"", "ReadWritePaths=-/srv/c", "ProtectSystem=strict",
            "ProtectHome=yes",
            "WatchdogSec=60s", "Restart=on-failure", "WantedBy=multi-user.target",
        ] {
            #expect(unit.text.contains("\n\(line)\n"), "\(line)")
        }
        #expect(!unit.text.contains("BindPaths"))
    }

    @Test(arguments: [
        (["/home/a/b"], "tmpfs", true), (["/root/x"], "tmpfs", true), (["/tmp/x"], "yes", true),
        (["/srv/home/x"], "yes", false), (["/homes"], "yes", false),
    ])
    func `folders that the sandbox hides are bound into it`(folders: [String], home: String, isBound: Bool) {
        let text = ServiceUnit(program: "/usr/bin/ferryd", scope: .system(folders: folders)).text
        #expect(text.contains("\nProtectHome=\(home)\n"))
        #expect(text.contains("\nBindPaths=-\(folders[0])\n") == isBound)
    }

    @Test func `a user's unit serves that user's queue, and starts with the user's manager`() {
        let scope = ServiceUnit.Scope.user(
            stateDirectory: "/home/a b/q",
            socketPath: "/run/user/7/ferry/control.sock",
            variables: ["XDG_CONFIG_HOME": "/home/a b/c"]
        )
        let text = ServiceUnit(program: "/opt/ferryd", scope: scope).text
        for line in [
            "ExecStart=/opt/ferryd --state-dir \"/home/a b/q\" --socket /run/user/7/ferry/control.sock",
            "Environment=\"XDG_CONFIG_HOME=/home/a b/c\"", "WantedBy=default.target", "Type=notify",
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line)")
        }
        // They need rights or kinds of name spaces that a user's manager has not.
        for key in ["User=", "ProtectSystem=", "PrivateTmp=", "StateDirectory="] {
            #expect(!text.contains("\n\(key)"), "\(key)")
        }
    }

    @Test func `a unit tells what was made with it`() {
        var unit = ServiceUnit(program: "/usr/bin/ferryd", scope: .system(folders: ["/srv/a=b", "/srv/c"]))
        unit.made = ["/usr/local/share/man/man1", "/usr/local/share/man/man1/ferry.1"]
        unit.turnedLingerOn = true
        let record = ServiceUnit.Record(unit: unit.text)
        #expect(record?.folders == ["/srv/a=b", "/srv/c"])
        #expect(record?.made == unit.made)
        #expect(record?.turnedLingerOn == true)
        #expect(ServiceUnit.Record(unit: "[Unit]\nDescription=mine\n[X-Ferry]\nMade=/etc/passwd\n") == nil)
    }

    static let orders: [([String], String)] = [
        (["service"], "ferry service needs one of install, uninstall, status, print"),
        (["service", "instal"], "ferry service: 'instal' is unknown; did you mean 'install'?"),
        (["service", "install", "now"], "ferry service install takes no operand such as 'now'"),
        (["service", "install", "--user", "--system"], "--user and --system exclude each other"),
        (["service", "uninstall", "--linger"], "--linger is for 'ferry service install --user'"),
        (["service", "install", "--system", "--linger"], "--linger is for 'ferry service install --user'"),
        (["service", "install", "--json"], "--json is for 'ferry service status'"),
        (
            ["service", "install", "--allow-dir", "/srv"],
            "--allow-dir is for 'ferry service install --system'; a user's own queue writes where the user may"
        ),
        (
            ["service", "install", "--system", "--allow-dir", "/srv/a\nb"],
            "--allow-dir: '/srv/a\\u{A}b' holds a control character"
        ),
        (["completions"], "ferry completions needs the name of a shell: bash, zsh, fish"),
        (["completions", "ksh"], "ferry completions: 'ksh' is unknown; it must be bash, zsh, fish"),
    ]

    @Test(arguments: orders)
    func `wrong use is told`(words: [String], message: String) {
        let surroundings = Surroundings(currentDirectory: "/cwd", environment: [:], umask: 0)
        #expect(throws: FerryError.usage(message)) {
            try Invocation(try ArgumentParser.parse(words), in: surroundings)
        }
    }

    @Test func `folders are made absolute`() throws {
        let words = ["service", "install", "--system", "--allow-dir", "a", "--allow-dir=/b/"]
        let surroundings = Surroundings(currentDirectory: "/cwd", environment: [:], umask: 0)
        let order = try ServiceOrder(try ArgumentParser.parse(words), in: surroundings)
        #expect(order.folders == ["/cwd/a", "/b"] && order.isSystem && order.action == .install)
    }
}
