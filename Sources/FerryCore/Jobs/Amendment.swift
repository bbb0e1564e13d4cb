/// A change of something that a job may have or not.
public enum Amendment<Value: Hashable & Sendable & Codable>: Hashable, Sendable, Codable {
    /// The job has it no longer.
    case remove
    /// The job has this.
    case set(Value)

    /// The value, nil if there is none any more.
    public var value: Value? {
        if case .set(let value) = self { value } else { nil }
    }
}
