import Dispatch
import FerryCore
import Glibc
import Testing

@testable import FerryControl

@Suite(.timeLimit(.minutes(5))) struct ClientTests {
    @Test func `a call is answered, and what comes meanwhile is kept in order`() async throws {
        let handler = Recorder { request, _ async throws(FerryError) in
            if request == .handOver { throw FerryError(.wrongState, "a daemon stays", exitStatus: .failed) }
            return .done
        }
        try await withServer(handler) { server, folder in
            let client = try ServiceClient.connect(folder.location, start: .never)
            #expect(client.hello.stateDir == folder.path)
            #expect(client.hello.onDemand == true)
            let id = try handler.nextJoined()
            server.notify(id, event(1))
            let sent = try client.send(.counts)
            #expect(try client.call(.attachAll) == .done)
            let error = #expect(throws: FerryError.self) { try client.call(.handOver) }
            #expect(error == FerryError(.wrongState, "a daemon stays", exitStatus: .failed))
            #expect(client.hasIncoming)
            #expect(try client.receive() == [.notification(event(1)), .response(sent, .done)])
            #expect(!client.hasIncoming)
            #expect(try client.receive().isEmpty)
            server.stop()
            _ = UnixSocket.wait(client.fileDescriptor, for: POLLIN, until: .now + .seconds(30))
            #expect(try client.receive() == [.closed])
            #expect(client.hasIncoming)
            #expect(throws: FerryError.self) { try client.call(.counts) }
        }
    }

    @Test func `poll tells when something comes`() async throws {
        let handler = Recorder()
        try await withServer(handler) { server, folder in
            let client = try ServiceClient.connect(folder.location, start: .never)
            let id = try handler.nextJoined()
            server.notify(id, event(1, bytes: 300_000))
            server.notify(id, event(2))
            var got: [ServiceClient.Incoming] = []
            while got.count < 2 {
                #expect(UnixSocket.wait(client.fileDescriptor, for: POLLIN, until: .now + .seconds(30)))
                got += try client.receive()
            }
            #expect(got == [.notification(event(1, bytes: 300_000)), .notification(event(2))])
            client.close()
            client.close()
            #expect(client.fileDescriptor == -1)
            #expect(try handler.nextLeft() == id)
            let error = #expect(throws: FerryError.self) { try client.call(.counts) }
            #expect(error?.code == .noService)
        }
    }

    @Test func `megabytes go out while notifications come in`() async throws {
        let handler = Recorder()
        try await withServer(handler) { server, folder in
            let client = try ServiceClient.connect(folder.location, start: .never)
            let id = try handler.nextJoined()
            for seq in 1...30 { server.notify(id, event(Int64(seq), bytes: 50_000)) }
            let url = "https://example.org/" + String(repeating: "x", count: 900)
            let requests = (1...4_000).map { JobRequest(url: url + "\($0)", directory: "/") }
            #expect(try client.call(.add(requests: requests, attach: false)) == .done)
            #expect(try handler.calls.take() == .request(.add(requests: requests, attach: false), id))
            var count = 0
            while count < 30 { count += try client.receive().count }
        }
    }

    @Test func `a request that is too large fails with the service's word`() async throws {
        try await withServer(limits: ControlServer.Limits(lineBytes: 1_000)) { _, folder in
            let client = try ServiceClient.connect(folder.location, start: .never)
            let url = String(repeating: "x", count: 5_000_000)
            let error = #expect(throws: FerryError.self) {
                try client.call(.add(requests: [JobRequest(url: url, directory: "/")], attach: false))
            }
            #expect(error?.message.contains("1000") == true)
        }
    }

    @Test func `a service of another protocol is named with both versions`() async throws {
        try await withServer(protocolVersion: 7) { _, folder in
            let error = try #require(throws: FerryError.self) {
                try ServiceClient.connect(folder.location, start: .never)
            }
            #expect(error.code == .version)
            #expect(error.exitStatus == .versionMismatch)
            #expect(error.message.contains("Ferry 9.9 (protocol 7)"))
            #expect(error.message.contains("Ferry \(ferryVersion) (protocol \(controlProtocolVersion))"))
        }
    }

    @Test func `without a service and without leave to start one there is a clear error`() throws {
        let folder = try Folder()
        let error = try #require(throws: FerryError.self) {
            try ServiceClient.connect(folder.location, start: .never)
        }
        #expect(error.code == .noService)
        #expect(error.exitStatus == .noService)
        #expect(error.message.contains(folder.path))
    }

    @Test func `the machine's service is never started by a command`() throws {
        let folder = try Folder()
        let location = try QueueLocation(
            stateDirectory: folder.path,
            socketPath: folder.path + "/s",
            isSystem: true
        )
        let launcher = ServiceLauncher(candidates: ["/bin/true"])
        let error = #expect(throws: FerryError.self) {
            try ServiceClient.connect(location, start: .ifNeeded(command: "add"), launcher: launcher)
        }
        #expect(error?.code == .noService)
        #expect(error?.message.contains("systemctl") == true)
    }

    @Test func `a service of another queue at the same socket is refused`() async throws {
        try await withServer { _, folder in
            let location = try QueueLocation(stateDirectory: "/", socketPath: folder.location.socketPath)
            let error = #expect(throws: FerryError.self) {
                try ServiceClient.connect(location, start: .never)
            }
            #expect(error?.message.contains(folder.path) == true)
        }
    }

    /// Serves one connection after the other on a raw socket, each with its script; then stops listening.
    private func withScripts(
        _ scripts: [@Sendable (RawClient) throws -> Void],
        patience: Duration = .seconds(30),
        _ body: @Sendable (Connector) throws -> Void
    ) async throws {
        let folder = try Folder()
        let listener = try ServerListener(folder.location)
        let ended = DispatchSemaphore(value: 0)
        DispatchQueue(label: "service").async {
            for script in scripts {
                guard UnixSocket.wait(listener.descriptor, for: POLLIN, until: .now + .seconds(30)) else {
                    break
                }
                try? script(RawClient(descriptor: UnixSocket.accept(listener.descriptor)))
            }
            ended.signal()
        }
        let connector = Connector(
            location: try folder.location,
            start: .never,
            launcher: ServiceLauncher(candidates: []),
            patience: patience
        )
        try await blocking {
            try body(connector)
            #expect(ended.wait(timeout: .now() + 30) == .success)
        }
        listener.close()
    }

    private static let greeting = Array(
        "{\"hello\":{\"protocol_version\":1,\"version\":\"1\",\"pid\":5}}\n".utf8
    )

    @Test func `a service on its way out is followed by the next one`() async throws {
        let stopping = FerryError(.stopping, "the service is stopping", exitStatus: .noService)
        try await withScripts([
            { _ in },
            { service in
                _ = try service.bytes()
                try service.send(ControlJSON.encode(ServiceLine(error: ErrorDocument(stopping))) + [10])
            },
            { service in
                try service.send(Self.greeting)
                _ = try service.bytes()
            },
        ]) { connector in
            let client = try connector.connect()
            #expect(client.hello.pid == 5)
        }
    }

    @Test func `an error instead of a greeting is the answer`() async throws {
        let broken = FerryError(.database, "the database is damaged", exitStatus: .database)
        try await withScripts([
            { service in
                try service.send(ControlJSON.encode(ServiceLine(error: ErrorDocument(broken))) + [10])
            }
        ]) { connector in
            let error = #expect(throws: FerryError.self) { try connector.connect() }
            #expect(error == broken)
        }
    }

    @Test(arguments: ["SSH-2.0-x\n", "{\"hello\":{}}\n", "{}\n"])
    func `something that is no service is recognised`(line: String) async throws {
        try await withScripts([{ try $0.send(line) }]) { connector in
            let error = #expect(throws: FerryError.self) { try connector.connect() }
            #expect(error?.exitStatus == .noService)
            #expect(error?.message.contains("not a Ferry service") == true)
        }
    }

    @Test func `a service that is silent, goes or talks nonsense ends a call`() async throws {
        let silence = DispatchSemaphore(value: 0)
        try await withScripts(
            [
                { _ in _ = silence.wait(timeout: .now() + 30) },
                { service in
                    try service.send(Self.greeting)
                    _ = silence.wait(timeout: .now() + 30)
                },
                { service in
                    try service.send(Self.greeting)
                    _ = try (service.bytes(), service.bytes())
                },
                { service in
                    try service.send(Self.greeting)
                    _ = try (service.bytes(), service.bytes())
                    try service.send("{\"id\":1,\"response\":{\"song\":{}}}\n")
                },
            ],
            patience: .milliseconds(200)
        ) { connector in
            let unanswered = #expect(throws: FerryError.self) { try connector.connect() }
            #expect(unanswered?.exitStatus == .noService)
            silence.signal()
            for word in ["does not answer", "closed", "understood"] {
                let client = try connector.connect()
                let error = #expect(throws: FerryError.self) { try client.call(.counts) }
                #expect(error?.exitStatus == .noService)
                #expect(error?.message.contains(word) == true)
                silence.signal()
            }
        }
    }
}
