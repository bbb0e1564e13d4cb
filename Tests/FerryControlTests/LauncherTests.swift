import FerryCore
import Glibc
import Testing

@testable import FerryControl

/// One at a time: a program that is being written cannot be run by a process that another test starts (ETXTBSY).
@Suite(.serialized, .timeLimit(.minutes(5))) struct LauncherTests {
    /// A program that stands for the service.
    private func launcher(_ folder: Folder, _ script: String, patience: Duration = .seconds(30)) throws
        -> ServiceLauncher
    {
        try folder.write("#!/bin/sh\n\(script)\n", to: "ferryd", mode: 0o700)
        return ServiceLauncher(candidates: ["/nowhere/ferryd", folder.path + "/ferryd"], patience: patience)
    }

    private func connect(_ folder: Folder, _ launcher: ServiceLauncher) throws -> ServiceClient {
        try ServiceClient.connect(folder.location, start: .ifNeeded(command: "add"), launcher: launcher)
    }

    /// A running server whose socket is out of sight until the script moves it back.
    private func withHiddenServer(_ body: @Sendable (Folder) throws -> Void) async throws {
        try await withServer { _, folder in
            #expect(rename(folder.path + "/s", folder.path + "/hidden") == 0)
            try body(folder)
        }
    }

    @Test func `a service that reports ready is connected to, and was started as documented`() async throws {
        try await withHiddenServer { folder in
            let launcher = try launcher(
                folder,
                """
                for argument; do echo "$argument"; done >"\(folder.path)/arguments"
                pwd >>"\(folder.path)/arguments"
                mv "\(folder.path)/hidden" "\(folder.path)/s"
                echo '{"ready":true}' >&3
                """
            )
            let client = try connect(folder, launcher)
            #expect(try client.call(.counts) == .done)
            let expected = [
                "--on-demand", "--status-fd", "3", "--state-dir", folder.path, "--socket", folder.path + "/s",
                "/",
            ]
            #expect(try folder.read("arguments") == expected.joined(separator: "\n") + "\n")
        }
    }

    @Test func `where another service owns the queue, that one is waited for`() async throws {
        try await withHiddenServer { folder in
            let launcher = try launcher(
                folder,
                """
                echo '{"code":"busy","message":"another service runs","exit_status":10}' >&3
                exec 3>&-
                mv "\(folder.path)/hidden" "\(folder.path)/s"
                """
            )
            let client = try connect(folder, launcher)
            #expect(try client.call(.counts) == .done)
        }
    }

    @Test func `what a service reports reaches the command with its exit status`() async throws {
        let folder = try Folder()
        let launcher = try launcher(
            folder,
            #"echo '{"code":"database","message":"the database is damaged","exit_status":12}' >&3"#
        )
        try await blocking {
            let error = #expect(throws: FerryError.self) { try connect(folder, launcher) }
            #expect(error == FerryError(.database, "the database is damaged", exitStatus: .database))
        }
    }

    @Test(arguments: ["exit 1", "kill -9 $$", "printf '{\"ready\":tr' >&3", "echo nonsense >&3"])
    func `a service that dies first is an error that names its log`(script: String) async throws {
        let folder = try Folder()
        let launcher = try launcher(folder, script)
        try await blocking {
            let error = try #require(throws: FerryError.self) { try connect(folder, launcher) }
            #expect(error.exitStatus == .noService)
            #expect(error.message == "ferryd ended before it was ready; see \(folder.path)/ferryd.log")
        }
    }

    @Test func `a service that says nothing is not waited for without end`() async throws {
        let folder = try Folder()
        let launcher = try launcher(folder, "exec sleep 2", patience: .milliseconds(100))
        try await blocking {
            let error = #expect(throws: FerryError.self) { try connect(folder, launcher) }
            #expect(error?.exitStatus == .noService)
        }
    }

    @Test func `a service that is ready and ends at once is not started for ever`() async throws {
        let folder = try Folder()
        let launcher = try launcher(
            folder,
            "echo x >>\"\(folder.path)/arguments\"; echo '{\"ready\":true}' >&3"
        )
        try await blocking {
            let error = #expect(throws: FerryError.self) { try connect(folder, launcher) }
            #expect(error?.exitStatus == .noService)
            let starts = try folder.read("arguments")
            #expect(starts == "x\nx\nx\nx\nx\n")
        }
    }

    @Test func `a missing program is an error that names both places`() throws {
        let folder = try Folder()
        let launcher = ServiceLauncher(candidates: ServiceLauncher.candidates(executable: "/opt/x/bin/ferry"))
        let error = try #require(throws: FerryError.self) { try connect(folder, launcher) }
        #expect(error.exitStatus == .noService)
        #expect(error.message.contains("/opt/x/bin/ferryd and /opt/x/libexec/ferry/ferryd"))
    }

    @Test func `a program that cannot be run is an error`() throws {
        let folder = try Folder()
        try folder.write("#!/nowhere/sh\n", to: "ferryd", mode: 0o700)
        let launcher = ServiceLauncher(candidates: [folder.path + "/ferryd"])
        let error = try #require(throws: FerryError.self) { try launcher.start(folder.location) }
        #expect(error.message.contains("cannot run \(folder.path)/ferryd"))
    }

    @Test func `the standard places are beside the running program and in libexec`() throws {
        let candidates = ServiceLauncher.standard.candidates
        #expect(candidates.count == 2)
        #expect(candidates[0].hasPrefix("/") && candidates[0].hasSuffix("/ferryd"))
        #expect(candidates[1].hasSuffix("/libexec/ferry/ferryd"))
        #expect(ServiceLauncher.candidates(executable: "/ferry") == ["/ferryd", "/libexec/ferry/ferryd"])
    }
}
