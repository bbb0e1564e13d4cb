import FerryCore

/// The values of `--window`, `--after` and `--renew`; `none` takes away what a job has.
struct ScheduleOptions {
    /// The word that takes away.
    static let none = "none"

    private let window: Amendment<RunWindow>?
    private let after: [JobID]?
    private let renew: Amendment<String>?

    /// Reads the options; hours are those of the caller's clock, a program that of the caller's `PATH`.
    init(_ arguments: Arguments, in surroundings: Surroundings) throws(FerryError) {
        self.window = arguments.value(.window).map { text in Self.window(text).map { .set($0) } ?? .remove }
        self.after = try Self.after(arguments)
        self.renew = try Self.renew(arguments, in: surroundings)
    }

    /// Gives them to a new job.
    func apply(to request: inout JobRequest) {
        request.window = self.window?.value
        request.after = self.after?.isEmpty == false ? self.after : nil
        request.renew = self.renew?.value
    }

    /// Gives them to the changes of a job.
    func apply(to changes: inout JobChanges) {
        changes.window = self.window
        changes.after = self.after
        changes.renew = self.renew
    }

    /// Reads hours by the caller's clock.
    static func window(_ text: String) -> RunWindow? {
        RunWindow(text, clock: LocalClock(now: .now, offset: LocalTime.offset))
    }

    /// Each job once; empty for `none`.
    private static func after(_ arguments: Arguments) throws(FerryError) -> [JobID]? {
        let values = arguments.values(.after)
        guard !values.isEmpty else { return nil }
        guard values.count == 1 || !values.contains(self.none) else {
            throw .usage("--after takes numbers of jobs or 'none', not both")
        }
        return Set(values.compactMap { JobID($0) }).sorted()
    }

    private static func renew(_ arguments: Arguments, in surroundings: Surroundings) throws(FerryError)
        -> Amendment<String>?
    {
        guard let name = arguments.value(.renew) else { return nil }
        guard name != self.none else { return .remove }
        guard !arguments.has(.system) else {
            throw .usage("--renew: the machine's queue runs no programs; use a queue of your own for that")
        }
        return .set(try ProgramPath.resolve(name, option: "--renew", in: surroundings))
    }
}
