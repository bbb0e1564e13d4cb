/// The files in a queue's spool folder: bodies that are kept until their job is final.
///
/// A file whose maker still holds a lock on it (flock(2)) is being made, and is nobody's left-over.
public enum SpoolName {
    /// The folder, inside the state folder; mode 0700.
    public static let folder = "spool"

    /// The multipart body of a job.
    public static func form(_ job: JobID) -> String { "\(job).form" }

    /// Standard input, copied by `put -` before there is a job; `random` tells such files apart.
    public static func input(random: some Collection<UInt8>) -> String { Hex.encode(random) + ".input" }

    /// A file while it is made; it gets its name when it is whole.
    public static func unfinished(_ name: String) -> String { ".\(name).unfinished" }
}
