import Dispatch
import FerryCore
import Glibc
import Synchronization
import Testing

@testable import FerryControl

@Suite(.timeLimit(.minutes(5))) struct ServerTests {
    @Test func `requests of one client are handled one after the other, in order`() async throws {
        let running = Mutex(0)
        let handler = Recorder { request, _ async throws(FerryError) in
            running.withLock { $0 += 1 }
            await Task.yield()
            let count = running.withLock { count in
                defer { count -= 1 }
                return count
            }
            if case .show(let job) = request, count == 1 { return .job(bareJob(job)) }
            return .done
        }
        try await withServer(handler) { _, folder in
            let client = try RawClient(folder)
            let lines = try (1...50).map { number in
                let request = ControlRequest.show(job: JobID(rawValue: Int64(number)))
                return try ControlJSON.encode(RequestLine(id: number, request: request)) + [10]
            }
            try client.send(Array(lines.joined()))
            for number in 1...50 {
                let job = bareJob(JobID(rawValue: Int64(number)))
                #expect(try client.line() == ServiceLine(id: number, response: .job(job)))
            }
        }
    }

    @Test func `a request that takes long holds up no other client`() async throws {
        let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        let handler = Recorder { request, _ async throws(FerryError) in
            if request == .attachAll { for await _ in gate { break } }
            return .done
        }
        try await withServer(handler) { server, folder in
            let (slow, quick) = (try RawClient(folder), try RawClient(folder))
            try slow.send(1, .attachAll)
            try slow.send(2, .handOver)
            try quick.send(1, .handOver)
            #expect(try quick.line() == ServiceLine(id: 1, response: .done))
            #expect(server.clientCount == 2)
            opener.yield()
            #expect(try slow.line() == ServiceLine(id: 1, response: .done))
            #expect(try slow.line() == ServiceLine(id: 2, response: .done))
        }
    }

    @Test func `a client whose request takes long is shown that the service lives`() async throws {
        let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        let handler = Recorder { _, _ async throws(FerryError) in
            for await _ in gate { break }
            return .done
        }
        let limits = ControlServer.Limits(signOfLife: .milliseconds(100))
        try await withServer(handler, limits: limits) { _, folder in
            let client = try RawClient(folder)
            try client.send(1, .counts)
            for _ in 0..<3 {
                #expect(UnixSocket.wait(client.descriptor, for: POLLIN, until: .now + .seconds(30)))
                var byte: UInt8 = 0
                #expect(recv(client.descriptor, &byte, 1, 0) == 1)
                #expect(byte == UInt8(ascii: "\n"))
            }
            opener.yield()
            #expect(try client.line() == ServiceLine(id: 1, response: .done))
        }
    }

    @Test func `a failure travels with its code and exit status`() async throws {
        let error = FerryError(.database, "the database is damaged", exitStatus: .database)
        let handler = Recorder { _, _ async throws(FerryError) in throw error }
        try await withServer(handler) { _, folder in
            let client = try RawClient(folder)
            try client.send(4, .counts)
            #expect(try client.line() == ServiceLine(id: 4, error: ErrorDocument(error)))
        }
    }

    @Test func `lines that come in bits are put together`() async throws {
        try await withServer { _, folder in
            let client = try RawClient(folder, greets: false)
            let request = try ControlJSON.encode(RequestLine(id: 1, request: .counts)) + [10]
            for byte in try hello() + request { try client.send([byte]) }
            #expect(try client.line()?.hello?.version == "9.9")
            #expect(try client.line() == ServiceLine(id: 1, response: .done))
        }
    }

    @Test(arguments: ["what?\n", "{}\n", "{\"id\":1,\"request\":{\"dance\":{}}}\n", "\u{0}\u{1}\n", "[[[[\n"])
    func `a line that is no request is answered with an error and the end`(garbage: String) async throws {
        let handler = Recorder()
        try await withServer(handler) { _, folder in
            let client = try RawClient(folder)
            try client.send(garbage)
            let line = try #require(try client.line())
            #expect(line.id == nil)
            #expect(line.error?.exitStatus == .usage)
            #expect(try client.line() == nil)
            _ = try handler.nextLeft()
        }
    }

    @Test func `a greeting that is none ends the connection, and nobody has joined`() async throws {
        let handler = Recorder()
        try await withServer(handler) { _, folder in
            let client = try RawClient(folder, greets: false)
            try client.send("GET / HTTP/1.1\r\n")
            #expect(try client.line()?.hello != nil)
            #expect(try client.line()?.error?.code == .usage)
            #expect(try client.line() == nil)
            let next = try RawClient(folder)
            try next.send(1, .counts)
            _ = try next.line()
            #expect(try handler.nextJoined() == ClientID(rawValue: 2))
        }
    }

    @Test func `a client of another protocol is told both versions`() async throws {
        try await withServer { _, folder in
            let client = try RawClient(folder, greets: false)
            try client.send(hello(protocolVersion: 99))
            #expect(try client.line()?.hello?.protocolVersion == controlProtocolVersion)
            let error = try #require(try client.line()?.error)
            #expect(error.code == .version)
            #expect(error.exitStatus == .versionMismatch)
            #expect(error.message.contains("protocol 99") && error.message.contains("Ferry 9.9"))
            #expect(try client.line() == nil)
        }
    }

    @Test(arguments: [1_001, 100_000])
    func `a line beyond the limit is refused`(count: Int) async throws {
        try await withServer(limits: ControlServer.Limits(lineBytes: 1_000)) { _, folder in
            let client = try RawClient(folder)
            try client.send(String(repeating: "x", count: count))
            let error = try #require(try client.line()?.error)
            #expect(error.message.contains("1000"))
            #expect(try client.line() == nil)
        }
    }

    @Test func `notifications reach those who are named, in order`() async throws {
        let handler = Recorder()
        try await withServer(handler) { server, folder in
            let clients = try (0..<3).map { _ in try RawClient(folder) }
            let ids = try clients.map { _ in try handler.nextJoined() }.sorted { $0.rawValue < $1.rawValue }
            for seq in 1...100 { server.notify([ids[0], ids[2], ClientID(rawValue: 77)], event(Int64(seq))) }
            server.notify(ids[1], progress(5))
            for seq in 1...100 {
                #expect(try clients[0].line()?.notification == event(Int64(seq)))
                #expect(try clients[2].line()?.notification == event(Int64(seq)))
            }
            #expect(try clients[1].line()?.notification == progress(5))
        }
    }

    @Test func `a reader that is too slow is told so, and the others get all`() async throws {
        let handler = Recorder()
        try await withServer(handler, limits: ControlServer.Limits(outboxBytes: 100_000)) { server, folder in
            let slow = try RawClient(folder)
            let slowID = try handler.nextJoined()
            let quick = try RawClient(folder)
            let quickID = try handler.nextJoined()
            for seq in 1...200 {
                server.notify([slowID, quickID], event(Int64(seq), bytes: 10_000))
                #expect(try quick.line()?.notification == event(Int64(seq), bytes: 10_000))
            }
            var seqs: [Int64] = []
            while let notification = try slow.line()?.notification, notification != .overrun {
                guard case .event(let event, _) = notification else { continue }
                seqs.append(event.seq)
            }
            #expect(seqs == (0..<seqs.count).map { Int64($0 + 1) })
            #expect(seqs.count < 200)
            // It asks how things stand, and is told of what happens from then on.
            try slow.send(1, .counts)
            while let line = try slow.line(), line != ServiceLine(id: 1, response: .done) {}
            server.notify(slowID, event(201))
            #expect(try slow.line()?.notification == event(201))
        }
    }

    @Test func `connections that never greet are closed, and others stay`() async throws {
        let handler = Recorder()
        let limits = ControlServer.Limits(greeting: .milliseconds(50))
        try await withServer(handler, limits: limits) { server, folder in
            let client = try RawClient(folder)
            _ = try handler.nextJoined()
            let silent = try (0..<5).map { _ in try RawClient(folder, greets: false) }
            try silent[0].send("{\"half a")
            for connection in silent {
                #expect(try connection.line()?.hello != nil)
                #expect(try connection.line() == nil)
                _ = try handler.nextLeft()
            }
            #expect(server.clientCount == 1)
            try client.send(1, .counts)
            #expect(try client.line() == ServiceLine(id: 1, response: .done))
        }
    }

    @Test func `beyond the number of connections silent ones give way, others do not`() async throws {
        try await withServer(limits: ControlServer.Limits(connections: 4)) { server, folder in
            let clients = try (0..<3).map { _ in try RawClient(folder) }
            let silent = try RawClient(folder, greets: false)
            #expect(try silent.line()?.hello != nil)
            let fourth = try RawClient(folder)
            #expect(try silent.line() == nil)
            let fifth = try RawClient(folder, greets: false)
            let error = try #require(try fifth.line()?.error)
            #expect(error.exitStatus == .noService)
            #expect(try fifth.line() == nil)
            for client in clients + [fourth] {
                try client.send(1, .counts)
                #expect(try client.line() == ServiceLine(id: 1, response: .done))
            }
            #expect(server.clientCount == 4)
        }
    }

    @Test func `half lines of many clients take a bounded amount of memory`() async throws {
        try await withServer(limits: ControlServer.Limits(inputBytes: 1_000_000)) { _, folder in
            let half = [UInt8](repeating: UInt8(ascii: "x"), count: 400_000)
            let clients = try (0..<3).map { _ in try RawClient(folder) }
            for client in clients { client.offer(half) }
            let whole = try RawClient(folder)
            try whole.send(1, .counts)
            #expect(try whole.line() == ServiceLine(id: 1, response: .done))
            let refused = try clients.filter { client in
                // Who was not refused finishes the line, and is told that it means nothing.
                client.offer([10])
                return try client.line()?.error?.code == .busy
            }
            #expect(refused.count == 1)
        }
    }

    @Test func `noise on hundreds of connections never ends the server`() async throws {
        try await withServer { _, folder in
            var state: UInt64 = 7
            for number in 0..<200 {
                let noise = (0..<number * 20).map { _ in
                    state = state &* 6_364_136_223_846_793_005 &+ 1
                    return UInt8(truncatingIfNeeded: state >> 56)
                }
                try RawClient(folder, greets: number % 2 == 0).offer(noise + [10])
            }
            let client = try RawClient(folder)
            try client.send(1, .counts)
            #expect(try client.line() == ServiceLine(id: 1, response: .done))
        }
    }

    @Test func `a slow reader of progress keeps its place and gets the latest`() async throws {
        let handler = Recorder()
        try await withServer(handler, limits: ControlServer.Limits(outboxBytes: 1_000)) { server, folder in
            let client = try RawClient(folder)
            let id = try handler.nextJoined()
            for number in 1...5_000 { server.notify(id, progress(Int64(number))) }
            server.notify(id, event(1))
            var last: ControlNotification?
            while let notification = try client.line()?.notification, notification != event(1) {
                last = notification
            }
            #expect(last == progress(5_000))
        }
    }

    @Test func `an answer may be larger than what events may be`() async throws {
        let jobs = (1...2_000).map { bareJob(JobID(rawValue: $0)) }
        let handler = Recorder { _, _ async throws(FerryError) in .subscribed(jobs) }
        try await withServer(handler, limits: ControlServer.Limits(outboxBytes: 1_000)) { _, folder in
            let client = try RawClient(folder)
            try client.send(1, .subscribe(jobs: nil, progress: false))
            #expect(try client.line() == ServiceLine(id: 1, response: .subscribed(jobs)))
        }
    }

    @Test func `a client that ends its side still gets its answers`() async throws {
        let handler = Recorder()
        try await withServer(handler) { _, folder in
            let client = try RawClient(folder)
            try client.send(1, .counts)
            try client.send(2, .attachAll)
            shutdown(client.descriptor, Int32(SHUT_WR))
            #expect(try client.line() == ServiceLine(id: 1, response: .done))
            #expect(try client.line() == ServiceLine(id: 2, response: .done))
            #expect(try client.line() == nil)
            _ = try handler.nextLeft()
        }
    }

    @Test func `what a client sent before it went is handled, and then it has left`() async throws {
        let handler = Recorder()
        try await withServer(handler) { server, folder in
            func sendAndGo() throws {
                let client = try RawClient(folder)
                for number in 1...5 { try client.send(number, .show(job: JobID(rawValue: Int64(number)))) }
            }
            try sendAndGo()
            let id = try handler.nextJoined()
            for number in 1...5 {
                #expect(try handler.calls.take() == .request(.show(job: JobID(rawValue: Int64(number))), id))
            }
            #expect(try handler.calls.take() == .left(id))
            #expect(server.clientCount == 0)
        }
    }

    @Test func `a subscriber that goes with notifications unread has left`() async throws {
        let handler = Recorder()
        try await withServer(handler) { server, folder in
            func connect() throws -> RawClient { try RawClient(folder) }
            var client: RawClient? = try connect()
            let id = try handler.nextJoined()
            for seq in 1...500 { server.notify(id, event(Int64(seq), bytes: 5_000)) }
            #expect(try client?.line() != nil)
            client = nil
            #expect(try handler.nextLeft() == id)
        }
    }

    @Test func `a stop sends what is queued, ends all connections and removes the socket`() async throws {
        let handler = Recorder()
        try await withServer(handler) { server, folder in
            let client = try RawClient(folder)
            let id = try handler.nextJoined()
            let silent = try RawClient(folder, greets: false)
            for seq in 1...20 { server.notify(id, event(Int64(seq))) }
            server.stop()
            for seq in 1...20 { #expect(try client.line()?.notification == event(Int64(seq))) }
            #expect(try client.line() == nil)
            #expect(try silent.line()?.hello != nil)
            #expect(try silent.line() == nil)
            #expect(folder.mode("s") == nil)
            #expect(server.clientCount == 0)
            #expect(try [handler.nextLeft(), handler.nextLeft()].contains(id))
            server.stop()
        }
    }

    @Test func `a stop does not wait for a client that does not read`() async throws {
        let handler = Recorder()
        try await withServer(handler, limits: ControlServer.Limits(drain: .milliseconds(50))) {
            server,
            folder in
            let client = try RawClient(folder)
            let id = try handler.nextJoined()
            for seq in 1...100 { server.notify(id, event(Int64(seq), bytes: 50_000)) }
            server.stop()
            while try client.bytes() != nil {}
        }
    }

    @Test func `a request that has begun may end during a stop, the next one is told to go elsewhere`()
        async throws
    {
        let stopping = DispatchSemaphore(value: 0)
        let handler = Recorder { _, _ async throws(FerryError) in
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    stopping.wait()
                    continuation.resume()
                }
            }
            return .done
        }
        try await withServer(handler, limits: ControlServer.Limits(drain: .seconds(30))) { server, folder in
            let client = try RawClient(folder)
            let id = try handler.nextJoined()
            try client.send(1, .counts)
            try client.send(2, .counts)
            #expect(try handler.calls.take() == .request(.counts, id))
            server.shared.withLock { $0.isStopping = true }
            stopping.signal()
            server.stop()
            #expect(try client.line() == ServiceLine(id: 1, response: .done))
            let refusal = try client.line()
            #expect(refusal?.id == 2)
            #expect(refusal?.error?.code == .stopping)
            #expect(try client.line() == nil)
        }
    }

    @Test func `a stop leaves a file alone that has taken the place of the socket`() async throws {
        try await withServer { server, folder in
            unlink(folder.path + "/s")
            try folder.write("mine", to: "s")
            server.stop()
            #expect(try folder.read("s") == "mine")
        }
    }

    @Test func `without descriptors left the server waits, idle, and goes on when there are some`() async {
        await #expect(processExitsWith: .success) {
            try await withServer { _, folder in
                let client = try RawClient(folder, connects: false)
                var limit = rlimit(rlim_cur: 64, rlim_max: 64)
                try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
                var fillers: [Int32] = []
                while case let filler = dup(0), filler >= 0 { fillers.append(filler) }
                try client.connect(folder)
                let before = clock()
                #expect(!UnixSocket.wait(client.descriptor, for: POLLIN, until: .now + .milliseconds(1_500)))
                #expect(clock() - before < 600_000, "microseconds of processor time while it waits")
                for filler in fillers { close(filler) }
                #expect(try client.line()?.hello != nil)
            }
        }
    }

    @Test func `a server that was never started stops too`() throws {
        let folder = try Folder()
        let hello = Hello(protocolVersion: 1, version: "1", pid: 1)
        let server = try ControlServer(location: folder.location, hello: hello, handler: Recorder())
        server.stop()
        server.start()
        #expect(folder.mode("s") == nil)
    }
}

@Suite struct ListenerTests {
    @Test(arguments: [(false, 0o600), (true, 0o660)] as [(Bool, mode_t)])
    func `only those may connect whom the mode names`(isSystem: Bool, mode: mode_t) throws {
        let folder = try Folder()
        let path = folder.path + "/run/s"
        let location = try QueueLocation(stateDirectory: folder.path, socketPath: path, isSystem: isSystem)
        let listener = try ServerListener(location)
        #expect(folder.mode("run/s") == S_IFSOCK | mode)
        #expect(folder.mode("run") == S_IFDIR | (isSystem ? 0o750 : 0o700))
        listener.close()
        #expect(folder.mode("run/s") == nil)
    }

    @Test func `a socket that nobody answers on is replaced`() throws {
        let folder = try Folder()
        let dead = UnixSocket.make()
        #expect(try UnixSocket.bind(dead, to: folder.location.socketPath) == 0)
        close(dead)
        let listener = try ServerListener(folder.location)
        let probe = UnixSocket.make()
        defer { close(probe) }
        #expect(try UnixSocket.connect(probe, to: folder.location.socketPath) == 0)
        listener.close()
    }

    @Test func `a service that answers is not pushed away`() throws {
        let folder = try Folder()
        let listener = try ServerListener(folder.location)
        let error = #expect(throws: FerryError.self) { try ServerListener(folder.location) }
        #expect(error?.code == .busy)
        #expect(error?.exitStatus == .noService)
        #expect(folder.mode("s") != nil)
        listener.close()
    }

    @Test func `a file, a link or a folder at the path is left alone`() throws {
        let folder = try Folder()
        func refusal() throws -> FerryError {
            try #require(throws: FerryError.self) { try ServerListener(folder.location) }
        }
        try folder.write("mine", to: "s")
        #expect(try refusal().code == .localIO)
        #expect(try folder.read("s") == "mine")
        unlink(folder.path + "/s")
        symlink("/nowhere", folder.path + "/s")
        #expect(try refusal().code == .localIO)
        unlink(folder.path + "/s")
        mkdir(folder.path + "/s", 0o700)
        #expect(try refusal().message.contains(folder.path + "/s"))
        rmdir(folder.path + "/s")
    }

    @Test func `a folder that cannot be made is an error`() throws {
        let location = try QueueLocation(stateDirectory: "/", socketPath: "/dev/null/run/s")
        let error = #expect(throws: FerryError.self) { try ServerListener(location) }
        #expect(error?.code == .localIO)
    }
}

private func bareJob(_ id: JobID) -> JobDocument {
    let time = Timestamp(milliseconds: 0)
    return JobDocument(
        id: id,
        kind: .download,
        state: .queued,
        url: "https://a/",
        priority: 0,
        createdAt: time
    )
}
