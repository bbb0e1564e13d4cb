import Glibc

/// Finds files of the project and programs of the machine.
public enum Fixtures {
    /// The project's folder.
    public static var projectFolder: String {
        Self.parent(Self.parent(Self.supportFolder))
    }

    /// The folder of recorded exchanges, databases and expected output.
    public static var folder: String {
        "\(Self.projectFolder)/Fixtures"
    }

    /// The path of a file in ``folder``.
    public static func file(_ name: String) -> String {
        "\(Self.folder)/\(name)"
    }

    /// The path of a file beside the sources of the test support.
    public static func supportFile(_ name: String) -> String {
        "\(Self.supportFolder)/\(name)"
    }

    /// The folder in which the test binary and the built products lie.
    ///
    /// - Throws: ``TestSupportError`` if /proc is not there.
    public static func productFolder() throws -> String {
        var buffer = [CChar](repeating: 0, count: 4097)
        guard readlink("/proc/self/exe", &buffer, buffer.count - 1) > 0 else {
            throw TestSupportError.system("readlink /proc/self/exe", errno)
        }
        return Self.parent(cText(buffer))
    }

    private static let supportFolder = Self.parent(#filePath)

    private static func parent(_ path: String) -> String {
        String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    }
}

/// The path of a program of the machine.
///
/// - Throws: ``TestSupportError`` naming the package to install.
func findProgram(_ name: String, package: String) throws -> String {
    let path = environmentVariable("PATH") ?? ""
    let folders = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"] + path.split(separator: ":").map(String.init)
    guard let folder = folders.first(where: { access("\($0)/\(name)", X_OK) == 0 }) else {
        throw TestSupportError("the tests need \(name), which is missing here: apt-get install \(package)")
    }
    return "\(folder)/\(name)"
}
