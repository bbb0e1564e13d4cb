/// What a scripted server does with a request's body.
public struct BodyTreatment: Sendable {
    /// Answers `Expect: 100-continue` with 100.
    public var givesLeave: Bool
    /// Whole interim heads that are sent before the body is read, without their empty lines.
    public var interim: [String]
    /// Resets the connection after so many bytes of the body.
    ///
    /// The request is recorded with these, and the handler is asked for an answer that nobody gets.
    public var cutAfter: Int64?
    /// Answered at once, and the body is not read; the connection ends when the client has ended it.
    ///
    /// The request is recorded without a body, and the handler's answer is dropped.
    public var refusal: Reply?

    /// Makes a treatment; the default takes all of the body and gives leave for it.
    public init(
        givesLeave: Bool = true,
        interim: [String] = [],
        cutAfter: Int64? = nil,
        refusal: Reply? = nil
    ) {
        self.givesLeave = givesLeave
        self.interim = interim
        self.cutAfter = cutAfter
        self.refusal = refusal
    }
}
