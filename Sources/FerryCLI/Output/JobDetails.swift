import FerryControl
import FerryCore

/// The texts of `ferry show` and `ferry log`: pure functions of documents, for people.
enum JobDetails {
    /// One `key: value` line a fact that is known, keys in one column.
    static func lines(_ job: JobDocument, now: Timestamp, time: (Timestamp) -> String) -> [String] {
        var facts: [(String, String?)] = [
            ("job", "\(job.id)"),
            ("kind", job.kind.rawValue),
            ("state", job.state.rawValue + (job.phase.map { ", \($0.rawValue)" } ?? "")),
            ("reason", job.reason),
            ("message", job.message),
            ("advice", job.advice),
            ("next try", job.retryAt.map { Self.nextTry($0, job, now, time) }),
            ("deadline", job.deadlineAt.map(time)),
            ("url", job.url),
            (job.kind == .upload ? "source" : "path", job.path),
            ("result", job.resultUrl),
            ("group", job.group),
            ("priority", job.priority == 0 ? nil : "\(job.priority)"),
            ("after", job.after.isEmpty ? nil : job.after.map { "job \($0)" }.joined(separator: ", ")),
            ("window", job.window),
            ("renew", job.renew),
            ("done", Self.done(job)),
            (
                job.kind == .upload ? "offset" : "durable",
                job.bytesDurable == job.bytesDone ? nil : Self.exact(job.bytesDurable)
            ),
            ("rate", job.rateBytesPerS.map(JobText.rate)),
            ("rate limit", job.limitRateBytesPerS.map(JobText.rate)),
            ("time left", job.etaS.map(JobText.span)),
            ("attempt", job.attempt == 0 ? nil : "\(job.attempt)"),
            ("created", time(job.createdAt)),
            ("started", job.startedAt.map(time)),
            ("ended", job.finishedAt.map(time)),
            ("validator", job.validator.map { "\($0.kind) \($0.value)" + ($0.strong ? "" : " (weak)") }),
            ("checksum", job.checksum.map(Self.checksum)),
            ("protocol", Self.transport(job)),
            ("coding", job.contentEncoding),
            (
                "length",
                job.lengthProved == false ? "not proved: the server gave none, and no checksum is known" : nil
            ),
        ]
        for segment in job.segments ?? [] {
            let end = segment.endBytes.map { "\($0)" } ?? ""
            facts.append(("segment", "\(segment.startBytes)..<\(end), durable to \(segment.durableBytes)"))
        }
        if let answer = job.answer { facts += Self.facts(answer) }
        return facts.compactMap { key, value in
            value.map { "\(TextWidth.fit(key.isEmpty ? "" : "\(key):", to: 11)) \($0.shown)" }
        }
    }

    /// Attempts with their requests, and events, in order of time.
    static func log(
        _ attempts: [AttemptDocument],
        _ events: [EventDocument],
        of kind: JobKind = .download,
        time: (Timestamp) -> String
    ) -> [String] {
        var entries: [(time: Timestamp, lines: [String])] = []
        for attempt in attempts {
            entries.append((attempt.beganAt, Self.lines(attempt, of: kind, time: time)))
        }
        for event in events {
            var text = "\(time(event.time))  \(event.kind)"
            if let reason = event.reason { text += " (\(reason))" }
            if let message = event.message { text += ": \(message)" }
            entries.append((event.time, [text.shown]))
        }
        // Sorting is stable here by the position, so that equal times keep attempts before events.
        let sorted = entries.enumerated().sorted {
            ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
        }
        return sorted.flatMap(\.element.lines)
    }

    private static func lines(_ attempt: AttemptDocument, of kind: JobKind, time: (Timestamp) -> String)
        -> [String]
    {
        var text = "\(time(attempt.beganAt))  attempt \(attempt.attempt) from byte \(attempt.offsetBytes)"
        if let outcome = attempt.outcome { text += ": \(outcome)" }
        if let ended = attempt.endedAt {
            text += " after \(DurationText.format(ended - attempt.beganAt))"
        }
        text += ", \(JobText.size(attempt.receivedBytes)) \(kind == .upload ? "sent" : "received")"
        var lines = [text.shown]
        for hop in attempt.hops {
            var parts = [hop.status.map { "status \($0)" } ?? "no answer"]
            if let address = hop.address { parts.append(address) }
            if let version = hop.httpVersion { parts.append("HTTP/\(version)") }
            if let wait = hop.firstByteMs { parts.append("first byte after \(wait) ms") }
            lines.append("    \(hop.url.shown): \(parts.joined(separator: ", ").shown)")
        }
        if let message = attempt.message { lines.append("    \(message.shown)") }
        return lines
    }

    private static func exact(_ bytes: Int64) -> String {
        bytes < 1_024 ? "\(bytes) bytes" : "\(JobText.size(bytes)) (\(bytes) bytes)"
    }

    private static func done(_ job: JobDocument) -> String {
        let counted = JobText.counted(job).map { " \($0)" } ?? ""
        guard let total = job.bytesTotal else {
            return "\(Self.exact(job.bytesDone))\(counted), the whole size is unknown"
        }
        return
            "\(JobText.percent(job) ?? 0) %, \(Self.exact(job.bytesDone)) of \(Self.exact(total))\(counted)"
    }

    /// How many lines of an answer's body are shown; `--json` and `--response` have all that is kept.
    static let answerLines = 20

    private static func facts(_ answer: AnswerDocument) -> [(String, String?)] {
        var facts: [(String, String?)] = [("answer", "status \(answer.status)")]
        facts += answer.headers.map { ("", $0) }
        let lines = answer.body.split(whereSeparator: \.isNewline)
        facts += lines.prefix(Self.answerLines).map { ("", "| \($0)") }
        if answer.isCut || lines.count > Self.answerLines { facts.append(("", "| …")) }
        return facts
    }

    private static func nextTry(
        _ retry: Timestamp,
        _ job: JobDocument,
        _ now: Timestamp,
        _ time: (Timestamp) -> String
    ) -> String {
        "\(time(retry)), in \(JobText.span(JobText.seconds(until: retry, now: now)))"
    }

    private static func checksum(_ checksum: ChecksumDocument) -> String {
        var text = "\(checksum.algorithm) (\(checksum.source))"
        if let expected = checksum.expected { text += ", expected \(expected)" }
        if let actual = checksum.actual { text += ", actual \(actual)" }
        return text
    }

    private static func transport(_ job: JobDocument) -> String? {
        guard let name = job.protocol else { return nil }
        return name + (job.httpVersion.map { " \($0)" } ?? "")
    }
}
