import FerryCore
import Testing

@testable import FerryDaemon

@Suite struct MachineCheckTests {
    struct Case: Sendable {
        let check: String
        let level: Finding.Level
        let says: String
        let change: @Sendable (inout MachineCheck) -> Void

        init(
            _ check: String,
            _ level: Finding.Level,
            _ says: String,
            _ change: @escaping @Sendable (inout MachineCheck) -> Void
        ) {
            self.check = check
            self.level = level
            self.says = says
            self.change = change
        }
    }

    @Test(arguments: [
        Case("file-system", .ok, "local") { _ in },
        Case("file-system", .problem, "network file system (nfs)") { $0.fileSystemType = 0x6969 },
        Case("file-system", .note, "in memory (tmpfs)") { $0.fileSystemType = 0x0102_1994 },
        Case("file-system", .problem, "can only be read") { $0.isReadOnly = true },
        Case("disk", .ok, "64.0 MiB free") { $0.freeBytes = 64 << 20 },
        Case("disk", .problem, "are free in /s") { $0.freeBytes = (64 << 20) - 1 },
        Case("disk", .problem, "no more files") {
            $0.freeBytes = 1 << 40
            $0.isOutOfFiles = true
        },
        Case("descriptors", .ok, "enough") { $0.descriptors = 4_096 },
        Case("descriptors", .note, "some 256 transfers") { $0.descriptors = 1_024 },
        Case("descriptors", .problem, "some 16 transfers") { $0.descriptors = 64 },
        Case("clock", .problem, "the year 1970") { $0.year = 1_970 },
        Case("clock", .problem, "the year 2106") { $0.year = 2_106 },
    ])
    func `what the machine gives is judged`(item: Case) {
        var machine = MachineCheck(folder: "/s")
        item.change(&machine)
        let finding = machine.findings.first { $0.check == item.check }
        #expect(
            finding?.level == item.level && finding?.message.contains(item.says) == true,
            "\(finding as Any)"
        )
    }

    @Test func `this machine can be asked`() {
        let findings = MachineCheck(asking: "/", now: Timestamp(milliseconds: 1_800_000_000_000)).findings
        #expect(findings.map(\.check).starts(with: ["file-system", "disk", "descriptors"]))
    }
}
