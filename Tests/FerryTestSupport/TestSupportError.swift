/// What went wrong in a helper of the tests, as a sentence.
public struct TestSupportError: Error, Sendable, CustomStringConvertible {
    /// The sentence.
    public let description: String

    /// Makes an error of a sentence.
    public init(_ description: String) {
        self.description = description
    }

    /// Names a system call that failed, with the text of its errno.
    static func system(_ call: String, _ code: Int32) -> TestSupportError {
        TestSupportError("\(call): \(errorText(code))")
    }
}
