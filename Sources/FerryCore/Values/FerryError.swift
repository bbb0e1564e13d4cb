/// A failure that ends a command or a request: a code to branch on, a sentence to read, an exit status.
public struct FerryError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of failure; stable words that travel over the control socket.
    public struct Code: RawRepresentable, Hashable, Sendable, Codable {
        /// The word.
        public let rawValue: String

        /// Wraps a word, known or not.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Unknown option, bad value, bad URL, plain http without leave.
        public static let usage = Code(rawValue: "usage")
        /// The configuration file is wrong.
        public static let configuration = Code(rawValue: "configuration")
        /// No job has this number.
        public static let unknownJob = Code(rawValue: "unknown-job")
        /// The job's state does not allow this.
        public static let wrongState = Code(rawValue: "wrong-state")
        /// The destination's name is taken.
        public static let exists = Code(rawValue: "exists")
        /// A folder or file cannot be used.
        public static let localIO = Code(rawValue: "local-io")
        /// Another service owns the queue.
        public static let busy = Code(rawValue: "busy")
        /// The service cannot be reached, started, or is silent.
        public static let noService = Code(rawValue: "no-service")
        /// Protocol versions differ.
        public static let version = Code(rawValue: "version")
        /// The job database is damaged, newer, or cannot be written.
        public static let database = Code(rawValue: "database")
        /// The service is stopping; ask the next one.
        public static let stopping = Code(rawValue: "stopping")
    }

    /// The code.
    public let code: Code
    /// One sentence without a final full stop; lines after the first are hints.
    public let message: String
    /// The exit status that follows from it.
    public let exitStatus: ExitStatus

    /// Makes an error.
    public init(_ code: Code, _ message: String, exitStatus: ExitStatus) {
        self.code = code
        self.message = message
        self.exitStatus = exitStatus
    }

    /// The sentence.
    public var description: String { self.message }

    /// Wrong use, known without the network.
    public static func usage(_ message: String) -> FerryError {
        FerryError(.usage, message, exitStatus: .usage)
    }
}
