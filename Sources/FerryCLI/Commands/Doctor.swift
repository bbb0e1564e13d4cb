import FerryControl
import FerryCore
import Glibc

extension RunningCommand {
    /// `ferry doctor`: looks for what is wrong with the queue, the service and the machine.
    func doctor(repair: Bool, startOver: Bool) throws(FerryError) -> ExitStatus {
        let location = try self.location()
        var doctor = Doctor(location: location, repair: repair, startOver: startOver)
        if startOver {
            self.console.note("if the database is damaged, the jobs that cannot be read any more are lost")
        }
        doctor.examine(environment: self.surroundings.environment)
        let report = CheckReport(
            type: "doctor",
            stateDir: location.stateDirectory,
            findings: doctor.findings,
            damaged: doctor.isDamaged
        )
        if self.console.json {
            try self.console.print(json: report)
        } else {
            for finding in report.findings where !self.console.quiet || finding.level == .problem {
                self.console.out.line(finding.line.shown)
            }
        }
        return report.exitStatus
    }

    /// `ferry verify`: computes the digest of a finished file and compares it.
    func verify(_ subject: VerifyOrder.Subject, _ wanted: Checksum) throws(FerryError) -> ExitStatus {
        let path: String
        switch subject {
        case .file(let file):
            path = file
        case .job(let id):
            guard case .job(let job) = try self.session().call(.show(job: id)) else {
                throw Session.unexpected()
            }
            guard job.state == .completed, let file = job.path else {
                throw FerryError(
                    .wrongState,
                    "job \(id) is \(job.state.rawValue); only the file of a completed job can be verified",
                    exitStatus: .failed
                )
            }
            path = file
        }
        let result = try ServiceTool.run(["--digest", wanted.algorithm.rawValue, path])
        guard result.status == 0, let actual = Checksum(text: result.message) else {
            throw FerryError(.localIO, result.message, exitStatus: .failed)
        }
        let matches = actual == wanted
        if self.console.json {
            try self.console.print(json: VerifyDocument(path: path, expected: wanted, actual: actual))
        } else if matches {
            self.console.out.line("\(path.shown): \(actual.text)")
        } else {
            self.console.error("\(path.shown) has \(actual.text), not \(wanted.hex)")
        }
        return matches ? .success : .failed
    }
}

/// What `ferry verify` is to compare.
struct VerifyOrder {
    /// A job's file, or any file.
    enum Subject: Sendable, Equatable {
        case job(JobID)
        case file(String)
    }
}

/// `ferry verify --json`.
struct VerifyDocument: Encodable {
    var type = "verify"
    var path: String
    var algorithm: String
    var expected: String
    var actual: String
    var matches: Bool

    init(path: String, expected: Checksum, actual: Checksum) {
        self.path = path
        self.algorithm = expected.algorithm.rawValue
        self.expected = expected.hex
        self.actual = actual.hex
        self.matches = expected == actual
    }
}

/// Gathers the findings: those of the service or, where none works, of `ferryd`, and what only a client sees.
struct Doctor {
    let location: QueueLocation
    let repair: Bool
    let startOver: Bool
    private(set) var findings: [Finding] = []
    private(set) var isDamaged = false

    init(location: QueueLocation, repair: Bool, startOver: Bool) {
        self.location = location
        self.repair = repair
        self.startOver = startOver
    }

    mutating func examine(environment: [String: String]) {
        let end = ContinuousClock.now + Self.patience
        // A service that comes or goes owns the queue for a moment without answering.
        while !self.look(isLast: ContinuousClock.now >= end) { usleep(50_000) }
        self.findings += Self.linger(self.location, environment)
    }

    /// How long a service may own the queue and not answer.
    private static let patience = Duration.seconds(5)

    /// Asks the service or `ferryd`; false if neither can tell, except at the last try.
    private mutating func look(isLast: Bool) -> Bool {
        do throws(FerryError) {
            let client = try ServiceClient.connect(self.location, start: .never)
            defer { client.close() }
            guard case .checked(let found, let damaged) = try client.call(.check) else {
                throw Session.unexpected()
            }
            self.findings.append(Self.judge(client.hello))
            self.findings += found
            self.isDamaged = damaged
            if self.repair, found.contains(where: { $0.level == .problem }) {
                self.findings.append(
                    Finding(
                        "repair",
                        .note,
                        "a service works on the queue (process \(client.hello.pid)), so nothing was repaired",
                        advice: "stop it and say `ferry doctor --repair` again"
                    )
                )
            }
            return true
        } catch {
            return self.lookAlone(after: error, isLast: isLast)
        }
    }

    /// Whether the running service is the one that belongs to this command.
    static func judge(_ hello: Hello) -> Finding {
        let kind = hello.onDemand == true ? "on demand" : "as a daemon"
        guard hello.version == ferryVersion else {
            return Finding(
                "service",
                .note,
                "Ferry \(hello.version) runs \(kind) (process \(hello.pid)), and this command is Ferry \(ferryVersion)",
                advice: "restart the service"
            )
        }
        return Finding("service", .ok, "Ferry \(hello.version) runs \(kind) (process \(hello.pid))")
    }

    /// Asks `ferryd`, since no service answers.
    private mutating func lookAlone(after failure: FerryError, isLast: Bool) -> Bool {
        guard failure.code != .version else {
            self.findings.append(
                Finding("service", .problem, failure.message, advice: "the queue was not looked at")
            )
            return true
        }
        var arguments = [self.repair ? "--repair" : "--check", "--json"]
        if self.startOver { arguments.append("--start-over") }
        arguments += ["--state-dir", self.location.stateDirectory, "--socket", self.location.socketPath]
        do throws(FerryError) {
            let result = try ServiceTool.run(arguments)
            if let report = try? ControlJSON.decode(CheckReport.self, from: result.output) {
                self.findings.append(
                    Finding("service", .ok, "none runs; a command that needs it starts one")
                )
                self.findings += report.findings
                self.isDamaged = report.damaged
            } else if result.status == ExitStatus.noService.rawValue {
                guard isLast else { return false }
                // Somebody owns the queue and does not answer.
                self.findings.append(Finding("service", .problem, failure.message, advice: result.message))
            } else {
                self.isDamaged = result.status == ExitStatus.database.rawValue
                self.findings.append(Finding("check", .problem, result.message))
            }
        } catch {
            self.findings.append(Finding("service", .problem, error.message))
        }
        return true
    }

    /// Whether a user's service that systemd knows ends when the user logs out (loginctl(1)).
    static func linger(_ location: QueueLocation, _ environment: [String: String]) -> [Finding] {
        let home = environment["XDG_CONFIG_HOME"] ?? environment["HOME"].map { "\($0)/.config" }
        guard !location.isSystem, let home, access("\(home)/systemd/user/ferryd.service", F_OK) == 0,
            let entry = getpwuid(geteuid())
        else { return [] }
        let user = String(cString: entry.pointee.pw_name)
        guard access("/var/lib/systemd/linger/\(user)", F_OK) != 0 else {
            return [Finding("linger", .ok, "the user's service stays after a logout")]
        }
        return [
            Finding(
                "linger",
                .note,
                "the user's service ends when \(user) logs out, and does not start at boot",
                advice: "`loginctl enable-linger \(user)`"
            )
        ]
    }
}
