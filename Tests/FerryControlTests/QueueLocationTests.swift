import FerryCore
import Glibc
import Testing

@testable import FerryControl

@Suite struct QueueLocationTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var option: String?
        var system = false
        var environment: [String: String] = [:]
        let folder: String
        let socket: String

        var testDescription: String { "\(self.option ?? "-") \(self.environment)" }
    }

    static let cases = [
        Case(system: true, folder: "/var/lib/ferry", socket: "/run/ferry/control.sock"),
        Case(
            system: true,
            environment: ["FERRY_STATE_DIR": "/d", "HOME": "/h"],
            folder: "/var/lib/ferry",
            socket: "/run/ferry/control.sock"
        ),
        Case(option: "/d", environment: ["XDG_RUNTIME_DIR": "/r"], folder: "/d", socket: "/d/control.sock"),
        Case(option: "/d", environment: ["FERRY_STATE_DIR": "/e"], folder: "/d", socket: "/d/control.sock"),
        Case(option: "d/e/", folder: "/cwd/d/e", socket: "/cwd/d/e/control.sock"),
        Case(option: "./d//e/.", folder: "/cwd/d/e", socket: "/cwd/d/e/control.sock"),
        Case(option: "../d", folder: "/cwd/../d", socket: "/cwd/../d/control.sock"),
        Case(option: "/", folder: "/", socket: "/control.sock"),
        Case(
            environment: ["FERRY_STATE_DIR": "/e", "XDG_RUNTIME_DIR": "/r", "HOME": "/h"],
            folder: "/e",
            socket: "/e/control.sock"
        ),
        Case(environment: ["FERRY_STATE_DIR": "e"], folder: "/cwd/e", socket: "/cwd/e/control.sock"),
        Case(
            environment: ["XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r/", "HOME": "/h"],
            folder: "/s/ferry",
            socket: "/r/ferry/control.sock"
        ),
        Case(
            environment: ["XDG_RUNTIME_DIR": "/r", "HOME": "/h"],
            folder: "/h/.local/state/ferry",
            socket: "/r/ferry/control.sock"
        ),
        Case(
            environment: ["HOME": "/h"],
            folder: "/h/.local/state/ferry",
            socket: "/h/.local/state/ferry/control.sock"
        ),
        Case(
            environment: ["FERRY_STATE_DIR": "", "XDG_STATE_HOME": "", "XDG_RUNTIME_DIR": "", "HOME": "/h"],
            folder: "/h/.local/state/ferry",
            socket: "/h/.local/state/ferry/control.sock"
        ),
        Case(
            environment: ["XDG_STATE_HOME": "s", "XDG_RUNTIME_DIR": "r", "HOME": "/h"],
            folder: "/h/.local/state/ferry",
            socket: "/h/.local/state/ferry/control.sock"
        ),
    ]

    @Test(arguments: cases)
    func `options and environment name a queue`(item: Case) throws {
        let location = try QueueLocation.resolve(
            stateDirectory: item.option,
            system: item.system,
            environment: item.environment,
            currentDirectory: "/cwd"
        )
        #expect(location.stateDirectory == item.folder)
        #expect(location.socketPath == item.socket)
        #expect(location.isSystem == item.system)
    }

    @Test func `without HOME the password file names the home folder`() throws {
        let location = try QueueLocation.resolve(
            stateDirectory: nil,
            system: false,
            environment: [:],
            currentDirectory: "/"
        )
        let home = try #require(getpwuid(getuid())?.pointee.pw_dir)
        #expect(location.stateDirectory == String(cString: home) + "/.local/state/ferry")
    }

    @Test func `without XDG_RUNTIME_DIR a service is found by the socket in the usual place`() throws {
        let runtime = try Folder()
        func socketPath(_ environment: [String: String]) throws -> String {
            try QueueLocation.resolve(
                stateDirectory: nil,
                system: false,
                environment: environment.merging(["HOME": "/h"]) { $1 },
                currentDirectory: "/",
                runtimeDirectory: runtime.path
            ).socketPath
        }
        #expect(try socketPath([:]) == "/h/.local/state/ferry/control.sock")
        try #require(mkdir(runtime.path + "/ferry", 0o700) == 0)
        let usual = runtime.path + "/ferry/control.sock"
        defer {
            unlink(usual)
            rmdir(runtime.path + "/ferry")
        }
        let descriptor = UnixSocket.make()
        defer { close(descriptor) }
        try #require(UnixSocket.bind(descriptor, to: usual) == 0)
        #expect(try socketPath([:]) == usual)
        #expect(try socketPath(["XDG_RUNTIME_DIR": "/r"]) == "/r/ferry/control.sock")
        #expect(try socketPath(["FERRY_STATE_DIR": "/q"]) == "/q/control.sock")
    }

    @Test func `a path of 107 bytes fits a socket, and one more is refused with a way out`() throws {
        func resolve(_ count: Int) throws(FerryError) -> QueueLocation {
            let folder = "/" + String(repeating: "d", count: count - 1 - "/control.sock".utf8.count)
            return try QueueLocation.resolve(
                stateDirectory: folder,
                system: false,
                environment: [:],
                currentDirectory: "/"
            )
        }
        #expect(try resolve(107).socketPath.utf8.count == 107)
        let error = try #require(throws: FerryError.self) { try resolve(108) }
        #expect(error.exitStatus == .usage)
        for word in ["108", "107", "--state-dir", "control.sock"] { #expect(error.message.contains(word)) }
    }

    @Test(arguments: [("", false), ("/d", true)])
    func `an empty folder and two queues at once are wrong use`(option: String, system: Bool) {
        let error = #expect(throws: FerryError.self) {
            try QueueLocation.resolve(
                stateDirectory: option,
                system: system,
                environment: [:],
                currentDirectory: "/"
            )
        }
        #expect(error?.exitStatus == .usage)
    }
}
