/// One key of the configuration as a service lives by it.
public struct SettingDocument: Codable, Sendable, Equatable {
    /// `limits.running`.
    public var key: String
    /// The value as JSON text.
    public var value: String
    /// `built in`, a file's path, a variable's name, or `ferry limit`.
    public var origin: String

    /// Makes a document.
    public init(key: String, value: String, origin: String) {
        self.key = key
        self.value = value
        self.origin = origin
    }
}
