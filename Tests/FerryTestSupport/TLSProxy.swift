/// A child process that speaks TLS to clients and plain HTTP to the scripted server.
///
/// A connection that the server closes ends with close_notify, without it if an urgent byte came before; one that
/// the server resets is reset.
final class TLSProxy: Sendable {
    let port: Int
    private let process: RunningTool

    init(certificates: TestCertificates, upstream: Int) throws {
        let python = ToolRunner(path: try findProgram("python3", package: "python3"))
        let process = try python.start(
            [
                Fixtures.supportFile("tls-proxy.py"), certificates.certificatePath, certificates.keyPath,
                "\(upstream)",
            ],
            input: .keptOpen
        )
        let line = process.output.waitBlocking(timeout: .seconds(30)) { output in
            output.lines(of: .stdout).first ?? (output.ending == nil ? nil : "")
        }
        guard let line, let port = Int(line) else {
            process.kill()
            throw TestSupportError("the TLS proxy did not start: \(process.output.value.text(of: .stderr))")
        }
        self.port = port
        self.process = process
    }

    func stop() {
        self.process.kill()
        _ = self.process.output.waitBlocking(timeout: .seconds(10)) { $0.ending }
    }
}
