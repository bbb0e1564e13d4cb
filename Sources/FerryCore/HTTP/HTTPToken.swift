/// The tokens of HTTP: names of methods and fields, the halves of a media type (RFC 9110 §5.6.2).
public enum HTTPToken {
    /// Whether the text is a token: one or more of its characters, all ASCII, and nothing else.
    public static func isValid(_ text: some StringProtocol) -> Bool {
        self.isValid(text.utf8)
    }

    /// The same for bytes.
    static func isValid(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy(self.isCharacter)
    }

    private static func isCharacter(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || ASCII.isLetter(byte) || self.marks.contains(byte)
    }

    private static let marks = Array("!#$%&'*+-.^_`|~".utf8)
}
