import FerryCore
import Testing

@testable import FerryDaemon

@Suite struct ServiceOptionsTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let arguments: [String]
        let expected: ServiceOptions
        var testDescription: String { self.arguments.joined(separator: " ") }

        init(_ arguments: [String], _ change: (inout ServiceOptions) -> Void) {
            var options = ServiceOptions()
            change(&options)
            self.arguments = arguments
            self.expected = options
        }
    }

    @Test(arguments: [
        Case([]) { _ in },
        Case(["--on-demand"]) { $0.onDemand = true },
        Case(["--version"]) { $0.wantsVersion = true },
        Case(["--help"]) { $0.wantsHelp = true },
        Case(["-h"]) { $0.wantsHelp = true },
        Case(["--state-dir", "/s"]) { $0.stateDirectory = "/s" },
        Case(["--state-dir=/s=t"]) { $0.stateDirectory = "/s=t" },
        Case(["--state-dir", "--on-demand"]) { $0.stateDirectory = "--on-demand" },
        Case(["--state-dir", "/s", "--state-dir", "/t"]) { $0.stateDirectory = "/t" },
        Case(["--socket", "/p"]) { $0.socketPath = "/p" },
        Case(["--check", "--json"]) {
            $0.wantsCheck = true
            $0.wantsJSON = true
        },
        Case(["--repair", "--start-over"]) {
            $0.wantsRepair = true
            $0.startsOver = true
        },
        Case(["--digest", "SHA256", "/f"]) {
            $0.digest = ServiceOptions.Digest(algorithm: .sha256, path: "/f")
        },
        Case(["--status-fd", "3"]) { $0.statusDescriptor = 3 },
        Case(["--status-fd=17", "--on-demand", "--socket=/p", "--state-dir", "/s"]) {
            $0.statusDescriptor = 17
            $0.onDemand = true
            $0.socketPath = "/p"
            $0.stateDirectory = "/s"
        },
    ])
    func `arguments are read`(_ item: Case) throws {
        #expect(try ServiceOptions.parse(item.arguments) == item.expected)
    }

    @Test(arguments: [
        (["--state-dir"], "--state-dir needs a value"),
        (["--state-dir="], "--state-dir needs a value"),
        (["--state-dir", ""], "--state-dir needs a value"),
        (["--status-fd", "2"], "--status-fd needs a descriptor above 2, not \"2\""),
        (["--status-fd", "three"], "--status-fd needs a descriptor above 2, not \"three\""),
        (["--status-fd", "99999999999"], "--status-fd needs a descriptor above 2, not \"99999999999\""),
        (["--on-demand=yes"], "--on-demand takes no value"),
        (["--on-demand="], "--on-demand takes no value"),
        (["--start-over"], "--start-over needs --repair"),
        (["--digest", "sha256"], "--digest needs an algorithm such as sha256, and a file"),
        (["--digest", "crc", "/f"], "--digest needs an algorithm such as sha256, and a file"),
        (["--frob"], "ferryd does not know \"--frob\"; see ferryd --help"),
        (["--frob=1"], "ferryd does not know \"--frob=1\"; see ferryd --help"),
        (["run"], "ferryd does not know \"run\"; see ferryd --help"),
        ([""], "ferryd does not know \"\"; see ferryd --help"),
    ])
    func `what is wrong is told`(_ arguments: [String], _ message: String) {
        #expect(throws: FerryError.usage(message)) { try ServiceOptions.parse(arguments) }
    }

    @Test(arguments: [
        "--check", "--repair", "--start-over", "--json", "--digest", "--state-dir", "--socket", "--on-demand",
        "--status-fd", "--version", "--help",
    ])
    func `the help names each option`(_ name: String) {
        #expect(ServiceOptions.help.contains("  \(name) "))
    }
}
