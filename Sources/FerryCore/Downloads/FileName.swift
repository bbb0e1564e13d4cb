/// File names made from what servers and URLs say.
///
/// A name is one path component that is safe to create, to type and to show. It is made, never checked:
/// what must not be in it is taken out.
public enum FileName {
    /// The longest name that Linux file systems take, in bytes (NAME_MAX).
    public static let limit = 255
    private static let longestExtension = 16

    /// Makes a safe name from a candidate; nil if nothing is left.
    ///
    /// Only what follows the last `/` or `\` counts (RFC 6266 §4.3). Control, bidirectional and zero-width
    /// characters go, dots and spaces at the end too; a dot, dash, space or tilde in front gets `_` before
    /// it. At most 255 bytes, cut at a character with the extension kept. A safe name stays as it is.
    public static func safe(_ candidate: String) -> String? {
        var scalars = String.UnicodeScalarView()
        for scalar in candidate.unicodeScalars {
            if scalar == "/" || scalar == "\\" {
                scalars.removeAll()
            } else if !self.isHidden(scalar) {
                scalars.append(scalar)
            }
        }
        self.trimEnd(&scalars)
        guard let first = scalars.first else { return nil }
        let name = (["-", ".", " ", "~"].contains(first) ? "_" : "") + String(scalars)
        guard name.utf8.count > self.limit else { return name }
        scalars = self.fit(name, into: self.limit).unicodeScalars
        self.trimEnd(&scalars)  // the cut may have left a dot or space there
        return String(scalars)
    }

    /// Makes a safe name from the last component of a URL's path, percent-decoded once.
    ///
    /// Bytes that are not UTF-8 are read as Latin-1; a component with a broken escape is taken as it stands.
    public static func fromURLPath(_ path: String) -> String? {
        let bytes = Array(path.utf8)
        let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
        let component = bytes[start...]
        return self.safe(self.text(ASCII.percentDecoded(component) ?? Array(component)))
    }

    /// The name of a job's partial: `.NAME.JOB.ferry-part`, from the second generation on `.ferry-part-2`.
    ///
    /// At most 255 bytes; NAME is shortened if need be.
    ///
    /// - Parameters:
    ///   - name: The final name.
    ///   - job: The job.
    ///   - generation: Counts up while an object is fetched anew beside the old partial.
    /// - Returns: The partial's name, in the same folder.
    public static func partial(name: String, job: JobID, generation: Int) -> String {
        let ending = ".\(job).ferry-part" + (generation >= 2 ? "-\(generation)" : "")
        return "." + self.fit(name, into: self.limit - 1 - ending.utf8.count) + ending
    }

    /// The n-th name for a taken one: `name (2).ext`, at most 255 bytes.
    public static func numbered(_ name: String, _ n: Int) -> String {
        self.fit(name, into: self.limit, insert: " (\(n))")
    }

    /// A text from outside made fit for a terminal: characters that steer or hide are shown as `\u{1B}`.
    public static func display(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if self.isHidden(scalar) {
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result.append(contentsOf: "\\u{\(digits)}".unicodeScalars)
            } else {
                result.append(scalar)
            }
        }
        return String(result)
    }

    /// The bytes as UTF-8, else as Latin-1.
    static func text(_ bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: bytes.lazy.map { Unicode.Scalar($0) })
        return String(scalars)
    }

    /// Control characters (C0, DEL, C1), format characters (bidirectional and zero-width ones) and those that are
    /// reserved for more of them, separators.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        case .unassigned: scalar.properties.isDefaultIgnorableCodePoint
        default: false
        }
    }

    /// Takes off dots and spaces at the end.
    private static func trimEnd(_ scalars: inout String.UnicodeScalarView) {
        while let last = scalars.last, last == "." || last == " " { scalars.removeLast() }
    }

    /// Puts `insert` before the extension and shortens what stands before it to `limit` bytes in all.
    private static func fit(_ name: String, into limit: Int, insert: String = "") -> String {
        if insert.isEmpty, name.utf8.count <= limit { return name }
        let (stem, ending) = self.split(name)
        let budget = max(0, limit - ending.utf8.count - insert.utf8.count)
        return self.cut(stem, to: budget) + insert + ending
    }

    /// Stem and extension with its dot; `.tar` belongs to the extension, one that is too long does not count.
    private static func split(_ name: String) -> (stem: String, ending: String) {
        // Bytes at the end are looked at, not characters: to find those from the end can take quadratic time.
        let bytes = name.utf8
        guard let dot = bytes.suffix(self.longestExtension + 1).lastIndex(of: UInt8(ascii: ".")),
            dot > bytes.startIndex
        else { return (name, "") }
        let before = bytes[..<dot]
        let isArchive = before.count > 4 && ASCII.lowercased(String(before.suffix(4)) ?? "") == ".tar"
        let start = isArchive ? bytes.index(dot, offsetBy: -4) : dot
        return (String(name[..<start]), String(name[start...]))
    }

    /// The longest beginning of whole characters that fits; of whole scalars if not even one character does.
    private static func cut(_ text: String, to limit: Int) -> String {
        var result = ""
        var size = 0
        for character in text {
            size += character.utf8.count
            guard size <= limit else { break }
            result.append(character)
        }
        guard result.isEmpty else { return result }
        var scalars = String.UnicodeScalarView()
        size = 0
        for scalar in text.unicodeScalars {
            size += UTF8.width(scalar)
            guard size <= limit else { break }
            scalars.append(scalar)
        }
        return String(scalars)
    }
}
