/// What a GET asks for.
public struct ResumeRequest: Hashable, Sendable {
    /// The first byte; 0 asks for the whole, without `Range`.
    public let offset: Int64
    /// Bytes from ``offset`` on that are there already, and that what comes must equal.
    public let overlap: Int64
    /// The value of `If-Range`; nil to go without.
    public let condition: String?

    /// Makes a request.
    public init(offset: Int64, overlap: Int64, condition: String?) {
        self.offset = offset
        self.overlap = overlap
        self.condition = condition
    }

    /// `Range` and `If-Range`, or nothing.
    public var fields: [ResponseHead.Field] {
        guard self.offset > 0 else { return [] }
        let range = ResponseHead.Field(name: "Range", value: "bytes=\(self.offset)-")
        return [range] + (self.condition.map { [ResponseHead.Field(name: "If-Range", value: $0)] } ?? [])
    }
}
