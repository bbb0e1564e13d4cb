/// What `ferry set` changes of a job; nil leaves a thing as it is.
///
/// It travels from the command to the service, so paths are absolute.
public struct JobChanges: Hashable, Sendable, Codable {
    /// `--priority`, -100…100.
    public var priority: Int?
    /// `--group`.
    public var group: String?
    /// `--url`: taken only if the object there proves to be the same.
    public var url: String?
    /// `-H`: each replaces the fields of its name; one without a value takes them away, as with curl.
    public var headers: [RequestHeader]
    /// `--allow-http`; it can be given and not taken back.
    public var allowHTTP: Bool
    /// `--not-before`; a time that has passed ends the wait for one.
    public var notBefore: Timestamp?
    /// `-o`: the file, absolute.
    public var output: String?
    /// `--attempts`: tries in all; 0 = no limit.
    public var attempts: Int?
    /// `--deadline`, in milliseconds from now on; 0 = none.
    public var deadlineMs: Int64?
    /// `--window`.
    public var window: Amendment<RunWindow>?
    /// `--after`: the jobs that have to be completed first, in the place of those before.
    public var after: [JobID]?
    /// `--renew`: the program, absolute.
    public var renew: Amendment<String>?
    /// `--limit-rate`, in bytes a second; 0 = no limit.
    public var limitRateBytes: Int64?

    /// Makes changes; the default changes nothing.
    public init(
        priority: Int? = nil,
        group: String? = nil,
        url: String? = nil,
        headers: [RequestHeader] = [],
        allowHTTP: Bool = false,
        notBefore: Timestamp? = nil,
        output: String? = nil,
        attempts: Int? = nil,
        limitRateBytes: Int64? = nil
    ) {
        self.priority = priority
        self.group = group
        self.url = url
        self.headers = headers
        self.allowHTTP = allowHTTP
        self.notBefore = notBefore
        self.output = output
        self.attempts = attempts
        self.limitRateBytes = limitRateBytes
    }

    /// Whether nothing is to be changed.
    public var isEmpty: Bool { self == JobChanges() }

    /// The request with these changes; its URL is taken as it stands, unproved.
    public func applied(to request: JobRequest) -> JobRequest {
        var changed = request
        changed.priority = self.priority ?? request.priority
        changed.group = self.group ?? request.group
        changed.url = self.url ?? request.url
        let names = Set(self.headers.map { ASCII.lowercased($0.name) })
        changed.headers =
            request.headers.filter { !names.contains(ASCII.lowercased($0.name)) }
            + self.headers.filter { !$0.value.isEmpty }
        changed.allowHTTP = request.allowHTTP || self.allowHTTP
        changed.notBefore = self.notBefore ?? request.notBefore
        changed.attempts = self.attempts ?? request.attempts
        changed.deadlineMs = self.deadlineMs ?? request.deadlineMs
        if let window = self.window { changed.window = window.value }
        if let after = self.after { changed.after = after.isEmpty ? nil : after }
        if let renew = self.renew { changed.renew = renew.value }
        if let rate = self.limitRateBytes { changed.limitRateBytes = rate == 0 ? nil : rate }
        if let output = self.output {
            changed.output = output
            let slash = output.lastIndex(of: "/") ?? output.startIndex
            changed.directory = slash == output.startIndex ? "/" : String(output[..<slash])
        }
        return changed
    }

    /// The options that differ between two requests, as the event log names them.
    public static func differences(_ old: JobRequest, _ new: JobRequest) -> [String] {
        var names: [String] = []
        if old.url != new.url { names.append("URL") }
        if old.headers != new.headers { names.append("header fields") }
        if old.output != new.output { names.append("file") }
        if old.notBefore != new.notBefore { names.append("time") }
        if old.priority != new.priority { names.append("priority") }
        if old.group != new.group { names.append("group") }
        if old.attempts != new.attempts { names.append("attempts") }
        if old.deadlineMs != new.deadlineMs { names.append("deadline") }
        if old.window != new.window { names.append("window") }
        if old.after != new.after { names.append("jobs before it") }
        if old.renew != new.renew { names.append("program for new links") }
        if old.limitRateBytes != new.limitRateBytes { names.append("rate") }
        if old.allowHTTP != new.allowHTTP { names.append("leave for plain http") }
        return names
    }
}
