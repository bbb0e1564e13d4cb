/// What may be the name of a group: it stands in option values, tables and JSON.
public enum GroupName {
    /// The longest name, in bytes of UTF-8.
    public static let limitBytes = 64

    /// What is wrong with a name, as the end of a sentence; nil if nothing is.
    public static func problem(_ name: String) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.count > self.limitBytes { return "is longer than \(self.limitBytes) bytes" }
        if name.hasPrefix("-") { return "begins with a dash" }
        let isPlain =
            FileName.display(name) == name
            && !name.contains { $0.isWhitespace || $0 == "," || $0 == "\"" || $0 == "'" }
        return isPlain ? nil : "holds a blank, a comma, a quote or a control character"
    }
}
