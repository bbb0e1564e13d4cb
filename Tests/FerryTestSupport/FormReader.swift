/// A web framework that reads multipart/form-data bodies as its servers do.
public enum FormReader: String, Sendable, CaseIterable {
    /// Werkzeug, beneath Flask.
    case werkzeug
    /// Django.
    case django

    /// What a framework found of a part.
    public struct Part: Sendable, Hashable, CustomStringConvertible {
        /// The line that stands for it.
        public let description: String

        /// A part as it should be found; a text has neither file name nor type, and `sha256` is hexadecimal.
        public init(name: String, fileName: String?, type: String?, size: Int64, sha256: String) {
            let name = Self.hex(name)
            let fileName = fileName.map(Self.hex) ?? "-"
            self.description = "\(name)\t\(fileName)\t\(type ?? "-")\t\(size)\t\(sha256)"
        }

        init(line: Substring) {
            self.description = String(line)
        }

        private static func hex(_ text: String) -> String {
            let digits = Array("0123456789abcdef")
            return String(text.utf8.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
        }
    }

    /// Reads a body from a file.
    ///
    /// - Returns: The parts in the order of their descriptions; frameworks do not keep that of the body.
    /// - Throws: ``TestSupportError`` if the framework refuses the body, or is not installed.
    public func parts(of path: String, contentType: String) async throws -> [Part] {
        let python = try ToolRunner.program("python3")
        let result = try await python.run(
            [Fixtures.supportFile("parse-form.py"), self.rawValue, contentType, path],
            timeLimit: .seconds(300)
        )
        guard result.status == 0 else {
            throw TestSupportError(
                "\(self.rawValue) (package python3-\(self.rawValue)) does not read the form: \(result.stderr)"
            )
        }
        return result.stdout.split(separator: "\n").map(Part.init(line:))
    }
}
